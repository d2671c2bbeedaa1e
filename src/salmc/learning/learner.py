"""From what a user asks for to a trained `Sampler`: what SAL-MC, AL-MC and A-NICE-MC share.

Arguments are checked at the door; a pool is filled while the training compiles, or a checkpoint is
gone on from; the engine trains; the weights that are kept are calibrated, reviewed and bound.
"""

import contextlib
import dataclasses
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from salmc import checks
from salmc.errors import ArgumentError
from salmc.kernels import KERNELS
from salmc.kernels.base import AbstractKernel
from salmc.kernels.layers import Whitening
from salmc.learning.calibration import calibrated
from salmc.learning.checkpoint import Checkpoint, Restored
from salmc.learning.engine import Record, advance_chunk, traced, train
from salmc.learning.method import AbstractMethod, TrainingState
from salmc.learning.pool import Filler, Pool, fill_pool, straightened, without_edges
from salmc.learning.review import review
from salmc.learning.settings import LearningSettings, default_settings
from salmc.learning.transport import require_sinkhorn
from salmc.learning.worth import Worth
from salmc.programs import target_failures
from salmc.progress import AbstractReporter, PartReporter, reporter
from salmc.sampling.files.coordinates import arrays_of
from salmc.sampling.sampler import Sampler
from salmc.sampling.trajectories import Trajectory
from salmc.target import AbstractTarget

_CALIBRATION, _ASKING = 3, 4
"""Numbers of the calibrations' keys; `engine` has the smaller ones."""


@dataclasses.dataclass(frozen=True)
class Learner:
    """One run of a method.

    Attributes:
        method: its name.
        seed: of all of it.
        checkpoint, resume: where states are saved, and whether to go on from there.
        progress: True for a bar, False for silence, or a reporter.
        effective: draws that will be wanted, if it is known: training ends when no more of it pays.
    """

    method: str
    seed: int
    checkpoint: str | Path | None = None
    resume: bool = False
    progress: bool | AbstractReporter = True
    effective: int | None = None

    def __post_init__(self) -> None:
        checks.integer("seed", self.seed, 0)
        if self.resume and self.checkpoint is None:
            checks.fail("checkpoint", "a path, to resume from it", None)

    def key(self, number: int) -> PRNGKeyArray:
        """Of a part of the run. By `fold_in`: one compiled program for any number of them."""
        return jax.random.fold_in(jax.random.key(self.seed), number)

    @target_failures()
    def from_density(
        self,
        make: Callable[[Whitening, AbstractTarget], Any],
        begin: Callable[..., Any],
        mover: Filler,
        details: dict[str, Any],
        *,
        settle: bool = True,
        pool: Pool | None = None,
    ) -> Sampler:
        """Fill the pool, or go on from a checkpoint, and train.

        Args:
            make: the method, once the coordinates are known, and the target in them.
            begin: (method, key, pool, log density) ↦ its first state.
            mover: what fills the pool.
            details: what makes this run this run besides its settings, as JSON values.
            settle: whether exact moves settle the pool; if not, the mover moves all of it.
            pool: one that is filled already.
        """
        dim = mover.target.dim
        empty = make(Whitening.identity(dim), mover.target)
        settings, size = empty.settings, empty.settings.pool_size

        def of_zeros(method: Any) -> Any:
            return begin(method, self.key(3), jnp.zeros((size, dim)), jnp.zeros(size))

        found = self.restored(empty, details)
        if found is not None:
            method = make(found.whitening, found.target(mover.target))
            state = found.state(of_zeros(method))
            return self.finish(method, state, found.record, found.start, details)
        record = Record()
        ahead = compile_ahead(empty, of_zeros) if settle else None
        with reporter(self.progress) as report:
            filled = pool or fill_pool(
                mover.target,
                self.key(2),
                size,
                mover,
                steps=settings.mover_steps,
                particles=settings.mover_particles,
                settle=settle,
                report=PartReporter(report),
            )
        target = mover.target if filled.target is None else filled.target
        if settle and pool is None and filled.target is None:
            target, filled = straightened(*without_edges(target, filled), self.key(5))
        if filled.trajectory is not None:
            record.trajectory = [float(number) for number in jax.tree.leaves(filled.trajectory)]
        record.seconds.update(filled.seconds)
        record.warnings.extend(filled.warnings)
        with record.timed("compile"):
            if ahead is not None:
                ahead.join()
        coordinates = filled.whitening or Whitening.fit(filled.positions, filled.covariance)
        method = make(coordinates, target)
        whitened = method.whitening.whiten(filled.positions)
        state = begin(method, self.key(3), whitened, filled.log_density)
        return self.finish(method, state, record, np.asarray(filled.start), details)

    def restored(self, method: Any, details: dict[str, Any]) -> Restored | None:
        """The checkpoint to go on from; None to begin, as where a run was killed early."""
        if not self.resume or self.checkpoint is None:
            return None
        if not Path(self.checkpoint).expanduser().exists():
            return None
        return Restored(self.checkpoint, self.identity(method, details))

    def identity(self, method: Any, details: dict[str, Any]) -> dict[str, Any]:
        """What makes a run this run, as JSON values."""
        return {
            "method": self.method,
            "kernel": {"name": method.kernel.name, **method.kernel.description()},
            "settings": method.settings.as_dictionary(),
            "seed": self.seed,
            **details,
        }

    def finish(
        self, method: Any, state: Any, record: Record, start: np.ndarray, details: dict[str, Any]
    ) -> Sampler:
        """Train, take the weights that are kept, calibrate and review them, bind them."""
        key, saved = self.key(4), None
        if self.checkpoint is not None:
            identity = self.identity(method, details)
            coordinates = arrays_of(method.target)
            saved = Checkpoint(
                Path(self.checkpoint), identity, method.whitening, start, coordinates
            )
        watch = None
        if self.effective is not None:
            worth = Worth(self.effective, method.settings.batch)

            def watch(*_: Any) -> None:
                worth.watch(record)

        with reporter(self.progress) as report:
            state = train(method, state, key, record, report, checkpoint=saved, watch=watch)
        # On few samples a flow ends by learning them by heart, and an adversarial game without a
        # fixed point swings: the best is not the last.
        best = record.figure_kind in ("likelihood", "stay")
        kernel, pool = method.kernel_with(state.best if best else state.average), state.memory
        if getattr(method, "is_calibrated", False):
            with record.timed("calibration"):
                kernel = self._calibrated(method, kernel, pool, key)
        points, values = method.whitening.colour(pool.points), pool.log_density
        if method.target is not None:
            points, values = method.target.outward(points, values)
        sampler = Sampler(
            kernel=kernel,
            target=method.target,
            whitening=method.whitening,
            pool=np.asarray(points),
            method=self.method,
            settings={"seed": self.seed, **details, **method.settings.as_dictionary()},
            history=record.history,
            seconds=record.seconds,
            warnings=tuple(record.warnings),
            pool_log_density=None if method.target is None else np.asarray(values),
        )
        if method.target is None:
            return sampler
        reviewed = review(sampler, start)
        if not (reviewed.local and record.trajectory):
            return reviewed
        # Where the kernel's own proposals leave chains in need of local steps, these are the best.
        step_size, length = record.trajectory
        return dataclasses.replace(reviewed, trajectory=Trajectory.of(step_size, int(length)))

    def _calibrated(self, method: Any, kernel: Any, pool: Any, key: PRNGKeyArray) -> Any:
        """With the pool's moments, and its components where the density says."""
        if kernel.connected and float(pool.moments[-1, -1]) > 0:
            kernel = calibrated(kernel, pool.moments, jax.random.fold_in(key, _CALIBRATION))
        if not kernel.places or method.target is None:
            return kernel
        from salmc.learning.asked import asked

        return asked(method, kernel, jax.random.fold_in(key, _ASKING))


def compile_ahead(
    method: AbstractMethod, state_of: Callable[[AbstractMethod], TrainingState]
) -> threading.Thread:
    """Begin to compile what `train` will run, on a thread; XLA compiles outside Python's lock.

    The program depends on shapes alone, which are known before the first particle moves: `state_of`
    makes a state of any values. Join the thread before training, which would compile it again.
    """

    def work() -> None:
        # Whatever is wrong here is wrong in training too, where it is told properly.
        with contextlib.suppress(Exception):
            # A chunk of no steps does nothing but compile. With all that `train` gives, as an
            # argument that is left out makes another program.
            advance_chunk(traced(method), state_of(method), jax.random.key(0), jnp.array(0), None)

    thread = threading.Thread(target=work, name="salmc-compile-ahead")
    thread.start()
    return thread


def find_kernel(kernel: str | AbstractKernel, dim: int, key: PRNGKeyArray) -> AbstractKernel:
    """A kernel by its name, with its defaults; or the one given, checked."""
    if isinstance(kernel, str):
        made: Any = KERNELS[checks.choice("kernel", kernel, tuple(KERNELS))]
        return made(key, dim)
    if not isinstance(kernel, AbstractKernel):
        checks.fail("kernel", "a name or a kernel", kernel)
    if kernel.dim != dim:
        checks.fail("kernel", f"of dimension {dim}", f"one of dimension {kernel.dim}")
    return kernel


def learning_settings(
    settings: LearningSettings | None, kernel: AbstractKernel, *, has_target: bool
) -> LearningSettings:
    """The settings given, or the defaults, checked against kernel and target.

    Raises:
        ArgumentError: if a term needs what the kernel does not have, or sizes do not fit.
    """
    if settings is None:
        settings = default_settings(kernel, kernel.dim)
    if not isinstance(settings, LearningSettings):
        checks.fail("settings", "LearningSettings", settings)
    if not has_target:
        # Without a density there is nothing to regress on and no exact move; samples stay.
        settings = settings.replace(
            regression=0.0,
            exact_refresh=False,
            refresh=0.0,
            mixture_components=0,
            pool_move="exact",
            **({"energy": 0.0} if settings.sees_pairs else {}),
        )
    if settings.sees_pairs and kernel.training != "velocities":
        raise ArgumentError(
            "Settings for pairs of points need a kernel that moves points and velocities, and "
            f"`{kernel.name}` does not. Use LearningSettings, or the nice kernel."
        )
    if settings.velocity and not kernel.volume_preserving:
        raise ArgumentError(
            f"The setting `velocity` needs a volume-preserving kernel, and `{kernel.name}` is "
            "none. Set it to 0, or use the nice kernel."
        )
    known = {"likelihood": kernel.tractable, "regression": kernel.tractable}
    for name, has in {**known, "exact_refresh": kernel.exact}.items():
        if getattr(settings, name) and not has:
            raise ArgumentError(
                f"The setting `{name}` needs a kernel with a known proposal density, and "
                f"`{kernel.name}` has none. Set it to 0, or use the flow kernel."
            )
    if settings.wasserstein > 0.0 and settings.wasserstein_form == "sinkhorn":
        require_sinkhorn()
    if has_target:
        least = 1 if settings.pool_move == "mover" else 2
        fits = settings.pool_size % settings.batch == 0
        if not fits or settings.pool_size < least * settings.batch:
            expectation = f"a multiple of `batch`, {settings.batch}, and at least {least} of them"
            checks.fail("pool_size", expectation, settings.pool_size)
        if 2 * settings.mixture_components > settings.pool_size:
            checks.fail("mixture_components", "at most half the pool", settings.mixture_components)
    return settings
