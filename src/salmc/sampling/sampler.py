"""`Sampler`: a trained kernel bound to its target, its scaling and how it was trained.

The one record that training makes, files hold and chains are drawn from.
"""

import dataclasses
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from salmc import checks
from salmc.errors import TargetError
from salmc.kernels.base import AbstractKernel
from salmc.kernels.layers import Whitening
from salmc.programs import RUNTIME_ERRORS, compiled, failure, nothing_left, on_device
from salmc.progress import AbstractReporter, reporter
from salmc.sampling.chain_states import ChainState
from salmc.sampling.chains import Transition
from salmc.sampling.draws import Draws, Tally
from salmc.sampling.executor import AbstractExecutor, ChainRun
from salmc.sampling.replicas import Ladder
from salmc.sampling.sampler_uses import SamplerUses
from salmc.sampling.trajectories import Trajectory
from salmc.target import AbstractTarget, Points

_SEEN_POINTS = 4000
"""Of the pool, for the diagnostics of draws."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Sampler(SamplerUses):
    """A trained kernel that is ready to draw.

    Attributes:
        kernel: the transition, in whitened coordinates.
        target: what it was trained on, in coordinates without bounds; None where that could not be
            found again.
        whitening: the map to whitened coordinates.
        pool: (n, dim) in the user's coordinates: where chains start, and what verdicts compare
            with.
        method: how it was trained.
        settings: of the training, as JSON values.
        history: figures over the course of training, such as losses.
        seconds: of training, by part.
        warnings: what went wrong in training, in words; draws carry them on.
        pool_log_density: (n,) log p at the pool, where it is known.
        local: local steps after each independent one, where training found that chains need them.
        trajectory: along the gradient, which these steps follow; by default they walk.
        ladder: temperatures of replicas that chains have beside them, where they need any.
    """

    kernel: AbstractKernel
    target: AbstractTarget | None
    whitening: Whitening
    pool: np.ndarray | jax.Array
    method: str = "sal-mc"
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    history: dict[str, Any] = dataclasses.field(default_factory=dict)
    seconds: dict[str, float] = dataclasses.field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    pool_log_density: np.ndarray | None = None
    local: int = 0
    trajectory: Trajectory | None = None
    ladder: Ladder | None = None

    def __post_init__(self) -> None:
        if self.target is not None:
            object.__setattr__(self, "target", self.target.unbounded)
        dim, pool = self.kernel.dim, np.asarray(self.pool)
        if pool.ndim != 2 or pool.shape[1] != dim or len(pool) < 1:
            checks.fail("pool", f"an array of shape (n, {dim})", f"shape {pool.shape}")
        if self.whitening.mean.shape != (dim,):
            checks.fail("whitening", f"of dimension {dim}", self.whitening.mean.shape)
        if self.target is not None and self.target.dim != dim:
            told = f"{self.target.name} of dimension {self.target.dim}"
            checks.fail("target", f"of dimension {dim}, as the kernel is", told)
        object.__setattr__(self, "pool", pool)

    def sample(
        self,
        chains: int = 32,
        draws: int = 2000,
        seed: int = 0,
        *,
        metropolis: bool | None = None,
        tries: int = 1,
        start: Any = None,
        executor: AbstractExecutor | None = None,
        progress: bool | AbstractReporter = True,
    ) -> Draws:
        """Run chains of the kernel.

        Args:
            chains: how many, all at once. Fewer chains are the first of more.
            draws: of each chain; every step is kept.
            seed: the same seed gives the same draws, and more draws begin with the same ones.
            metropolis: whether proposals may be rejected, so that the target is left invariant. By
                default where that makes draws exact: where the kernel's corrections and the target
                are known. False for forward passes alone. True with a kernel that cannot be exact
                leaves the correction out, which a warning tells.
            tries: proposals for each step, of which one may be taken. More of them make better
                use of a kernel that proposes badly; only for kernels that do not look at the state.
            start: "pool" (or None) for points of the pool, "normal" for a Gaussian of the pool's
                mean and covariance, or an array (chains, dim).
            executor: who computes; it changes speed and never draws.
            progress: True for a bar, False for silence, or a reporter.

        Returns:
            Draws without burn-in. Forward passes do not call the target at all: `log_density` is
            None until `Draws.evaluated` finds it. If the run is interrupted by Ctrl-C or the
            target fails, the draws made until then, with a warning.
        """
        began = time.perf_counter()
        run, settings = self.begin(chains, draws, seed, metropolis, tries, start, executor)
        exact = run.transition.metropolis
        compile_seconds = time.perf_counter() - began
        positions = np.empty((chains, draws, self.kernel.dim), run.dtype)
        log_density = np.empty((chains, draws), run.dtype) if exact else None
        accepted = np.empty((chains, draws), bool)
        tally = Tally(run)
        began = time.perf_counter()
        with reporter(progress) as report, tally:
            report.start(self.title, draws)
            for block in run.blocks():
                at = slice(tally.draws, tally.draws + len(block))
                positions[:, at] = block.positions.swapaxes(0, 1)
                accepted[:, at] = block.accepted.T
                if log_density is not None:
                    log_density[:, at] = block.log_density.T
                tally.add(block)
                report.advance(len(block), **tally.figures())
        return Draws(
            positions=positions[:, : tally.draws],
            log_density=None if log_density is None else log_density[:, : tally.draws],
            seconds=time.perf_counter() - began,
            accepted=accepted[:, : tally.draws] if exact else None,
            method=self.method,
            target=None if self.target is None else self.target.outer,
            settings={**settings, "training": self.settings},
            compile_seconds=compile_seconds,
            seen=self.seen(),
            warnings=(*self.warnings, *tally.warnings()),
            sampler=self,
        )

    def transition(self, *, metropolis: bool | None = None, tries: int = 1) -> Transition:
        """The step of a chain as pure functions `init` and `step`, for loops of your own.

        Example:
            >>> import jax, jax.numpy as jnp, numpy as np, salmc
            >>> kernel = salmc.kernels.FlowKernel(jax.random.key(0), dim=2)
            >>> target = salmc.Target(lambda x: -0.5 * jnp.sum(x**2), dim=2)
            >>> whitening = salmc.kernels.Whitening.identity(2)
            >>> step = salmc.Sampler(kernel, target, whitening, np.zeros((1, 2))).transition()
            >>> state = step.init(jnp.zeros(2))
            >>> keys = jax.random.split(jax.random.key(0), 9)
            >>> state, infos = jax.lax.scan(lambda s, key: step.step(key, s), state, keys)
            >>> infos.position.shape
            (9, 2)
        """
        if metropolis is None:
            metropolis = self.kernel.exact and self.target is not None
        if not isinstance(metropolis, bool):
            checks.fail("metropolis", "True, False or None", metropolis)
        checks.integer("tries", tries, 1)
        if tries > 1 and not metropolis:
            checks.fail("tries", "1 without a Metropolis step", tries)
        if tries > 1 and (self.ladder is not None or not self.kernel.independent):
            whom = self.moved_by if self.ladder is not None else f"the kernel `{self.kernel.name}`"
            told = (
                f"1 for {whom}: several tries need a kernel with a known density whose "
                "proposals do not depend on the current point"
            )
            checks.fail("tries", told, tries)
        if metropolis and self.target is None:
            raise TargetError(
                "A Metropolis step needs the log density, and this kernel was loaded without its "
                "target: pass target=… when loading it."
            )
        local = self.local if metropolis and self.kernel.independent else 0
        return Transition(
            self.kernel,
            self.whitening,
            self.target,
            metropolis,
            tries,
            local,
            trajectory=self.trajectory if local else None,
            ladder=self.ladder if metropolis else None,
        )

    def begin(
        self,
        chains: int,
        draws: int,
        seed: int,
        metropolis: bool | None,
        tries: int,
        start: Any,
        executor: AbstractExecutor | None = None,
        densities: bool = False,
    ) -> tuple[ChainRun, dict[str, Any]]:
        """Chains that are ready to run, and how they are made, as JSON values.

        Raises:
            ArgumentError: if the arguments make no sense for this kernel.
            TargetError: if a Metropolis step cannot begin.
        """
        for name, value, least in (("chains", chains, 1), ("draws", draws, 1), ("seed", seed, 0)):
            checks.integer(name, value, least)
        transition = self.transition(metropolis=metropolis, tries=tries)
        transition = dataclasses.replace(transition, densities=densities)
        # Of JAX's generators, Threefry alone gives the same numbers for a key in every batch.
        start_key, chain_key = jax.random.split(jax.random.key(seed, impl="threefry2x32"))
        if start is not None and not isinstance(start, str):
            start = self.inward(checks.array("start", start))
        pool = self.inward(self.pool)
        points = _starting_points(self.whitening, pool, chains, start, start_key)
        try:
            state = _start(transition, points)
            values = np.asarray(state.log_density)
            run = ChainRun(transition, state, _chain_keys(chain_key, chains), draws, executor)
        except RUNTIME_ERRORS as error:
            raise nothing_left(
                f"The target failed at the start: {failure(error)}", error
            ) from error
        if transition.metropolis and self.target is not None and not np.any(values > -np.inf):
            raise TargetError(
                f"The density of `{self.target.name}` is zero or NaN at all {chains} starting "
                "points, so no Metropolis step can begin. Start where it is positive: pass an "
                "array as `start`."
            )
        return run, {
            "chains": chains,
            "draws": draws,
            "seed": seed,
            "metropolis": transition.metropolis,
            "tries": tries,
            "local": transition.local,
            "start": "pool" if start is None else start if isinstance(start, str) else "given",
            "kernel": self.kernel.name,
            "exact": transition.metropolis and self.kernel.exact,
        }

    def seen(self) -> np.ndarray:
        """Of the pool, as much as tells whether draws went everywhere that training did."""
        pool = np.asarray(self.pool)
        if len(pool) <= _SEEN_POINTS:
            return pool
        return pool[np.sort(np.random.default_rng(0).permutation(len(pool))[:_SEEN_POINTS])]

    def inward(self, points: Any) -> np.ndarray:
        """Points of the user's target in the coordinates without bounds."""
        if self.target is None or self.target.outer is self.target:
            return np.asarray(points)
        return np.asarray(self.target.inward(on_device(points)))

    @property
    def title(self) -> str:
        """For progress bars."""
        return self.method if self.target is None else f"{self.method} on {self.target.name}"


def _starting_points(
    whitening: Whitening, pool: np.ndarray, chains: int, start: Any, key: PRNGKeyArray
) -> Points:
    """Whitened: from the pool, from N(0, I), or as given; fewer are the first of more."""
    dim = pool.shape[1]
    if isinstance(start, str):
        checks.choice("start", start, ("pool", "normal"))
    # NumPy's generator has nothing to compile.
    generator = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    if isinstance(start, str) and start == "normal":
        return on_device(generator.standard_normal((chains, dim)))
    if start is None or isinstance(start, str):
        rounds = [generator.permutation(len(pool)) for _ in range(-(-chains // len(pool)))]
        points = on_device(pool[np.concatenate(rounds)[:chains]])
    else:
        points = on_device(start)
        if points.shape != (chains, dim):
            expectation = f"'pool', 'normal', or an array of shape ({chains}, {dim})"
            checks.fail("start", expectation, f"shape {points.shape}")
        if not np.all(np.isfinite(points)):
            checks.fail("start", "finite everywhere", "NaN or infinite entries")
    return whitening.whiten(points)


@compiled
def _start(transition: Transition, points: Points) -> ChainState:
    return transition.start(points)


def _chain_keys(key: PRNGKeyArray, chains: int) -> Any:
    """A key for each chain, which depends on its number alone."""
    return jax.vmap(jax.random.fold_in, (None, 0))(key, jnp.arange(chains, dtype=jnp.uint32))
