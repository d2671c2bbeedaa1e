"""`fit`: a sampler for a target, with nothing to choose.

What it decides, and from what:

* where to look: a search for the target's location and scale (`movers.start`);
* what fills the pool (`mover="auto"`): tempered SMC, which needs values of the density alone;
  chains along the gradient, if there is one, beyond `MANY_DIMENSIONS`, where proposals by
  differences grow slow, and where derivatives show funnels; NUTS for data beyond `MANY_DATA`;
* coordinates: whitened by the pool;
* size of the network, batch and steps: from the dimension (`learning.settings`);
* when to stop: at the end of the schedule, or earlier when a figure no longer improves.

Nothing here looks at exact draws or known moments.
"""

import dataclasses
from pathlib import Path
from typing import Any

import equinox as eqx
import numpy as np

from salmc import checks
from salmc.answers.gradient.coordinates import FEWEST_DIMENSIONS
from salmc.answers.mixture.answer import mixture_answer
from salmc.errors import TargetError
from salmc.kernels import KERNELS
from salmc.kernels.base import AbstractKernel
from salmc.kernels.mixture import MixtureKernel
from salmc.learning.a_nice_mc import a_nice_mc
from salmc.learning.al_mc import al_mc, checked_samples
from salmc.learning.gradient_pool import Trajectories, suits
from salmc.learning.nice_settings import NICESettings, nice_settings
from salmc.learning.review import review
from salmc.learning.sal_mc import sal_mc
from salmc.learning.settings import LearningSettings, PoolSettings, default_settings
from salmc.movers import TemperedSMC
from salmc.movers.base import AbstractMover
from salmc.movers.nuts import NUTS
from salmc.programs import make_room, on_device, one_thread, target_failures
from salmc.progress import AbstractReporter, reporter
from salmc.sampling.sampler import Sampler
from salmc.sizes import MANY_DATA, MANY_DIMENSIONS
from salmc.target import AbstractTarget

METHODS = {
    "sal-mc": "a kernel learned from an unnormalised density: the paper's sampler",
    "al-mc": "a kernel learned from given samples",
    "a-nice-mc": "a volume-preserving kernel learned adversarially on pairs: the rival",
}

_FEW_EVALUATIONS = {
    "steps": 60,
    "chunk": 20,
    "batch": 64,
    "pool_size": 1024,
    "courses": 1,
    "latent_every": 0,
}
"""Settings for more than `MANY_DATA`."""

_SELDOM = 0.3
"""Share of a flow's proposals that are accepted, below which a mixture is tried."""

_FAR_SHARE, _NO_VARIANCE = 0.05, 2.0
"""Of the pool, whose distances tell; and the power of r below which there is none."""


@one_thread
def fit(
    target: AbstractTarget | None = None,
    *,
    method: str = "sal-mc",
    kernel: str | AbstractKernel | None = None,
    mover: str | AbstractMover = "auto",
    samples: Any = None,
    steps: int | None = None,
    settings: PoolSettings | dict[str, Any] | None = None,
    seed: int = 0,
    progress: bool | AbstractReporter = True,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    effective: int | None = None,
    evaluations: int | None = None,
) -> Sampler:
    """Train a kernel and bind it to its target.

    Args:
        target: what to sample from: `salmc.Target(log_density, dim=…)`.
        method: "sal-mc" from the density alone, "al-mc" from `samples`, or "a-nice-mc".
        kernel: "flow", exact under Metropolis-Hastings; "mixture", exact too and fitted in seconds;
            "mlp", the paper's implicit generator; "nice", volume preserving and exact; or a kernel.
            By default "flow", or "mixture" where a flow is seldom accepted, or tails have no
            variance, and that fits; and "nice" for a-nice-mc, which learns no other.
        mover: what fills the pool; "auto" decides by what the target can do.
        samples: (n, dim), for "al-mc".
        steps: of training; from the kernel's defaults unless given.
        settings: further settings of the learning, or a dictionary of those to change.
        seed: the same seed gives the same sampler.
        progress: True for a bar, False for silence, or a reporter.
        checkpoint: a file in which the training is saved now and then.
        resume: go on from `checkpoint` if it is there.
        effective: draws that will be wanted: training ends when no more of it pays for them.
        evaluations: of the log density, at most. A mixture adapts to the target within them; it is
            what comes back, or what a flow that was asked for is learned from, without any more.

    Returns:
        A sampler. Whatever went wrong in training stands in its `warnings`, and in the verdict
        on its draws.

    Example:
        >>> import salmc
        >>> target = salmc.Target(lambda x: -0.5 * (x**2).sum(), dim=2)
        >>> sampler = salmc.fit(target, steps=50, progress=False)
        >>> draws = sampler.sample(chains=4, draws=100, progress=False)
        >>> draws.positions.shape
        (4, 100, 2)
    """
    make_room()
    # Who names a kernel, or how it is trained, gets that and nothing else.
    nothing_asked = all(value is None for value in (kernel, steps, settings, checkpoint))
    checks.choice("method", method, tuple(METHODS))
    for name, value in (("effective", effective), ("evaluations", evaluations)):
        if value is not None:
            checks.integer(name, value, 1)
            if method != "sal-mc":
                checks.fail(name, 'left out unless method="sal-mc"', value)
    adapted = evaluations is not None or (isinstance(kernel, str) and kernel == MixtureKernel.name)
    if method == "sal-mc" and adapted and isinstance(target, AbstractTarget):
        return _adapted(target, kernel, evaluations, steps, settings, seed, progress)
    kernel = default_kernel(method) if kernel is None else kernel
    common: dict[str, Any] = {
        "seed": seed,
        "progress": progress,
        "checkpoint": checkpoint,
        "resume": resume,
    }
    if method == "al-mc":
        if samples is None:
            checks.fail("samples", "given for al-mc: an array (n, dim)", samples)
        samples = checked_samples(samples)
        if target is not None:
            samples = target.unbounded.inward(on_device(samples))
        chosen: Any = _settings(method, kernel, len(samples[0]), steps, settings)
        learned = al_mc(samples, kernel, settings=chosen, **common)
        return learned if target is None else _bound(learned, target, np.asarray(samples))
    if not isinstance(target, AbstractTarget):
        checks.fail("target", "a target, such as salmc.Target(log_density, dim=…)", target)
    if samples is not None:
        checks.fail("samples", 'left out unless method="al-mc"', "samples")
    if isinstance(mover, str) and mover == "auto":
        mover = choose_mover(target, seed)
    chosen = _settings(method, kernel, target.dim, steps, settings)
    if target.size > MANY_DATA and settings is None and method == "sal-mc":
        chosen = chosen.replace(**_FEW_EVALUATIONS | ({} if steps is None else {"steps": steps}))
    if method == "a-nice-mc":
        return a_nice_mc(target, kernel, mover=mover, settings=chosen, **common)
    learned = sal_mc(target, kernel, mover=mover, settings=chosen, effective=effective, **common)
    return better(learned, target, seed, progress) if nothing_asked else learned


def better(
    learned: Sampler, target: AbstractTarget, seed: int, progress: bool | AbstractReporter
) -> Sampler:
    """A mixture, where it fits, in the place of a flow that is seldom accepted (of six modes in
    eight dimensions, one proposal in ten; a mixture eight), or that saw too little of tails."""
    accepted, points = accepted_share(learned), learned.inward(learned.pool)
    heavy = has_heavy_tails(np.asarray(learned.whitening.whiten(on_device(points))))
    if (
        not (accepted <= _SELDOM or heavy)
        or target.dim > MANY_DIMENSIONS
        or target.size > MANY_DATA
    ):
        return learned
    with reporter(progress) as report:
        answer = mixture_answer(target, seed, report=report)
    if answer.sampler is None or not answer.usable:
        return learned
    return answer.sampler if heavy or answer.efficiency > 2.0 * accepted else learned


def has_heavy_tails(points: np.ndarray) -> bool:
    """Whether points, about as wide in all directions, have no variance: Hill's estimate of the
    power by which P(|x| > r) falls is below two."""
    radii = np.sort(np.linalg.norm(points - np.median(points, axis=0), axis=1))[::-1]
    far = radii[: max(20, int(_FAR_SHARE * len(radii)))]
    return bool(np.mean(np.log(far[:-1] / far[-1])) > 1.0 / _NO_VARIANCE) if far[-1] > 0 else False


def accepted_share(learned: Sampler) -> float:
    """Of its proposals, that the last steps of its training saw accepted."""
    known = learned.history.get("acceptance") or [0.5]
    return float(known[-1])


def _adapted(
    target: AbstractTarget,
    kernel: str | AbstractKernel | None,
    evaluations: int | None,
    steps: int | None,
    settings: PoolSettings | dict[str, Any] | None,
    seed: int,
    progress: bool | AbstractReporter,
) -> Sampler:
    """A mixture that adapts to the target, and another kernel learned from what it found."""
    with reporter(progress) as report:
        answer = mixture_answer(target, seed, evaluations=evaluations, report=report)
    if answer.sampler is None:
        raise TargetError(
            f"No mixture for `{target.name}` came of {answer.evaluations['points']} evaluations: "
            "its density was positive nowhere, or the first round takes more of them. Tell where "
            "to look, by Target(start=…), or allow more evaluations."
        )
    told = (
        f"It was not settled that the mixture fits `{target.name}` ({answer.efficiency:.2f} "
        "effective draws for each draw, as far as it saw). Learn a flow, or allow more "
        "evaluations.",
    )
    found = dataclasses.replace(answer.sampler, warnings=() if answer.usable else told)
    if kernel is None or (isinstance(kernel, str) and kernel == MixtureKernel.name):
        return found
    inner = found.target
    assert inner is not None
    points = np.unique(found.inward(found.pool), axis=0)
    chosen: Any = _settings("al-mc", kernel, target.dim, steps, settings)
    learned = al_mc(points, kernel, settings=chosen, seed=seed, progress=progress)
    return dataclasses.replace(
        learned,
        target=inner,
        pool=found.pool,
        pool_log_density=found.pool_log_density,
        warnings=(*found.warnings, *learned.warnings),
        settings={**learned.settings, "evaluations": answer.evaluations},
    )


@target_failures()
def _bound(learned: Sampler, target: AbstractTarget, samples: np.ndarray) -> Sampler:
    """A kernel that was learned from samples, in coordinates without bounds, with its target."""
    inner, points = target.unbounded, on_device(learned.pool)
    points, values = inner.outward(points, eqx.filter_jit(inner.log_densities)(points))
    sampler = dataclasses.replace(
        learned, target=target, pool=np.asarray(points), pool_log_density=np.asarray(values)
    )
    return review(sampler, samples)


def choose_mover(target: AbstractTarget, seed: int = 0, *, follows: bool = True) -> str:
    """The mover that fills the pool when nobody says.

    Args:
        target: what it moves to.
        seed: of the places from which it looks at the target.
        follows: whether chains along the gradient may be tried.
    """
    many = target.dim > MANY_DIMENSIONS or target.size > MANY_DATA
    if follows and target.dim >= FEWEST_DIMENSIONS and suits(target, seed):
        return Trajectories.name
    return NUTS.name if many and target.differentiable else TemperedSMC.name


def default_kernel(method: str) -> str:
    """The kernel that a method learns when nobody says."""
    return "nice" if method == "a-nice-mc" else "flow"


def kernels_of(method: str) -> tuple[str, ...]:
    """The names of the kernels that a method can learn, by what they state."""
    suits = {"a-nice-mc": lambda kernel: kernel.exact and kernel.volume_preserving}
    fits = suits.get(method, lambda kernel: True)
    return tuple(name for name, kernel in KERNELS.items() if fits(kernel))


def method_settings(method: str, kernel: str | AbstractKernel, dim: int) -> PoolSettings:
    """The defaults of a method for a kernel and a dimension."""
    return nice_settings(dim) if method == "a-nice-mc" else default_settings(kernel, dim)


def _settings(
    method: str,
    kernel: str | AbstractKernel,
    dim: int,
    steps: int | None,
    settings: PoolSettings | dict[str, Any] | None,
) -> PoolSettings:
    """The defaults, with what was asked for."""
    defaults = method_settings(method, kernel, dim)
    kind = NICESettings if method == "a-nice-mc" else LearningSettings
    if isinstance(settings, PoolSettings) and not isinstance(settings, kind):
        checks.fail("settings", f"{kind.__name__} for {method}", type(settings).__name__)
    found = settings if isinstance(settings, PoolSettings) else defaults
    changes = dict(settings) if isinstance(settings, dict) else {}
    if steps is not None:
        changes["steps"] = checks.integer("steps", steps, 1)
    return found.replace(**changes)
