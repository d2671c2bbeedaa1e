"""A hundred dimensions, defaults only, beside BlackJAX's NUTS in the same process.

A Gaussian of condition 10⁶, a logistic regression of 500 × 99, and a centred hierarchical normal
with 98 groups. `salmc.sample`, and `salmc.fit` with 32 × 2000 draws, against NUTS with a dense mass
matrix on the Gaussian, the diagonal of its window adaptation elsewhere, 32 chains of 1000 draws
after 1000 of warm-up. Speed is effective draws (the smallest of bulk and tail ESS) for each second
of drawing, compilation and preparation apart; whole times stand beside it. Draws of the samplers
take turns with NUTS's (`harness.timing.take_turns`).

The truth: exact for the Gaussian; for the others NUTS's own long run in coordinates without a
funnel, 32 × 8000 draws. "Right": no mean is off by more than 0.05 sd, no sd by more than 5 %.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

import salmc
from benchmarks.peers.densities import rotation, stretched_scales
from salmc.request.rounds import smallest_ess
from salmc.sampling.draws import Draws
from salmc_paper.harness.jobs import Context, Job
from salmc_paper.harness.timing import take_turns

SEEDS = range(3)
EFFECTIVE, GROUPS = 10_000, 98
_TURNS = 3
_MEAN_WITHIN, _SD_WITHIN = 0.05, 0.05

Moments = tuple[np.ndarray, np.ndarray]


class Case(NamedTuple):
    """A target, and how its moments are known: without drawing from it as it is."""

    target: Callable[[], salmc.Target]
    moments: Callable[[], Moments]
    mass_matrix: str = "diagonal"


def _gaussian() -> salmc.Target:
    inverse = jnp.asarray(rotation(100) / stretched_scales(100), dtype=float)
    return salmc.Target(lambda x: -0.5 * jnp.sum((x @ inverse) ** 2), 100, name="stretched100")


def _gaussian_moments() -> Moments:
    spread = rotation(100) * stretched_scales(100)
    return np.zeros(100), np.sqrt(np.sum(spread**2, axis=1))


def _regression() -> salmc.Target:
    generator = np.random.default_rng(3)
    features = generator.normal(size=(500, 99))
    weights = generator.normal(size=99) * 0.3
    labels = generator.random(500) < 1.0 / (1.0 + np.exp(-features @ weights))
    made = salmc.targets.LogisticRegression(features, labels.astype(int))
    return salmc.Target(made.log_density, 100, name="regression100")


def _observed() -> jax.Array:
    generator = np.random.default_rng(4)
    effects = 1.0 + 0.8 * generator.normal(size=GROUPS)
    return jnp.asarray(effects + generator.normal(size=GROUPS), dtype=float)


def _hierarchy(*, centred: bool) -> salmc.Target:
    """μ, log τ, and the effects themselves, or their deviations in units of τ."""
    observed = _observed()

    def log_density(x: jax.Array) -> jax.Array:
        mean, log_scale, rest = x[0], x[1], x[2:]
        prior = norm.logpdf(mean, 0.0, 5.0) - 0.5 * jnp.exp(2.0 * log_scale) + log_scale
        effects = rest if centred else mean + jnp.exp(log_scale) * rest
        spread = norm.logpdf(rest, mean, jnp.exp(log_scale)) if centred else norm.logpdf(rest)
        return prior + jnp.sum(spread) + jnp.sum(norm.logpdf(observed, effects))

    return salmc.Target(log_density, 2 + GROUPS, name="hierarchy100")


def _long_run(target: salmc.Target) -> Draws:
    from salmc_paper.measures.nuts import nuts

    return nuts(target, draws=8000, warmup=2000, seed=99, target_acceptance=0.9)


def _regression_moments() -> Moments:
    return _moments(_long_run(_regression()).positions)


def _hierarchy_moments() -> Moments:
    free = _long_run(_hierarchy(centred=False)).positions.astype(np.float64)
    effects = free[..., :1] + np.exp(free[..., 1:2]) * free[..., 2:]
    return _moments(np.concatenate([free[..., :2], effects], axis=-1))


def _moments(positions: np.ndarray) -> Moments:
    flat = positions.reshape(-1, positions.shape[-1]).astype(np.float64)
    return flat.mean(axis=0), flat.std(axis=0)


CASES = {
    "gaussian": Case(_gaussian, _gaussian_moments, "dense"),
    "regression": Case(_regression, _regression_moments),
    "hierarchy": Case(lambda: _hierarchy(centred=True), _hierarchy_moments),
}


def jobs() -> list[Job]:
    """The truth of each case, and the race for each seed and way."""
    truths = {
        name: Job("hundred_dimensions", f"truth {name}", {"truth": name}, _truth, seconds=150.0)
        for name in CASES
    }
    races = [
        Job(
            "hundred_dimensions",
            f"{way} {name} {seed}",
            {"way": way, "case": name, "seed": seed},
            _race,
            needs=(truths[name],),
            seconds=150.0,
        )
        for seed in SEEDS
        for name in CASES
        for way in ("sample", "fit")
    ]
    return [*truths.values(), *races]


def _truth(context: Context) -> dict[str, Any]:
    mean, sd = CASES[context["truth"]].moments()
    return {"mean": mean.tolist(), "sd": sd.tolist()}


def _race(context: Context) -> dict[str, Any]:
    from salmc_paper.measures.nuts import nuts

    case, seed, way = CASES[context["case"]], context["seed"], context["way"]
    target, began = case.target(), time.process_time()
    if way == "sample":
        first = salmc.sample(target, EFFECTIVE, seed=seed, progress=False)
        sampler = first.sampler
        assert sampler is not None
    else:
        sampler = salmc.fit(target, seed=seed, progress=False)
        first = sampler.sample(draws=2000, seed=seed, progress=False)
    whole = time.process_time() - began
    verdict = first.summary().verdict
    began = time.process_time()
    one = nuts(target, draws=1000, seed=seed, mass_matrix=case.mass_matrix)
    nuts_whole = time.process_time() - began
    timed = take_turns(
        {
            "salmc": lambda: sampler.sample(draws=1000, seed=seed + 1, progress=False),
            "nuts": lambda: nuts(target, draws=1000, seed=seed, mass_matrix=case.mass_matrix),
        },
        turns=_TURNS,
        untimed=0,
        clock=lambda draws: draws.seconds,
    )
    found = {name: _speed(turns.results[0], turns.best) for name, turns in timed.items()}
    (truth,) = context.needed
    known = truth.figures["mean"], truth.figures["sd"]
    return {
        "salmc": found["salmc"] | _errors(first, *known) | {"cpu_seconds": whole},
        "nuts": found["nuts"] | _errors(one, *known) | {"cpu_seconds": nuts_whole},
        "method": first.method,
        "verdict": verdict.degree,
        "sentences": verdict.sentences[:3],
    }


def _speed(draws: Draws, seconds: float) -> dict[str, float]:
    found = smallest_ess(draws.positions)
    return {"smallest_ess": found, "seconds": seconds, "ess_per_second": found / seconds}


def _errors(draws: Draws, mean: list[float], sd: list[float]) -> dict[str, Any]:
    own_mean, own_sd = _moments(draws.positions)
    off = float(np.max(np.abs(own_mean - np.array(mean)) / np.array(sd)))
    wide = float(np.max(np.abs(own_sd / np.array(sd) - 1.0)))
    right = off <= _MEAN_WITHIN and wide <= _SD_WITHIN
    return {"mean_off": off, "sd_off": wide, "right": right}
