"""AL-MC: adversarially learned sampling, from given samples.

The loop of Algorithm 1 without its self-learning module: real samples x are given, so that no
density is needed, no particle is adjusted and nothing is exact. What is left is the conditional
GAN of eq. 8 with the W₂ term of eq. 11; for a kernel with a known proposal density, its likelihood.
A tenth of the samples is held out, to tell when to stop.
"""

import hashlib
from pathlib import Path
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from salmc import checks
from salmc.kernels.base import AbstractKernel
from salmc.kernels.layers import Whitening
from salmc.learning.engine import Record
from salmc.learning.learner import Learner, find_kernel, learning_settings
from salmc.learning.sal_mc import begin, find_critic, method_of
from salmc.learning.settings import LearningSettings
from salmc.progress import AbstractReporter
from salmc.sampling.sampler import Sampler

_FEWEST = 20


def al_mc(
    samples: Any,
    kernel: str | AbstractKernel = "mlp",
    *,
    settings: LearningSettings | None = None,
    critic: eqx.Module | None = None,
    whitening: Whitening | None = None,
    held_out: float = 0.1,
    seed: int = 0,
    progress: bool | AbstractReporter = True,
    checkpoint: str | Path | None = None,
    resume: bool = False,
) -> Sampler:
    """Train a kernel on samples.

    Args:
        samples: (n, dim), at least 20.
        kernel: a name, or a kernel with its first weights.
        settings: how to train; by default what suits the kernel. Terms that need a density are
            switched off.
        critic: a module (n, dim) ↦ (n,) in place of the default critic, or of pairs; see `sal_mc`.
        whitening: the coordinates to learn in; by default from the samples' mean and covariance.
        held_out: share of the samples that is only looked at to judge the kernel.
        seed: the same seed gives the same kernel.
        progress: True for a bar, False for silence, or a reporter.
        checkpoint: a file in which the state is saved now and then.
        resume: go on from `checkpoint` if it is there.

    Raises:
        ArgumentError: if the samples are not finite points, or too few.
        OutputError: if the checkpoint cannot be written, or is another run's.
    """
    points = checked_samples(samples)
    checks.real("held_out", held_out, above=0.0, at_most=0.9)
    learner = Learner("al-mc", seed, checkpoint=checkpoint, resume=resume, progress=progress)
    dim = points.shape[1]
    made = find_kernel(kernel, dim, learner.key(0))
    chosen = learning_settings(settings, made, has_target=False)
    judge = find_critic(critic, chosen, dim, learner.key(1))
    if whitening is None:
        whitening = Whitening.fit(jnp.asarray(points))

    details: dict[str, Any] = {"held_out": held_out, "samples": _digest(points)}
    points = np.random.default_rng(seed).permutation(points)
    count = max(4, round(held_out * len(points)))
    white = whitening.whiten(jnp.asarray(points))
    method = method_of(chosen)(made, judge, chosen, None, whitening, held=white[:count])
    pool = white[count:]
    state, record = begin(method, learner.key(2), pool, jnp.zeros(len(pool))), Record()
    found = learner.restored(method, details)
    if found is not None:
        state, record = found.state(state), found.record
    return learner.finish(method, state, record, points, details)


def checked_samples(samples: Any) -> np.ndarray:
    """Finite points, enough of them, or one sentence."""
    try:
        points = np.asarray(samples, dtype=np.asarray(jnp.zeros(())).dtype)
    except (TypeError, ValueError, OverflowError):
        checks.fail("samples", "an array of numbers", samples)
    if points.ndim != 2 or len(points) < _FEWEST or points.shape[1] < 1:
        expectation = f"an array of shape (n, dim) with n ≥ {_FEWEST}"
        checks.fail("samples", expectation, f"shape {points.shape}")
    if not np.all(np.isfinite(points)):
        checks.fail("samples", "finite everywhere", "NaN or infinite entries")
    return points


def _digest(points: np.ndarray) -> str:
    """Tells one set of samples from another."""
    return hashlib.sha256(np.ascontiguousarray(points).tobytes()).hexdigest()[:16]
