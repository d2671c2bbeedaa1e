"""Results that parts of the library make, where they succeed and where they fail.

Nothing is done to draws by hand: kernels are trained too little, or on samples that are off;
movers take steps too large, or are too few; searches get too small a budget, or begin in one mode;
densities lose digits, are NaN where there is mass, or do not integrate. Whether a result is right
is judged by a truth (`honesty_parts_truths`) that the verdict never sees (`honesty_beside_truth`).
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import salmc
from benchmarks.honesty_beside_truth import Right, beside_truth
from benchmarks.honesty_parts_curved import Truth
from benchmarks.honesty_parts_truths import TRUTHS
from salmc.movers import AGSVGD, SGHMC, SGLD, SPOS, SVGD, TemperedSMC

Maker = Callable[[str, int], salmc.Draws]

_CHAINS, _DRAWS = 32, 400


def _searched(name: str, seed: int, **options: Any) -> salmc.Draws:
    options = {"effective": 4000, **options}
    return salmc.sample(TRUTHS[name].target(), seed=seed, progress=False, **options)


def _budget(evaluations: int) -> Maker:
    return lambda name, seed: _searched(name, seed, evaluations=evaluations)


def _black_box(name: str, seed: int) -> salmc.Draws:
    target = TRUTHS[name].black_box()
    return salmc.sample(target, effective=2000, seed=seed, progress=False)


def _fitted(steps: int, kernel: str, metropolis: bool | None = None) -> Maker:
    def make(name: str, seed: int) -> salmc.Draws:
        sampler = salmc.fit(
            TRUTHS[name].target(), kernel=kernel, steps=steps, seed=seed, progress=False
        )
        return sampler.sample(
            _CHAINS, _DRAWS, seed=seed, metropolis=metropolis, progress=False
        ).evaluated()

    return make


def _everything(generator: np.random.Generator, x: np.ndarray) -> np.ndarray:
    return x


def _narrow(generator: np.random.Generator, x: np.ndarray) -> np.ndarray:
    return np.mean(x, axis=0) + 0.85 * (x - np.mean(x, axis=0))


def _cut(generator: np.random.Generator, x: np.ndarray) -> np.ndarray:
    return x[x[:, 0] < np.quantile(x[:, 0], 0.9)]


def _thinned(generator: np.random.Generator, x: np.ndarray) -> np.ndarray:
    """Fewer where the first coordinate is low."""
    return x[(x[:, 0] > np.median(x[:, 0])) | (generator.random(len(x)) < 0.8)]


def _from_samples(
    steps: int,
    kernel: str,
    change: Callable[[np.random.Generator, np.ndarray], np.ndarray] = _everything,
    metropolis: bool = False,
    count: int = 8000,
) -> Maker:
    """AL-MC on samples of the truth, or of something else."""

    def make(name: str, seed: int) -> salmc.Draws:
        truth, generator = TRUTHS[name], np.random.default_rng([seed, 7])
        samples = change(generator, truth.draw(generator, count))
        sampler = salmc.fit(
            truth.target(),
            method="al-mc",
            samples=samples,
            kernel=kernel,
            steps=steps,
            seed=seed,
            progress=False,
        )
        return sampler.sample(
            _CHAINS, _DRAWS, seed=seed, metropolis=metropolis, progress=False
        ).evaluated()

    return make


def _moved(
    mover: Callable[..., Any],
    steps: int,
    particles: int = _CHAINS,
    inside: Callable[[np.ndarray], np.ndarray] | None = None,
    **options: Any,
) -> Maker:
    """A mover from draws of the truth, or from those of them that are in one place."""

    def make(name: str, seed: int) -> salmc.Draws:
        truth = TRUTHS[name]
        start = truth.draw(np.random.default_rng([seed, 8]), 40 * particles)
        start = (start if inside is None else start[inside(start)])[:particles]
        moving = mover(truth.target(), **options)
        return salmc.move(moving, start, steps, seed, keep=1000, progress=False)

    return make


def _from_search(mover: Callable[..., Any], steps: int, particles: int, **options: Any) -> Maker:
    def make(name: str, seed: int) -> salmc.Draws:
        moving = mover(TRUTHS[name].target(), **options)
        return salmc.move(moving, particles, steps, seed, keep=1000, progress=False)

    return make


def _other(change: Callable[[Truth], Callable[[jax.Array], jax.Array]], make: Maker) -> Maker:
    """Sampled from a density that is not what was meant, and judged by the draws' own target."""

    def made(name: str, seed: int) -> salmc.Draws:
        kept = TRUTHS[name]
        TRUTHS[name] = kept._replace(log_density=change(kept))
        try:
            return make(name, seed)
        finally:
            TRUTHS[name] = kept

    return made


def _nan(truth: Truth) -> Callable[[jax.Array], jax.Array]:
    def log_density(x: jax.Array) -> jax.Array:
        return jnp.where(x[0] > 1.0, jnp.nan, truth.log_density(x))

    return log_density


def _coarse(truth: Truth) -> Callable[[jax.Array], jax.Array]:
    """Single precision has steps of 2 at 2e7."""
    return lambda x: (truth.log_density(x) + 2e7) - 2e7


def _flat(truth: Truth) -> Callable[[jax.Array], jax.Array]:
    return lambda x: jnp.logaddexp(truth.log_density(x), -12.0)


def _one_side(x: np.ndarray) -> np.ndarray:
    return x[:, 0] > 0.0


def _with_start(name: str, seed: int) -> salmc.Draws:
    """A user who says where to begin, in one of the modes."""
    truth = TRUTHS[name]
    draws = truth.draw(np.random.default_rng([seed, 9]), 4000)
    known = truth.modes
    assert known is not None
    start = draws[known(draws) == 0][:64]
    return salmc.sample(truth.target(start=start), effective=4000, seed=seed, progress=False)


def _chains_in_one(name: str, seed: int) -> salmc.Draws:
    """An exact kernel that knows one mode: trained on its samples, chains begin there."""

    def one(generator: np.random.Generator, x: np.ndarray) -> np.ndarray:
        known = TRUTHS[name].modes
        assert known is not None
        return x[known(x) == 0]

    return _from_samples(400, "flow", one, metropolis=True)(name, seed)


def _pairs(names: str, made: dict[str, Maker]) -> dict[str, tuple[str, Maker]]:
    found = {}
    for name in names.split(", "):
        for how, maker in made.items():
            found[f"{how}: {name}"] = (name, maker)
    return found


QUICK: dict[str, tuple[str, Maker]] = {
    **_pairs(
        "twisted t, skewed, groups, moon, star, tilted, lognormals, four modes",
        {"forward, flow, 1500 steps": _from_samples(1500, "flow")},
    ),
    **_pairs("twisted t, skewed, walk 10-d, moon", {"flow, 100 steps": _from_samples(100, "flow")}),
    **_pairs(
        "skewed, tilted, groups, four modes, moon",
        {"exact, flow, 300 steps": _from_samples(300, "flow", metropolis=True)},
    ),
    **_pairs("two bananas, moon, four modes", {"mlp, 1000 steps": _from_samples(1000, "mlp")}),
    **_pairs(
        "skewed, walk 10-d", {"samples 15 % too narrow": _from_samples(1000, "flow", _narrow)}
    ),
    **_pairs("skewed, tilted, moon", {"samples cut": _from_samples(1000, "flow", _cut)}),
    **_pairs("twisted t, groups, star", {"samples thinned": _from_samples(1000, "flow", _thinned)}),
    **_pairs(
        "skewed, groups", {"exact, samples cut": _from_samples(600, "flow", _cut, metropolis=True)}
    ),
    **_pairs("far t, two in 20-d, three in 1-d", {"flow of one mode": _chains_in_one}),
}
MOVERS: dict[str, tuple[str, Maker]] = {
    **_pairs(
        "skewed, walk 10-d, moon, tilted",
        {
            "SGLD, large steps": _moved(SGLD, 4000, step_size=0.3, decay=0.0),
            "SGLD, steps of 0.02": _moved(SGLD, 20_000, 64, step_size=0.02, decay=0.0),
        },
    ),
    **_pairs("skewed, shell", {"SGHMC, large steps": _moved(SGHMC, 5000, step_size=0.1)}),
    **_pairs(
        "far t, two in 20-d, four modes",
        {"SGLD from one mode": _moved(SGLD, 5000, inside=_one_side, step_size=0.05)},
    ),
    **_pairs(
        "skewed, two bananas, walk 10-d",
        {
            "SVGD of 50": _from_search(SVGD, 1000, 50),
            "SVGD of 1000": _from_search(SVGD, 600, 1000),
            "AG-SVGD of 100": _from_search(AGSVGD, 600, 100),
        },
    ),
    **_pairs("three in 1-d", {"SPOS of 1000": _from_search(SPOS, 500, 1000)}),
    **_pairs(
        "eggs, groups, lognormals", {"tempered SMC of 2000": _from_search(TemperedSMC, 60, 2000)}
    ),
}
SEARCHES: dict[str, tuple[str, Maker]] = {
    **_pairs(
        "twisted t, skewed, lognormals, four modes, far t, three in 1-d, two bananas, tilted, "
        "holed, eggs, edgy, moon, star, walk 10-d, stairs, groups, spiral, horseshoe, shell, "
        "walk 40-d, stiff 20-d, two in 20-d",
        {"sample": _searched},
    ),
    **_pairs("four modes, eggs, moon, spiral", {"12,000 evaluations": _budget(12_000)}),
    **_pairs("twisted t, holed, two bananas", {"black box": _black_box}),
    **_pairs("far t, two in 20-d, three in 1-d", {"start in one mode": _with_start}),
    **_pairs(
        "skewed, tilted",
        {
            "NaN where there is mass": _other(_nan, _searched),
            "digits lost": _other(_coarse, _searched),
        },
    ),
    **_pairs(
        "two bananas, moon",
        {"a floor of e^-12": _other(_flat, _moved(SGLD, 5000, step_size=0.01))},
    ),
}
FITS: dict[str, tuple[str, Maker]] = {
    **_pairs(
        "two bananas, eggs, horseshoe, moon",
        {
            "fit, 30 steps, exact": _fitted(30, "flow"),
            "fit, 30 steps, forward": _fitted(30, "flow", metropolis=False),
        },
    ),
    **_pairs("two bananas, skewed", {"fit, mlp, 300 steps": _fitted(300, "mlp")}),
}
PARTS = {**QUICK, **MOVERS, **SEARCHES, **FITS}


def make(name: str, seed: int) -> tuple[salmc.Draws, Right]:
    """Draws, and how they stand beside the truth."""
    truth, maker = PARTS[name]
    draws = maker(truth, seed)
    draws = dataclasses.replace(draws, sampler=None)
    return draws, beside_truth(draws, TRUTHS[truth], seed)
