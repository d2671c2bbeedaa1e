"""The kernel's objective: its terms, one function each, and their sum as the settings weigh them.

    α_adv L_adv(x, x') + ½ α W₂²(x', x̃) + δ ‖Cov(x', x̃)‖²
        − λ E log q(x | ·) + ρ E H(log p − log q − c) + η E ½|v'|² / dim v

x: pool particles ("real"); x̃: the kernel's last outputs; x' = G(x̃, ξ) ("fake"). The first two terms
are eq. 8 of the paper. Gradients reach the kernel alone: never the critic, the pool or the target.
Points are whitened, D is the critic's score (a logit), s(a) = log(1 + eᵃ).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from salmc.kernels.base import AbstractKernel
from salmc.learning.settings import LearningSettings
from salmc.learning.transport import wasserstein
from salmc.target import Points, Scalar

Scores = Float[Array, " n"]

_ZERO_DENSITY = 50.0
"""How far below the rest log p − log q counts where p = 0. Only its sign reaches the gradient."""

_PENALTY_SHARE = 4
"""Gradient penalties are taken on every fourth point: they cost three times the rest."""

_CENTRE_LIMIT = 3.0
"""Log-ratios count in their mean up to this distance from their median."""


class Batch(NamedTuple):
    """What one step gives the kernel to learn from."""

    real: Points
    log_density: Float[Array, " n"]
    """log p at `real`."""
    conditions: Points
    """Where a kernel that looks at its state is supposed to come from when it goes to `real`."""
    inputs: Points
    """x̃_{t−1}."""
    noise: Float[Array, "n noise_dim"] | None
    """ξ; None where no term needs x'."""
    proposals: tuple[Points, Float[Array, " n"]] | None
    """From `real`, and log p there; made by the weights as they are, not differentiated."""


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
    regression_weight: Scalar,
) -> tuple[Scalar, Terms]:
    """The loss and its terms; those of weight 0 are left out.

    Args:
        kernel: with the weights to differentiate.
        critic: held fixed.
        batch: what to learn from.
        settings: the weights of the terms.
        regression_weight: 0 at the beginning of training, then `settings.regression`.
    """
    figures: dict[str, Scalar] = {}
    loss = jnp.zeros(())
    new = None
    if batch.noise is not None:
        new, velocities = kernel.push(batch.inputs, batch.noise)
        if velocities is not None and settings.velocity > 0.0:
            figures["velocity"] = 0.5 * jnp.mean(velocities**2)
            loss += settings.velocity * figures["velocity"]
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

    log_proposal, terms = _density_terms(kernel, batch, settings)
    figures |= terms
    loss += settings.likelihood * terms.get("likelihood", 0.0)
    loss += regression_weight * terms.get("regression", 0.0)
    return loss, Terms(figures, new, log_proposal)


def _density_terms(
    kernel: AbstractKernel, batch: Batch, settings: LearningSettings
) -> tuple[Float[Array, " n"] | None, dict[str, Scalar]]:
    """log q of the pool particles, and the two terms that are made of it."""
    wanted = settings.likelihood or settings.regression or settings.exact_refresh
    if not (kernel.tractable and wanted):
        return None, {}
    count, new, old = len(batch.real), batch.real, batch.conditions
    if settings.regression > 0.0 and batch.proposals is not None:
        # One pass over both; `real` is where the proposals come from.
        new = jnp.concatenate([new, batch.proposals[0]])
        old = jnp.concatenate([old, batch.real])
    log_proposal = kernel.log_densities(new, old)
    terms = {"likelihood": -jnp.mean(log_proposal[:count])}
    if settings.regression > 0.0 and batch.proposals is not None:
        log_density = jnp.concatenate([batch.log_density, batch.proposals[1]])
        terms["regression"] = log_ratio_regression(log_density, log_proposal, count, settings.huber)
    return log_proposal[:count], terms


def adversarial_critic_loss(form: str, real: Scores, fake: Scores) -> Scalar:
    """What the critic minimises, of its scores of real and fake points.

    logistic:       E s(−D(x)) + E s(D(x')), which is eq. 8 of the paper with log σ(D) for log D;
    relativistic:   E s(D(x') − D(x)), pairs of real and fake (Jolicoeur-Martineau 2018).
    """
    if form == "relativistic":
        return jnp.mean(jax.nn.softplus(fake - real))
    return jnp.mean(jax.nn.softplus(-real)) + jnp.mean(jax.nn.softplus(fake))


def adversarial_kernel_loss(form: str, real: Scores, fake: Scores) -> Scalar:
    """What the kernel minimises, of the critic's scores.

    logistic:       E s(−D(x')). It has the fixed point of eq. 8's E log(1 − σ(D(x'))), whose
                    gradient vanishes while the critic wins (Goodfellow et al. 2014);
    relativistic:   E s(D(x) − D(x')).
    """
    if form == "relativistic":
        return jnp.mean(jax.nn.softplus(real - fake))
    return jnp.mean(jax.nn.softplus(-fake))


def critic_objective(
    critic: Callable[[Points], Scores], real: Points, fake: Points, settings: LearningSettings
) -> Scalar:
    """What the critic minimises: its adversarial loss, and a penalty on some of the points."""
    scores, count = critic(jnp.concatenate([real, fake])), len(real)
    form, some = settings.adversarial_form, max(settings.batch // _PENALTY_SHARE, 1)
    loss = adversarial_critic_loss(form, scores[:count], scores[count:])
    if settings.penalty > 0.0:
        loss += settings.penalty * gradient_penalty(critic, real[:some], fake[:some])
    return loss


def gradient_penalty(critic: Callable[[Points], Scores], real: Points, fake: Points) -> Scalar:
    """R1 + R2 = ½ E|∇D(x)|² + ½ E|∇D(x')|²: without it the two networks circle for ever.

    Reference: Mescheder et al., "Which training methods for GANs do actually converge?", 2018.
    """
    slopes = jax.grad(lambda points: jnp.sum(critic(points)))(jnp.concatenate([real, fake]))
    squares = jnp.sum(slopes**2, axis=1)
    return 0.5 * (jnp.mean(squares[: len(real)]) + jnp.mean(squares[len(real) :]))


def cross_covariance(new: Points, old: Points) -> Scalar:
    """‖Cov(x', x̃)‖²_F between outputs and inputs, without bias: Σ_ab C¹_ab C²_ab.

    C¹ and C² are from the two halves of the batch. The plain square would have the expectation
    ‖Cov‖² + O(1/n) Var(x') Var(x̃), and pull the outputs together.
    """
    half = len(new) // 2

    def covariance(a: Array, b: Array) -> Array:
        return (a - jnp.mean(a, axis=0)).T @ (b - jnp.mean(b, axis=0)) / half

    first = covariance(new[:half], old[:half])
    second = covariance(new[half : 2 * half], old[half : 2 * half])
    return jnp.sum(first * second)


def figure_names(
    settings: LearningSettings, kernel: AbstractKernel, moves: bool
) -> tuple[str, ...]:
    """What a step reports, in order; `moves` says whether the pool takes exact moves."""
    tractable = kernel.tractable
    densities = settings.likelihood or settings.regression or settings.exact_refresh
    on = {
        "kernel_loss": True,
        "critic_loss": settings.adversarial,
        "adversarial": settings.adversarial,
        "wasserstein": settings.wasserstein,
        "decorrelation": settings.decorrelation,
        "likelihood": tractable and densities,
        "regression": settings.regression,
        "velocity": settings.velocity and settings.makes_outputs,
        "acceptance": settings.makes_proposals,
        "jump": settings.makes_proposals and not tractable,
        "move_acceptance": moves,
    }
    return tuple(name for name, wanted in on.items() if wanted)


def log_ratio_regression(
    log_density: Float[Array, " n"], log_proposal: Float[Array, " n"], count: int, huber: float
) -> Scalar:
    """E H(log p − log q − c) over pool particles (the first `count`) and proposals.

    log p − log q is one constant c if and only if q = p. Likelihood alone makes q cover the pool;
    this also takes q down where it proposes in vain, which is what costs acceptance. c is the mean
    over the pool, each ratio held to ±3 about the median; H is Huber's function, ½e² up to e = h
    and h (e − h/2) beyond.
    """
    positive = log_density > -jnp.inf
    ratio = jnp.where(positive, log_density, 0.0) - log_proposal
    pool, known = ratio[:count], positive[:count]
    median = jnp.nanmedian(jnp.where(known, pool, jnp.nan))
    deviation = jnp.clip(pool - median, -_CENTRE_LIMIT, _CENTRE_LIMIT)
    mean = jnp.sum(jnp.where(known, deviation, 0.0)) / jnp.maximum(jnp.sum(known), 1)
    centre = jax.lax.stop_gradient(median + mean)
    # Where p = 0 the error is a constant in value and −log q in its gradient.
    nowhere = jax.lax.stop_gradient(log_proposal) - log_proposal - _ZERO_DENSITY
    error = jnp.abs(jnp.where(positive, ratio - centre, nowhere))
    return jnp.mean(jnp.where(error < huber, 0.5 * error**2, huber * (error - 0.5 * huber)))
