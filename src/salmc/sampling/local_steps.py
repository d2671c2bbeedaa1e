"""Chains with local steps after each independent one: in a kernel's latent space, if it has one,

    ξ' = √(1 − ρ²) ξ + ρ ε,   x' = T(ξ'),   taken with min{1, w(x') / w(x)},   w = p/q

and else a walk in whitened coordinates,

    x' = x + ρ ε · 2.4/√d,   taken with min{1, p(x') / p(x)},

or where chains were tuned for it a trajectory along the gradient (`trajectories`), and after it a
move to an image, if the target has `symmetries`. All leave p invariant for every ρ, which is drawn
anew for each step. A chain that is where q is far too small walks on from there. Chains that need
none of this do not pay: see `metropolis.local_steps_needed`.
"""

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from salmc.metropolis import local_length, local_noise, log_q, log_ratio, taken
from salmc.sampling.chain_states import Ahead, ChainState, Steps
from salmc.sampling.chains import Transition
from salmc.sampling.trajectories import follow


def with_local_steps(
    transition: Transition,
    state: ChainState,
    noise: Float[Array, "steps chains all_noise"],
    log_uniform: Float[Array, "steps chains rows"],
) -> tuple[ChainState, Steps]:
    """Independent proposals in one batch; after each of them, local ones from where it led."""
    if not transition.kernel.latent:
        # Its density is asked at each local proposal; that of a latent one comes with its noise.
        transition = dataclasses.replace(transition, kernel=transition.kernel.prepared())
    size = transition.tries * transition.kernel.noise_dim
    rows = log_uniform.shape[-1] - 2 * transition.local
    ahead = transition.ahead(noise[..., :size], log_uniform[..., 1:rows])
    fresh = noise[..., size:].reshape(*noise.shape[:2], transition.local, -1)
    uniforms = log_uniform[..., rows:].reshape(*noise.shape[:2], transition.local, 2)

    def step(
        state: ChainState, given: tuple[Ahead, Array, Array, Array]
    ) -> tuple[ChainState, tuple[Array, Array, Array, Array]]:
        ahead, log_uniform, fresh, uniforms = given
        ratio = ahead.total - jnp.logaddexp(ahead.others, state.log_weight)
        first = taken(log_uniform, ratio)
        noise = ahead.noise if transition.kernel.latent else state.beside
        begun = ChainState(ahead.points, ahead.log_density, ahead.log_weight, noise)
        state = _choose(first, begun, state)
        invalid = jnp.zeros((), int)
        for i in range(transition.local):
            share = 1.0 - jnp.exp(uniforms[:, i, 0])
            new, ratio, valid = _propose(transition, state, fresh[:, i], share)
            accepted = taken(uniforms[:, i, 1], ratio)
            state = _choose(accepted, new, state)
            invalid += jnp.sum(~valid)
            if transition.trajectory is not None:
                first |= accepted  # it is what moves these chains
                state = _at_images(transition, state, fresh[:, i])
        return state, (state.points, state.log_density, first, invalid)

    inputs = (
        ahead._replace(invalid=jnp.zeros(len(noise))),
        log_uniform[..., 0],
        fresh,
        uniforms,
    )
    state, (points, values, accepted, invalid) = jax.lax.scan(step, state, inputs)
    return state, Steps(points, values, accepted, ahead.invalid + jnp.sum(invalid))


def _propose(
    transition: Transition,
    state: ChainState,
    fresh: Float[Array, "chains noise_dim"],
    share: Float[Array, " chains"],
) -> tuple[ChainState, Float[Array, " chains"], Bool[Array, " chains"]]:
    """A local proposal of each chain, its log ratio, and whether it is finite."""
    kernel = transition.kernel
    if kernel.latent:
        noise = local_noise(state.beside, fresh, share)
        new, log_scale = kernel.from_noise(noise)
        valid = jnp.all(jnp.isfinite(new), axis=-1) & jnp.isfinite(log_scale)
        log_p = transition.log_densities(new)
        log_w = log_p - log_q(noise, -log_scale)
        ratio = log_ratio(log_w, state.log_weight, 0.0, valid)
        return ChainState(new, log_p, log_w, noise), ratio, valid
    if transition.trajectory is not None:
        ends = follow(
            transition.log_densities,
            transition.trajectory,
            state.points,
            fresh[:, -kernel.dim :],
            share,
        )
        finite = jnp.all(jnp.isfinite(ends.points), axis=-1)
        log_w = ends.log_density - kernel.log_densities(ends.points, ends.points)
        ratio = log_ratio(ends.log_density, state.log_density, ends.log_correction, finite)
        new_state = ChainState(ends.points, ends.log_density, log_w, state.beside)
        # One that leads out of the support is no fault of a kernel's.
        return new_state, ratio, jnp.ones_like(finite)
    step = local_length(share) * 2.4 / kernel.dim**0.5
    new = state.points + step[:, None] * fresh[:, -kernel.dim :]
    valid = jnp.all(jnp.isfinite(new), axis=-1)
    log_p = transition.log_densities(new)
    log_w = log_p - kernel.log_densities(new, new)
    ratio = log_ratio(log_p, state.log_density, 0.0, valid)
    return ChainState(new, log_p, log_w, state.beside), ratio, valid


def _at_images(
    transition: Transition, state: ChainState, fresh: Float[Array, "chains noise_dim"]
) -> ChainState:
    """Chains at images of where they are, where there are any and these are taken.

    A momentum leaves over what a kernel picks its component by: normal numbers.
    """
    assert transition.trajectory is not None
    symmetries, kernel = transition.trajectory.symmetries, transition.kernel
    if symmetries is None:
        return state
    share, uniform = jax.scipy.special.ndtr(fresh[:, 0]), jax.scipy.special.ndtr(fresh[:, 1])
    new = symmetries(state.points, share)
    log_p = transition.log_densities(new)
    log_w = log_p - kernel.log_densities(new, new)
    ratio = log_ratio(log_p, state.log_density, 0.0, jnp.all(jnp.isfinite(new), axis=-1))
    moves = taken(jnp.log(uniform), ratio)
    return _choose(moves, ChainState(new, log_p, log_w, state.beside), state)


def _choose(which: Bool[Array, " chains"], new: ChainState, old: ChainState) -> ChainState:
    """The new state of the chains that moved, the old one of the others."""
    return ChainState(
        *(
            jnp.where(which if a.ndim == 1 else which[:, None], a, b)
            for a, b in zip(new, old, strict=True)
        )
    )
