"""What the benchmarks of learned kernels share: train, sample 32 chains × 2000 draws, judge.

MMD² is the mean over ten subsets of 2000 draws against as many sets of 2000 exact draws, so that
its own noise is small; the truth judges here, and only here.
"""

import time
from typing import Any, NamedTuple

import salmc
from salmc.learning.fit import method_settings
from salmc.targets import GaussianMixture
from salmc_paper.harness.jobs import not_interrupted
from salmc_paper.measures.judging import between_modes, judge_chains

CHAINS, DRAWS = 32, 2000


class Trained(NamedTuple):
    """A sampler, and what training took."""

    sampler: salmc.Sampler
    seconds: float

    def judge(self, *, metropolis: bool, seed: int = 0) -> dict[str, Any]:
        """ESS with the bias figures beside it, and the verdict of the library itself."""
        draws = self.sampler.sample(CHAINS, DRAWS, seed=seed, metropolis=metropolis, progress=False)
        draws = draws.evaluated()
        not_interrupted(draws.warnings)
        assert draws.target is not None
        verdict = draws.summary().verdict
        return {
            **judge_chains(draws.target, draws),
            **_between(draws.target, draws.positions),
            "trustworthy": verdict.trustworthy,
            "verdict": verdict.sentences[:2],
        }

    @property
    def costs(self) -> dict[str, Any]:
        """Seconds of training, with compilation, and of its parts."""
        return {"train_seconds": self.seconds, "train_parts": self.sampler.seconds}


def _between(target: salmc.AbstractTarget, positions: Any) -> dict[str, float]:
    if not isinstance(target, GaussianMixture):
        return {}
    return {"between_modes": between_modes(target, positions)}


def train(target: salmc.AbstractTarget, **options: Any) -> Trained:
    """`salmc.fit`, timed."""
    began = time.perf_counter()
    sampler = salmc.fit(target, progress=False, **options)
    seconds = time.perf_counter() - began
    not_interrupted(sampler.warnings)
    return Trained(sampler, seconds)


def defaults(dim: int, kernel: str, method: str = "sal-mc", **changes: Any) -> dict[str, Any]:
    """The settings that a training rests on, for the key of its job."""
    return method_settings(method, kernel, dim).as_dictionary() | changes
