"""The terms of the objective, one function each, on batches of whitened points or their scores.

D is the critic's score (a logit), x a pool particle ("real"), x' = G(x̃, ξ) an output of the kernel
("fake"), s(a) = log(1 + eᵃ).
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from salmc.target import Points, Scalar

Scores = Float[Array, " n"]

_ZERO_DENSITY = 50.0
"""How far below the rest log p − log q counts where p = 0. Only its sign reaches the gradient."""

_CENTRE_LIMIT = 3.0
"""Log-ratios count in their mean up to this distance from their median."""


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
