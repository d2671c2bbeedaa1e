"""Posteriors with modes, funnels, tails and edges, defaults only, with the truth beside each.

Nothing here is seen by training or tuning. A row has the figures that must be right, the truth, and
whether all of them are within what is allowed; the verdict of the library; ESS of the worst
coordinate. Tuned on the label-switching mixtures, the funnel, Cauchy, the box and the two widths;
the others, and all seeds from 2 on, confirm.
"""

import itertools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm
from scipy import stats

import salmc
from salmc.targets.eight_schools import EFFECTS, STANDARD_ERRORS
from salmc_paper.harness.jobs import Context, Job, not_interrupted

SEEDS = range(10)


class Case(NamedTuple):
    """A density, and what must come out: name ↦ (truth, allowed error)."""

    target: Callable[[], salmc.Target]
    figures: Callable[[np.ndarray], dict[str, float]]
    truth: dict[str, tuple[float, float]]
    draws: int = 2000
    """Of each of 32 chains."""


def switching(data: np.ndarray, components: int) -> Callable[[jax.Array], jax.Array]:
    """The posterior of a mixture of Gaussians: weights, means, log sds; k! equal modes."""
    values = jnp.asarray(data)[:, None]

    def log_density(x: jax.Array) -> jax.Array:
        logits = x[: components - 1]
        if components == 2:
            log_weights = jax.nn.log_softmax(jnp.array([x[0], -x[0]]))
        else:
            log_weights = jax.nn.log_softmax(jnp.concatenate([logits, jnp.zeros(1)]))
        means, log_sds = x[components - 1 : 2 * components - 1], x[2 * components - 1 :]
        sds = jnp.exp(log_sds)
        each = jax.nn.logsumexp(log_weights + norm.logpdf(values, means, sds), axis=1)
        prior = jnp.sum(norm.logpdf(means, 0.0, 5.0)) + jnp.sum(log_sds - 0.125 * sds**2)
        return jnp.sum(each) + jnp.sum(log_weights) + prior

    return log_density


def order_shares(first: int, count: int) -> Callable[[np.ndarray], dict[str, float]]:
    """The share of draws with each order of the means."""

    def shares(points: np.ndarray) -> dict[str, float]:
        orders = np.argsort(points[:, first : first + count], axis=1)
        return {
            "order " + "".join(map(str, order)): float(np.mean(np.all(orders == order, axis=1)))
            for order in itertools.permutations(range(count))
        }

    return shares


def _two_groups() -> np.ndarray:
    generator = np.random.default_rng(0)
    return np.r_[generator.normal(-2.0, 0.6, 80), generator.normal(2.5, 1.0, 120)]


def _three_groups() -> np.ndarray:
    generator = np.random.default_rng(1)
    groups = ((-4.0, 0.7, 60), (0.0, 0.6, 80), (3.5, 1.0, 70))
    return np.concatenate([generator.normal(*group) for group in groups])


def funnel(x: jax.Array) -> jax.Array:
    """x₀ ~ N(0, 9), the others N(0, exp x₀)."""
    spread = 0.5 * jnp.sum(x[1:] ** 2) * jnp.exp(-x[0])
    return -0.5 * (x[0] / 3.0) ** 2 - spread - 0.5 * (len(x) - 1) * x[0]


def centred_schools(x: jax.Array) -> jax.Array:
    """Eight schools, centred: μ, log τ, θ."""
    mean, log_scale, effects = x[0], x[1], x[2:]
    residuals = (jnp.asarray(EFFECTS) - effects) / jnp.asarray(STANDARD_ERRORS)
    prior = -0.5 * (mean / 5.0) ** 2 + log_scale - jnp.log1p((jnp.exp(log_scale) / 5.0) ** 2)
    schools = 0.5 * jnp.sum((effects - mean) ** 2) * jnp.exp(-2.0 * log_scale)
    return prior - schools - 8.0 * log_scale - 0.5 * jnp.sum(residuals**2)


def student(degrees: float) -> Callable[[jax.Array], jax.Array]:
    """Multivariate Student-t of unit scale."""
    return lambda x: -0.5 * (degrees + len(x)) * jnp.log1p(jnp.sum(x**2) / degrees)


def box(x: jax.Array) -> jax.Array:
    """Uniform on [3, 4]^d."""
    return jnp.where(jnp.all((x > 3.0) & (x < 4.0)), 0.0, -jnp.inf)


def half_normal(x: jax.Array) -> jax.Array:
    """N(0, I) where x₀ > 0, zero elsewhere."""
    return jnp.where(x[0] > 0.0, 0.0, -jnp.inf) - 0.5 * jnp.sum(x**2)


def two_widths(x: jax.Array) -> jax.Array:
    """Equal weights: sd 1 at (−3, 0), sd 0.02 at (3, 0)."""
    wide = -0.5 * jnp.sum((x - jnp.array([-3.0, 0.0])) ** 2)
    narrow = -0.5 * jnp.sum((x - jnp.array([3.0, 0.0])) ** 2) / 0.02**2 - 2.0 * jnp.log(0.02)
    return jnp.logaddexp(wide, narrow)


def _moments(points: np.ndarray) -> dict[str, float]:
    mean, sd = points.mean(axis=0), points.std(axis=0)
    return {
        "mean low": float(mean.min()),
        "mean high": float(mean.max()),
        "sd low": float(sd.min()),
        "sd high": float(sd.max()),
    }


def _first_coordinate(points: np.ndarray) -> dict[str, float]:
    low, high = np.quantile(points[:, 0], [0.05, 0.95])
    values = points[:, 0].mean(), points[:, 0].std(), low, high
    return dict(zip(("mean", "sd", "5 %", "95 %"), map(float, values), strict=True))


def _log_scale(points: np.ndarray) -> dict[str, float]:
    return {"mean": float(points[:, 1].mean()), "5 %": float(np.quantile(points[:, 1], 0.05))}


def _tails(points: np.ndarray) -> dict[str, float]:
    """Quantiles of all coordinates together, whose distribution is one, and of both sides."""
    size = np.abs(points.ravel())
    return {
        "quartiles": float(np.quantile(size, 0.5)),
        "1 and 99 %": float(np.quantile(size, 0.98)),
    }


def _student_truth(degrees: float) -> dict[str, tuple[float, float]]:
    quartile, far = stats.t.ppf([0.75, 0.99], degrees)
    return {"quartiles": (quartile, 0.05 * quartile), "1 and 99 %": (far, 0.05 * far)}


_SIXTH, _BOX_SD = 1 / 6, 12**-0.5
_BOX = {
    "mean low": (3.5, 0.015),
    "mean high": (3.5, 0.015),
    "sd low": (_BOX_SD, 0.01),
    "sd high": (_BOX_SD, 0.01),
}
_LOG_TAU = {"mean": (0.802, 0.0585), "5 %": (-1.401, 0.1)}
"""By the grid of `targets.eight_schools`; 0.05 sd for the mean."""

CASES = {
    "switching2": Case(
        lambda: salmc.Target(switching(_two_groups(), 2), 5, name="switching2"),
        order_shares(1, 2),
        {"order 01": (0.5, 0.03), "order 10": (0.5, 0.03)},
    ),
    "switching3": Case(
        lambda: salmc.Target(switching(_three_groups(), 3), 8, name="switching3"),
        order_shares(2, 3),
        {f"order {''.join(p)}": (_SIXTH, 0.03) for p in itertools.permutations("012")},
    ),
    "funnel": Case(
        lambda: salmc.Target(funnel, 10, name="funnel"),
        _first_coordinate,
        {"mean": (0.0, 0.3), "sd": (3.0, 0.3), "5 %": (-4.935, 0.5), "95 %": (4.935, 0.5)},
    ),
    "centred-schools": Case(
        lambda: salmc.Target(centred_schools, 10, name="centred-schools"), _log_scale, _LOG_TAU
    ),
    # Of 40,000 exact draws the 99 % quantile has an error of 3 %: one in twenty would be "wrong".
    "cauchy5": Case(
        lambda: salmc.Target(student(1.0), 5, name="cauchy5"), _tails, _student_truth(1.0), 8000
    ),
    "t3": Case(lambda: salmc.Target(student(3.0), 5, name="t3"), _tails, _student_truth(3.0)),
    "box-bounds": Case(
        lambda: salmc.Target(box, 20, name="box-bounds", bounds=[(3, 4)] * 20), _moments, _BOX
    ),
    "box": Case(lambda: salmc.Target(box, 20, name="box"), _moments, _BOX),
    "half-normal": Case(
        lambda: salmc.Target(half_normal, 3, name="half-normal"),
        lambda points: {"mean": float(points[:, 0].mean()), "sd": float(points[:, 0].std())},
        {"mean": (0.7979, 0.02), "sd": (0.6028, 0.02)},
    ),
    "two-widths": Case(
        lambda: salmc.Target(two_widths, 2, name="two-widths"),
        lambda points: {"narrow": float(np.mean(points[:, 0] > 2.0))},
        {"narrow": (0.5, 0.03)},
    ),
}


def jobs() -> list[Job]:
    """Seed by seed, so that a run that is stopped has something of all."""
    return [_job(name, seed) for seed in SEEDS for name in CASES]


def _job(name: str, seed: int) -> Job:
    arguments = {"case": name, "seed": seed}
    return Job("hard_posteriors", f"{name} {seed}", arguments, _run, seconds=70.0)


def _run(context: Context) -> dict[str, Any]:
    case, seed = CASES[context["case"]], context["seed"]
    began = time.perf_counter()
    sampler = salmc.fit(case.target(), seed=seed, progress=False)
    fitted = time.perf_counter() - began
    draws = sampler.sample(draws=case.draws, seed=seed, progress=False)
    not_interrupted(draws.warnings)
    found = case.figures(draws.positions.reshape(-1, draws.dim))
    summary = draws.summary()
    right = {
        name: abs(found[name] - truth) <= allowed for name, (truth, allowed) in case.truth.items()
    }
    return {
        "figures": found,
        "truth": {name: truth for name, (truth, _) in case.truth.items()},
        "allowed": {name: allowed for name, (_, allowed) in case.truth.items()},
        "right": all(right.values()),
        "trustworthy": summary.verdict.trustworthy,
        "verdict": summary.verdict.sentences[:3],
        "smallest_ess": summary.evidence.smallest_ess,
        "rhat": summary.evidence.largest_rhat,
        "acceptance": summary.evidence.acceptance,
        "local": sampler.local,
        "fit_seconds": fitted,
        "sample_seconds": draws.seconds,
        "kernel": sampler.kernel.name,
    }
