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
from salmc.kernels.whitening import Whitening
from salmc.learning.checkpoint import Record
from salmc.learning.critic import Critic
from salmc.learning.learned import Learned
from salmc.learning.prepare import find_kernel, find_settings, identity, keys_of, learn, restored
from salmc.learning.settings import LearningSettings
from salmc.learning.state import Problem, first_state
from salmc.progress import AbstractReporter

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
) -> Learned:
    """Train a kernel on samples.

    Args:
        samples: (n, dim), at least 20.
        kernel: a name, or a kernel with its first weights.
        settings: how to train; by default what suits the kernel. Terms that need a density are
            switched off.
        critic: a module (n, dim) ↦ (n,) in place of the default critic.
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
    points = _checked(samples)
    checks.integer("seed", seed, 0)
    checks.real("held_out", held_out, above=0.0, at_most=0.9)
    dim = points.shape[1]
    keys = keys_of(seed, 4)
    kernel = find_kernel(kernel, dim, keys[0])
    settings = find_settings(settings, kernel, has_target=False)
    if critic is None and settings.adversarial > 0.0:
        critic = Critic(keys[1], dim)
    if whitening is None:
        whitening = Whitening.fit(jnp.asarray(points))

    details: dict[str, Any] = {"seed": seed, "held_out": held_out, "samples": _digest(points)}
    found = restored(checkpoint, resume, identity("al-mc", kernel, settings, details))
    points = np.random.default_rng(seed).permutation(points)
    count = max(4, round(held_out * len(points)))
    white = whitening.whiten(jnp.asarray(points))
    held, pool = white[:count], white[count:]

    problem = Problem(kernel, critic, None, None, whitening)
    state = first_state(problem, settings, keys[2], pool, jnp.zeros(len(pool)))
    record = Record()
    if found is not None:
        state, record = found.state(state), found.record
    return learn(
        problem,
        settings,
        state,
        keys[3],
        record,
        method="al-mc",
        details=details,
        start=points,
        held=held,
        checkpoint=checkpoint,
        progress=progress,
    )


def _checked(samples: Any) -> np.ndarray:
    try:
        points = np.asarray(samples, dtype=np.asarray(jnp.zeros(())).dtype)
    except (TypeError, ValueError):
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
