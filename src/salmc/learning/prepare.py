"""What SAL-MC and AL-MC share: arguments checked at the door, and the way from state to kernel."""

from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from salmc import checks
from salmc.errors import ArgumentError
from salmc.kernels import KERNELS
from salmc.kernels.base import (
    AbstractKernel,
    AbstractTractableKernel,
    AbstractVolumePreservingKernel,
    is_exact,
)
from salmc.learning.calibration import calibrated
from salmc.learning.checkpoint import Checkpoint, Record, Restored
from salmc.learning.learned import Learned
from salmc.learning.loop import train
from salmc.learning.sal_scheme import SAL_SCHEME
from salmc.learning.scheme import Scheme
from salmc.learning.settings import LearningSettings, TrainingSettings, default_settings
from salmc.learning.state import Problem, TrainingState
from salmc.learning.transport import require_sinkhorn
from salmc.progress import AbstractReporter, reporter
from salmc.target import Points

_CALIBRATION = 3
"""Number of the calibration's key; `loop` has the smaller ones."""


def keys_of(seed: int, count: int) -> list[PRNGKeyArray]:
    """Keys for the parts of a run. By `fold_in`: one compiled program for any number of them."""
    key = jax.random.key(seed)
    return [jax.random.fold_in(key, i) for i in range(count)]


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


def find_settings(
    settings: LearningSettings | None, kernel: AbstractKernel, *, has_target: bool
) -> LearningSettings:
    """The settings given or the defaults, checked against kernel and target.

    Raises:
        ArgumentError: if a term needs what the kernel does not have, or sizes do not fit.
    """
    tractable = isinstance(kernel, AbstractTractableKernel)
    preserving = isinstance(kernel, AbstractVolumePreservingKernel)
    if settings is None:
        name = "flow" if tractable else "nice" if preserving else "mlp"
        settings = default_settings(name, kernel.dim)
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
        )
    if settings.velocity and not preserving:
        raise ArgumentError(
            f"The setting `velocity` needs a volume-preserving kernel, and `{kernel.name}` is "
            "none. Set it to 0, or use the nice kernel."
        )
    for name in ("likelihood", "regression", "exact_refresh"):
        known = is_exact(type(kernel)) if name == "exact_refresh" else tractable
        if getattr(settings, name) and not known:
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


def identity(
    method: str, kernel: AbstractKernel, settings: TrainingSettings, details: dict[str, Any]
) -> dict[str, Any]:
    """What makes a run this run, as JSON values."""
    return {
        "method": method,
        "kernel": {"name": kernel.name, **kernel.description()},
        "settings": settings.as_dictionary(),
        **details,
    }


def restored(
    checkpoint: str | Path | None, resume: bool, own_identity: dict[str, Any]
) -> Restored | None:
    """The checkpoint to go on from; None to begin, as where a run was killed before its first."""
    if resume and checkpoint is None:
        checks.fail("checkpoint", "a path, to resume from it", None)
    if not resume or checkpoint is None or not Path(checkpoint).expanduser().exists():
        return None
    return Restored(checkpoint, own_identity)


def learn(
    problem: Problem,
    settings: TrainingSettings,
    state: TrainingState,
    key: PRNGKeyArray,
    record: Record,
    *,
    method: str,
    details: dict[str, Any],
    scheme: Scheme = SAL_SCHEME,
    start: Points | np.ndarray,
    held: Points | None = None,
    checkpoint: str | Path | None = None,
    progress: bool | AbstractReporter = True,
) -> Learned:
    """Train, take the averaged weights, calibrate them."""
    cloud = np.asarray(start)
    saved = None
    if checkpoint is not None:
        own = identity(method, problem.kernel, settings, details)
        saved = Checkpoint(Path(checkpoint), own, problem.whitening, cloud)
    with reporter(progress) as report:
        state = train(
            problem,
            settings,
            state,
            key,
            record,
            scheme,
            held=held,
            report=report,
            checkpoint=saved,
        )
    # On few samples a flow ends by learning them by heart, and an adversarial game without a
    # fixed point swings: the best is not the last.
    weights = state.best if record.figure_kind in ("likelihood", "stay") else state.average
    kernel = problem.kernel_with(weights)
    if problem.is_calibrated(settings) and float(state.moments[-1, -1]) > 0:
        kernel = calibrated(kernel, state.moments, jax.random.fold_in(key, _CALIBRATION))
    return Learned(
        kernel=kernel,
        whitening=problem.whitening,
        pool=np.asarray(problem.whitening.colour(state.pool)),
        log_density=np.asarray(state.log_density),
        start=cloud,
        target=problem.target,
        method=method,
        settings=settings,
        details=details,
        history=record.history,
        seconds=record.seconds,
        warnings=tuple(record.warnings),
    )
