"""The kernel's whole objective, as the settings weigh its terms; those of weight 0 are left out.

    α_adv L_adv(x, x') + ½ α W₂²(x', x̃) + δ ‖Cov(x', x̃)‖²
        − λ E log q(x | ·) + ρ E H(log p − log q − c) + η E ½|v'|² / dim v

x: pool particles; x̃: the kernel's last outputs; x' = G(x̃, ξ). The first two terms are eq. 8 of
the paper. Gradients reach the kernel alone: never the critic, the pool or the target.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from salmc.kernels.base import (
    AbstractKernel,
    AbstractTractableKernel,
    AbstractVolumePreservingKernel,
)
from salmc.learning.losses import (
    adversarial_kernel_loss,
    cross_covariance,
    log_ratio_regression,
)
from salmc.learning.moves import Proposals
from salmc.learning.settings import LearningSettings
from salmc.learning.transport import wasserstein
from salmc.target import Points, Scalar


class Batch(NamedTuple):
    """What one step gives the kernel to learn from. Points are whitened."""

    real: Points
    log_density: Float[Array, " n"]
    """log p at `real`."""
    conditions: Points
    """Where a kernel that looks at its state is supposed to come from when it goes to `real`."""
    inputs: Points
    """x̃_{t−1}."""
    proposals: Proposals | None
    """From `real`; made by the weights as they are, not differentiated."""


class Terms(NamedTuple):
    """What comes out besides the loss."""

    figures: dict[str, Scalar]
    outputs: Points | None
    """x' = G(x̃, ξ)."""
    log_proposal: Float[Array, " n"] | None
    """log q(x | condition) at `real`."""


def kernel_objective(
    kernel: AbstractKernel,
    critic: Callable[[Points], Any] | None,
    batch: Batch,
    settings: LearningSettings,
    key: PRNGKeyArray,
    *,
    outputs: bool,
    regression_weight: Scalar,
) -> tuple[Scalar, Terms]:
    """The loss and its terms.

    Args:
        kernel: with the weights to differentiate.
        critic: held fixed.
        batch: what to learn from.
        settings: the weights of the terms.
        key: of the noise ξ.
        outputs: whether x' = G(x̃, ξ) is needed.
        regression_weight: 0 at the beginning of training, then `settings.regression`.
    """
    figures: dict[str, Scalar] = {}
    loss = jnp.zeros(())
    new = None
    if outputs and isinstance(kernel, AbstractVolumePreservingKernel):
        # Forwards alone: the inverse of a map that keeps p(x) N(v) keeps it, too.
        new, velocities = kernel.push(key, batch.inputs)
        if settings.velocity > 0.0:
            figures["velocity"] = 0.5 * jnp.mean(velocities**2)
            loss += settings.velocity * figures["velocity"]
    elif outputs:
        new = kernel.propose_batch(key, batch.inputs)
    if new is not None and critic is not None and settings.adversarial > 0.0:
        scores = jax.lax.stop_gradient(critic(batch.real))
        term = adversarial_kernel_loss(settings.adversarial_form, scores, critic(new))
        figures["adversarial"] = term
        loss += settings.adversarial * term
    if new is not None and settings.wasserstein > 0.0:
        term = wasserstein(settings.wasserstein_form, new, batch.inputs)
        figures["wasserstein"] = term
        loss += 0.5 * settings.wasserstein * term
    if new is not None and settings.decorrelation > 0.0:
        term = cross_covariance(new, batch.inputs)
        figures["decorrelation"] = term
        loss += settings.decorrelation * term

    log_proposal = None
    if isinstance(kernel, AbstractTractableKernel):
        log_proposal, terms = _density_terms(kernel, batch, settings)
        figures |= terms
        loss += settings.likelihood * terms.get("likelihood", 0.0)
        loss += regression_weight * terms.get("regression", 0.0)
    return loss, Terms(figures, new, log_proposal)


def _density_terms(
    kernel: AbstractTractableKernel, batch: Batch, settings: LearningSettings
) -> tuple[Float[Array, " n"] | None, dict[str, Scalar]]:
    """log q of the pool particles, and the two terms that are made of it."""
    count, proposals = len(batch.real), batch.proposals
    regresses = settings.regression > 0.0 and proposals is not None
    if not (regresses or settings.likelihood > 0.0 or settings.exact_refresh):
        return None, {}
    new, old = batch.real, batch.conditions
    if regresses and proposals is not None:
        # One pass over both; `real` is where the proposals come from.
        new = jnp.concatenate([new, proposals.points])
        old = jnp.concatenate([old, batch.real])
    log_proposal = kernel.log_densities(new, old)
    terms = {"likelihood": -jnp.mean(log_proposal[:count])}
    if regresses and proposals is not None:
        log_density = jnp.concatenate([batch.log_density, proposals.log_density])
        terms["regression"] = log_ratio_regression(log_density, log_proposal, count, settings.huber)
    return log_proposal[:count], terms
