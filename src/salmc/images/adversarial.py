"""One step of AL-MC on images: Algorithm 1 of the paper with real images in place of particles.

    x       real images
    x̃       where the kernel's own chains are; some begin anew, from real images or from noise
    x'      G(x̃, ξ), with ξ = 0 for a share of the chains, which keep that for good

    critic  E s(−D(x)) + E s(D(x')) + ½ γ E|∇D(x)|²                              eq. 8, R1
    kernel  E s(−D(x')) + ½ α W₂²(x', x̃)                                         eq. 8, eq. 11
                + κ E(1 − ⟨E(x'), z'⟩) + β E|D(E(x)) − x|²/d
                + υ log E exp(−2 |E(x₁) − E(x₂)|²)

s(a) = log(1 + eᵃ). Eq. 8's W₂ term keeps the chain's outputs as a set near its inputs. The κ term
makes the encoder an inverse of the decoder: an image has the code z' that it was made from. Then a
turn of the code is all that a transition without noise does, and that is smooth; without, such
chains stop or jump. (The way |x' − x̃|² itself is no substitute: the encoder learns to undo the
turn, and the chain stands still.) It also keeps the decoder from making one image of many codes.
The kernel refines codes until they are inverse to rounding (`kernels.image`), for which the κ term
has to bring them near only.

The β and υ terms are off by default. The β term brings real images back from their codes, the υ
term spreads these evenly over the sphere, on which noise is even, too (its form is that of Wang and
Isola, 2020): with codes that are spread alike, the β term bounds W₂² between data and draws
(Tolstikhin et al., "Wasserstein auto-encoders", 2018).

With `augmentation` the critic sees T(x) and T(x') in place of x and x' (`augmentation`), so that it
does not learn some hundreds of images by heart: the more of the real ones it is sure of, the more
they are changed.
Chains that go on for many steps under the critic's eyes are what keeps long chains from drifting.
"""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray, UInt8

from salmc.images.augmentation import adapted, changed
from salmc.images.critic import ImageCritic
from salmc.images.settings import ImageSettings
from salmc.kernels.image import AbstractImageKernel, Codes, from_bytes
from salmc.kernels.layers import numpy_generator
from salmc.learning.method import (
    AbstractMethod,
    StepResult,
    TrainingState,
    Weights,
    descend,
    first_state,
    kernel_step,
    learning_rate,
)
from salmc.learning.objective import adversarial_critic_loss, adversarial_kernel_loss
from salmc.learning.transport import closed_form
from salmc.metropolis import normal
from salmc.target import Points, Scalar

_SHARE = 4
"""R1 is taken on every fourth image: it costs three times the rest."""


class Terms(NamedTuple):
    """What comes out besides the kernel's loss."""

    outputs: Points
    wasserstein: Scalar
    quiet_step: Scalar
    consistency: Scalar
    reconstruction: Scalar
    uniformity: Scalar

    def figures(self) -> dict[str, Scalar]:
        """The terms by name."""
        return dict(zip(self._fields[1:], self[1:], strict=True))


class ImageAdversarial(AbstractMethod):
    """What is trained, and one step of it; see `AbstractMethod`."""

    kernel: AbstractImageKernel
    critic: ImageCritic
    settings: ImageSettings = eqx.field(static=True)
    target: None = None

    @property
    def figure_names(self) -> tuple[str, ...]:
        return ("kernel_loss", "critic_loss", *Terms._fields[1:], "augmentation")

    def begin(self, key: PRNGKeyArray) -> TrainingState:
        """The state before the first step: chains that begin in noise, images as they are."""
        noise = numpy_generator(key).standard_normal((self.settings.batch, self.kernel.dim))
        return first_state(self, jnp.asarray(np.clip(noise, -1.0, 1.0), dtype=float), jnp.zeros(()))

    def step(
        self, state: TrainingState, key: PRNGKeyArray, data: UInt8[Array, "batch dim"]
    ) -> StepResult:
        """One step on real images; if an update is not finite, all chains begin anew."""
        settings = self.settings
        keys = jax.random.split(jax.random.fold_in(key, state.step), 4)
        restart_key, noise_key, *view_keys = keys
        images = from_bytes(data)
        inputs = _restarted(restart_key, state.inputs, images, settings.restart)
        noise = settings.noise**0.5 * normal(noise_key, (settings.batch, self.kernel.noise_dim))
        noise = noise.at[: settings.quiet_chains].set(0.0)
        critic = self.critic_with(state.critic)

        def view(points: Points, key: PRNGKeyArray) -> Points:
            """What the critic sees of images."""
            if settings.augmentation == 0.0:
                return points
            return changed(key, points, self.kernel.shape, state.memory)

        def kernel_loss(weights: Weights) -> tuple[Scalar, Terms]:
            kernel = self.kernel_with(weights)
            return _kernel_objective(
                kernel, lambda new: critic(view(new, view_keys[0])), settings, images, inputs, noise
            )

        def critic_loss(weights: Weights, fake: Points) -> tuple[Scalar, Scalar]:
            real = view(images, view_keys[1])
            # As the kernel was judged: views of its images serve both updates.
            fake = view(fake, view_keys[0])
            return _critic_objective(self.critic_with(weights), settings, real, fake)

        (loss, terms), gradient = jax.value_and_grad(kernel_loss, has_aux=True)(state.weights)
        # Against the outputs of the kernel as it was: one forward pass serves both updates.
        (judged, sure), critic_gradient = jax.value_and_grad(critic_loss, has_aux=True)(
            state.critic, terms.outputs
        )
        # Both networks are updated, or none.
        both, rate = loss + judged, learning_rate(settings, state)
        fine = jnp.isfinite(both + jnp.sum(gradient) + jnp.sum(critic_gradient))
        both = jnp.where(fine, both, jnp.nan)
        state, _ = kernel_step(settings, state, both, gradient, rate)
        critic_weights, critic_memory, _ = descend(
            settings, state.critic, state.critic_optimiser, both, critic_gradient, rate
        )
        state = dataclasses.replace(
            state,
            best=state.average,
            critic=critic_weights,
            critic_optimiser=critic_memory,
            inputs=jnp.where(fine, terms.outputs, images),
            memory=adapted(state.memory, sure, settings.augmentation),
            step=state.step + 1,
        )
        figures = {"kernel_loss": loss, "critic_loss": judged, **terms.figures()}
        return state, {**figures, "augmentation": state.memory}, fine


def _kernel_objective(
    kernel: AbstractImageKernel,
    critic: Callable[[Points], Array],
    settings: ImageSettings,
    real: Points,
    inputs: Points,
    noise: Array,
) -> tuple[Scalar, Terms]:
    count, quiet, nothing = len(inputs), settings.quiet_chains, jnp.zeros(())
    codes = kernel.move(jax.lax.stop_gradient(kernel.encode(inputs)), noise)
    # Terms on the codes of real images are dear, and left out where they do not count.
    known = settings.reconstruction > 0.0 or settings.uniformity > 0.0
    some = real[: len(real) // 2]
    found = kernel.encode(some) if known else codes[:0]
    images = kernel.decode(jnp.concatenate([codes, found]))
    new, back = images[:count], images[count:]
    scores = critic(new)
    # The logistic form does not look at the real scores.
    loss = adversarial_kernel_loss("logistic", scores, scores)
    cosine = jnp.sum(kernel.encode(new) * jax.lax.stop_gradient(codes), axis=1)
    terms = Terms(
        outputs=jax.lax.stop_gradient(new),
        wasserstein=closed_form(new, inputs),
        quiet_step=jnp.mean((new[:quiet] - inputs[:quiet]) ** 2) if quiet else nothing,
        consistency=jnp.mean(1.0 - cosine),
        reconstruction=jnp.mean((back - some) ** 2) if known else nothing,
        uniformity=_uniformity(found) if known else nothing,
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
) -> tuple[Scalar, Scalar]:
    """The loss, and how sure the critic is of real images: E sign D(x)."""
    scores = critic(jnp.concatenate([real, fake]))
    loss = adversarial_critic_loss("logistic", scores[: len(real)], scores[len(real) :])
    if settings.penalty > 0.0:
        some = real[: max(len(real) // _SHARE, 1)]
        slopes = jax.grad(lambda points: jnp.sum(critic(points)))(some)
        loss += 0.5 * settings.penalty * jnp.mean(jnp.sum(slopes**2, axis=1))
    return loss, jnp.mean(jnp.sign(jax.lax.stop_gradient(scores[: len(real)])))


def _restarted(key: PRNGKeyArray, inputs: Points, real: Points, share: float) -> Points:
    which_key, noise_key = jax.random.split(key)
    chance = jax.random.uniform(which_key, (len(inputs), 1))
    noise = jnp.clip(jax.random.normal(noise_key, inputs.shape), -1.0, 1.0)
    # One further on: a chain that begins in an image is not compared with that very image's row.
    inputs = jnp.where(chance < share, jnp.roll(real, 1, axis=0), inputs)
    return jnp.where(chance < 0.5 * share, noise, inputs)
