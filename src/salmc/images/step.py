"""One step of AL-MC on images: Algorithm 1 of the paper with real images in place of particles.

    x       real images
    x̃       where the kernel's own chains are; some begin anew, from real images or from noise
    x'      G(x̃, ξ), with ξ = 0 for a share of the chains, which keep that for good

    critic  E s(−D(x)) + E s(D(x')) + ½ γ E|∇D(x)|²                              eq. 8, R1
    kernel  E s(−D(x')) + ½ α W₂²(x', x̃)                                         eq. 8, eq. 11
                + κ E(1 − ⟨E(x'), z'⟩) + β E|D(E(x)) − x|²/d
                + υ log E exp(−2 |E(x₁) − E(x₂)|²)

s(a) = log(1 + eᵃ). Eq. 8's W₂ term keeps the chain's outputs as a set near its inputs. The κ and β
terms make encoder and decoder inverses of each other, from either side: an image has the code z'
that it was made from, and a real image comes back from its code. Then a turn of the code is all
that a transition without noise does, and that is smooth; without the two, such chains stop or jump.
(The way |x' − x̃|² itself is no substitute: the encoder learns to undo the turn, and the chain
stands still.) The υ term spreads the codes of real images evenly over the sphere, on which noise is
even, too, so that each kind of image takes its share of the draws: with codes that are spread
alike, the β term bounds W₂² between data and draws (Tolstikhin et al., "Wasserstein auto-encoders",
2018). The form of the υ term is that of Wang and Isola (2020).
Chains that go on for many steps under the critic's eyes are what keeps long chains from drifting.
"""

import dataclasses
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, UInt8

from salmc.images.critic import ImageCritic
from salmc.images.settings import ImageSettings
from salmc.kernels.image import AbstractImageKernel, Codes
from salmc.kernels.layers import numpy_generator
from salmc.learning.losses import adversarial_critic_loss, adversarial_kernel_loss
from salmc.learning.state import Weights, flat_weights
from salmc.learning.transport import closed_form
from salmc.target import Points, Scalar

FIGURES = (
    "kernel_loss",
    "critic_loss",
    "wasserstein",
    "quiet_step",
    "consistency",
    "reconstruction",
    "uniformity",
)

_SHARE = 4
"""R1 is taken on every fourth image: it costs three times the rest."""

_AVERAGE_START = 10.0
"""The average forgets its beginning: its decay is (t + 1)/(t + 10) until that exceeds `average`."""


class ImageState(eqx.Module):
    """All that one step hands to the next.

    Attributes:
        weights, average: of the kernel: as they are, and averaged.
        critic: weights of the critic.
        kernel_optimiser, critic_optimiser: of Optax.
        inputs: x̃, where the chains are.
        rate: the learning rate at its peak, lowered by rollbacks.
        step, steps: how many were done, and how many will be.
    """

    weights: Weights
    average: Weights
    critic: Float[Array, " critic_parameters"]
    kernel_optimiser: Any
    critic_optimiser: Any
    inputs: Points
    rate: Float[Array, ""]
    step: Int[Array, ""]
    steps: Int[Array, ""]


class ImageProblem(eqx.Module):
    """What is trained: a kernel and a critic with their first weights."""

    kernel: AbstractImageKernel
    critic: ImageCritic

    def kernel_with(self, weights: Weights) -> AbstractImageKernel:
        """The kernel with other weights."""
        return _with_weights(self.kernel, weights)

    def critic_with(self, weights: Weights) -> ImageCritic:
        """The critic with other weights."""
        return _with_weights(self.critic, weights)


class Terms(NamedTuple):
    """What comes out besides the kernel's loss."""

    outputs: Points
    wasserstein: Scalar
    quiet_step: Scalar
    consistency: Scalar
    reconstruction: Scalar
    uniformity: Scalar


def first_state(problem: ImageProblem, settings: ImageSettings, key: PRNGKeyArray) -> ImageState:
    """The state before the first step: chains that begin in noise."""
    weights, critic = flat_weights(problem.kernel), flat_weights(problem.critic)
    noise = numpy_generator(key).standard_normal((settings.batch, problem.kernel.dim))
    rule = _optimiser(settings)
    return ImageState(
        weights=weights,
        average=weights,
        critic=critic,
        kernel_optimiser=rule.init(weights),
        critic_optimiser=rule.init(critic),
        inputs=jnp.asarray(np.clip(noise, -1.0, 1.0), dtype=float),
        rate=jnp.asarray(settings.learning_rate, dtype=float),
        step=jnp.zeros((), dtype=int),
        steps=jnp.asarray(settings.steps),
    )


def training_step(
    problem: ImageProblem,
    settings: ImageSettings,
    state: ImageState,
    real: UInt8[Array, "batch dim"],
    key: PRNGKeyArray,
) -> tuple[ImageState, Float[Array, " figures"], Bool[Array, ""]]:
    """One step; its randomness depends on the key and the number of the step alone.

    Returns:
        The state, the figures of `FIGURES`, and whether both updates were finite. If not, weights
        stay as they were and all chains begin anew.
    """
    restart_key, noise_key = jax.random.split(jax.random.fold_in(key, state.step))
    images = from_bytes(real)
    inputs = _restarted(restart_key, state.inputs, images, settings.restart)
    noise = problem.kernel.sample_noise(noise_key, settings.batch, settings.noise)
    noise = noise.at[: settings.quiet_chains].set(0.0)
    critic = problem.critic_with(state.critic)

    def kernel_loss(weights: Weights) -> tuple[Scalar, Terms]:
        kernel = problem.kernel_with(weights)
        return _kernel_objective(kernel, critic, settings, images, inputs, noise)

    def critic_loss(weights: Weights, fake: Points) -> Scalar:
        return _critic_objective(problem.critic_with(weights), settings, images, fake)

    (loss, terms), gradient = jax.value_and_grad(kernel_loss, has_aux=True)(state.weights)
    # Against the outputs of the kernel as it was: one forward pass serves both updates.
    judged, critic_gradient = jax.value_and_grad(critic_loss)(state.critic, terms.outputs)
    fine = jnp.isfinite(loss + judged + jnp.sum(gradient) + jnp.sum(critic_gradient))
    rule, rate = _optimiser(settings), _learning_rate(settings, state)
    change, memory = rule.update(jnp.where(fine, gradient, 0.0), state.kernel_optimiser)
    critic_change, critic_memory = rule.update(
        jnp.where(fine, critic_gradient, 0.0), state.critic_optimiser
    )
    rate = jnp.where(fine, rate, 0.0)
    weights = optax.apply_updates(state.weights, -rate * change)
    decay = jnp.minimum(settings.average, (state.step + 1.0) / (state.step + _AVERAGE_START))
    state = dataclasses.replace(
        state,
        weights=weights,
        average=decay * state.average + (1.0 - decay) * weights,
        critic=optax.apply_updates(state.critic, -rate * critic_change),
        kernel_optimiser=memory,
        critic_optimiser=critic_memory,
        inputs=jnp.where(fine, terms.outputs, images),
    )
    figures = jnp.stack([loss, judged, *terms[1:]])
    return dataclasses.replace(state, step=state.step + 1), figures, fine


def from_bytes(images: UInt8[Array, "n dim"]) -> Points:
    """0 … 255 ↦ [−1, 1]."""
    return jnp.asarray(images, dtype=float) / 127.5 - 1.0


def _kernel_objective(
    kernel: AbstractImageKernel,
    critic: ImageCritic,
    settings: ImageSettings,
    real: Points,
    inputs: Points,
    noise: Array,
) -> tuple[Scalar, Terms]:
    count, quiet = len(inputs), settings.quiet_chains
    some = real[: len(real) // 2]
    found = kernel.encode(jnp.concatenate([inputs, some]))
    codes = kernel.move(found[:count], noise)
    images = kernel.decode(jnp.concatenate([codes, found[count:]]))
    new, back = images[:count], images[count:]
    scores = critic(new)
    # The logistic form does not look at the real scores.
    loss = adversarial_kernel_loss("logistic", scores, scores)
    cosine = jnp.sum(kernel.encode(new) * jax.lax.stop_gradient(codes), axis=1)
    terms = Terms(
        outputs=jax.lax.stop_gradient(new),
        wasserstein=closed_form(new, inputs),
        quiet_step=jnp.mean((new[:quiet] - inputs[:quiet]) ** 2) if quiet else jnp.zeros(()),
        consistency=jnp.mean(1.0 - cosine),
        reconstruction=jnp.mean((back - some) ** 2),
        uniformity=_uniformity(found[count:]),
    )
    loss += 0.5 * settings.wasserstein * terms.wasserstein
    loss += settings.consistency * terms.consistency
    loss += settings.reconstruction * terms.reconstruction
    loss += settings.uniformity * terms.uniformity
    return loss, terms


def _uniformity(codes: Codes) -> Scalar:
    """log E exp(−2 |a − b|²) over pairs of different codes; they have length 1."""
    count = len(codes)
    near = jnp.exp(4.0 * (codes @ codes.T - 1.0)) * (1.0 - jnp.eye(count))
    return jnp.log(jnp.sum(near) / (count * (count - 1)))


def _critic_objective(
    critic: ImageCritic, settings: ImageSettings, real: Points, fake: Points
) -> Scalar:
    scores = critic(jnp.concatenate([real, fake]))
    loss = adversarial_critic_loss("logistic", scores[: len(real)], scores[len(real) :])
    if settings.penalty > 0.0:
        some = real[: max(len(real) // _SHARE, 1)]
        slopes = jax.grad(lambda points: jnp.sum(critic(points)))(some)
        loss += 0.5 * settings.penalty * jnp.mean(jnp.sum(slopes**2, axis=1))
    return loss


def _restarted(key: PRNGKeyArray, inputs: Points, real: Points, share: float) -> Points:
    which_key, noise_key = jax.random.split(key)
    chance = jax.random.uniform(which_key, (len(inputs), 1))
    noise = jnp.clip(jax.random.normal(noise_key, inputs.shape), -1.0, 1.0)
    # One further on: a chain that begins in an image is not compared with that very image's row.
    inputs = jnp.where(chance < share, jnp.roll(real, 1, axis=0), inputs)
    return jnp.where(chance < 0.5 * share, noise, inputs)


def _optimiser(settings: ImageSettings) -> optax.GradientTransformation:
    """Adam without its rate."""
    return optax.scale_by_adam(b1=settings.momentum, b2=0.99)


def _learning_rate(settings: ImageSettings, state: ImageState) -> Float[Array, ""]:
    """A cosine decay to `final_rate`."""
    cosine = 0.5 * (1.0 + jnp.cos(jnp.pi * jnp.clip(state.step / state.steps, 0.0, 1.0)))
    return state.rate * (settings.final_rate + (1.0 - settings.final_rate) * cosine)


def _with_weights(module: Any, weights: Weights) -> Any:
    dynamic, static = eqx.partition(module, eqx.is_inexact_array)
    return eqx.combine(ravel_pytree(dynamic)[1](weights), static)
