"""From what a user asks for to chains that are ready: checks, starting points, compilation."""

import dataclasses
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from salmc import checks
from salmc.compiled import RUNTIME_ERRORS, failure
from salmc.errors import TargetError
from salmc.kernels.base import AbstractKernel, is_exact
from salmc.kernels.whitening import Whitening
from salmc.sampling.block import Block
from salmc.sampling.chain import proposes_ahead, start_state
from salmc.sampling.ready import Chains
from salmc.target import AbstractTarget, Points

_STUCK_DRAWS = 100
"""A chain that takes none of so many proposals is stuck."""


def launch(
    kernel: AbstractKernel,
    whitening: Whitening,
    target: AbstractTarget | None,
    pool: np.ndarray | jax.Array,
    *,
    chains: int,
    draws: int,
    seed: int,
    metropolis: bool,
    tries: int,
    start: Any,
    densities: bool = True,
) -> tuple[Chains, float]:
    """Chains that are ready to run, and the seconds that compilation took.

    `densities` is that of `Chains`; the other arguments are those of `Sampler.sample`.

    Raises:
        ArgumentError: if the arguments make no sense for this kernel.
        TargetError: if a Metropolis step cannot begin.
    """
    for name, value, least in (("chains", chains, 1), ("draws", draws, 1), ("seed", seed, 0)):
        checks.integer(name, value, least)
    if not isinstance(metropolis, bool):
        checks.fail("metropolis", "True or False", metropolis)
    _check_tries(kernel, tries, metropolis)
    if metropolis and target is None:
        raise TargetError(
            "A Metropolis step needs the log density, and this kernel was loaded without its "
            "target: pass target=… when loading it."
        )
    start_key, step_key = jax.random.split(jax.random.key(seed))
    began = time.perf_counter()
    points = _starting_points(whitening, np.asarray(pool), chains, start, start_key)
    try:
        state = start_state(kernel, whitening, target, points, metropolis)
        values = np.asarray(state.log_density)
        ready = Chains(
            kernel,
            whitening,
            target,
            metropolis=metropolis,
            tries=tries,
            densities=densities,
            draws=draws,
            start=state,
            key=step_key,
        )
        ready.compile()
    except RUNTIME_ERRORS as error:
        raise TargetError(f"The target failed at the start: {failure(error)}") from error
    if metropolis and target is not None and not np.any(values > -np.inf):
        raise TargetError(
            f"The density of `{target.name}` is zero or NaN at all {chains} starting points, so "
            "no Metropolis step can begin. Start where it is positive: pass an array as `start`."
        )
    return ready, time.perf_counter() - began


@dataclasses.dataclass
class Tally:
    """What went on in the blocks so far, for figures and warnings.

    Attributes:
        draws: steps that were done.
        invalid: proposals that were not finite.
        accepted: proposals taken by each chain.
    """

    draws: int = 0
    invalid: int = 0
    accepted: np.ndarray | int = 0

    def add(self, block: Block) -> None:
        """Count one more block."""
        self.draws += len(block)
        self.invalid += block.invalid
        self.accepted = self.accepted + np.sum(block.accepted, axis=0)

    @property
    def acceptance(self) -> np.ndarray:
        """Share of the proposals that each chain took."""
        return np.asarray(self.accepted) / max(self.draws, 1)

    def figures(self, chains: Chains) -> dict[str, float]:
        """What is worth showing beside a progress bar."""
        return {"acceptance": float(np.mean(self.acceptance))} if chains.metropolis else {}

    def warnings(self, chains: Chains) -> tuple[str, ...]:
        """What went wrong, in words."""
        found = []
        kernel, count = chains.kernel, len(chains.start.points)
        if chains.metropolis and not is_exact(type(kernel)):
            found.append(
                f"not exact: the kernel `{kernel.name}` has no proposal density, so the "
                "Metropolis step is min{1, p(x')/p(x)} without it and does not leave the target "
                "invariant. Use a tractable kernel, such as flow, for exact draws."
            )
        if self.invalid:
            found.append(
                f"{self.invalid} proposals were NaN or infinite; the chains stayed where they "
                "were. Train the kernel longer, or with a smaller learning rate."
            )
        stuck = int(np.sum(self.acceptance == 0))
        if chains.metropolis and stuck and self.draws >= _STUCK_DRAWS:
            found.append(
                f"{stuck} of {count} chains never moved: they took none of {self.draws} "
                "proposals. Train the kernel longer, or start the chains elsewhere."
            )
        return tuple(found)


def run_settings(chains: Chains, seed: int, start: Any) -> dict[str, Any]:
    """How the draws were made, as JSON values."""
    return {
        "chains": len(chains.start.points),
        "draws": chains.draws,
        "seed": seed,
        "metropolis": chains.metropolis,
        "tries": chains.tries,
        "start": "pool" if start is None else start if isinstance(start, str) else "given",
        "kernel": chains.kernel.name,
        "exact": chains.metropolis and is_exact(type(chains.kernel)),
    }


def _check_tries(kernel: AbstractKernel, tries: int, metropolis: bool) -> None:
    checks.integer("tries", tries, 1)
    if tries > 1 and not metropolis:
        checks.fail("tries", "1 without a Metropolis step; pass metropolis=True", tries)
    if tries > 1 and not proposes_ahead(kernel):
        checks.fail(
            "tries",
            f"1 for the kernel `{kernel.name}`: several tries need a kernel with a known density "
            "whose proposals do not depend on the current point",
            tries,
        )


def _starting_points(
    whitening: Whitening, pool: np.ndarray, chains: int, start: Any, key: jax.Array
) -> Points:
    """Whitened: from the pool, from N(0, I), or where the user says."""
    dim = pool.shape[1]
    if isinstance(start, str):
        checks.choice("start", start, ("pool", "normal"))
    # NumPy's generator has nothing to compile.
    generator = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    if isinstance(start, str) and start == "normal":
        return jnp.asarray(generator.standard_normal((chains, dim)), dtype=float)
    if start is None or isinstance(start, str):
        rows = generator.choice(len(pool), chains, replace=chains > len(pool))
        points = jnp.asarray(pool[rows], dtype=float)
    else:
        points = jnp.asarray(start, dtype=float)
        if points.shape != (chains, dim):
            expectation = f"'pool', 'normal', or an array of shape ({chains}, {dim})"
            checks.fail("start", expectation, f"shape {points.shape}")
        if not np.all(np.isfinite(points)):
            checks.fail("start", "finite everywhere", "NaN or infinite entries")
    return whitening.whiten(points)
