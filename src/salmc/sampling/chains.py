"""Chains of a kernel: a pure `init` and `step`, and a block of steps as one program.

    x_{t+1} = G(x_t, ξ_t)                       forward passes
    x_{t+1} = G(x_t, ξ_t) or x_t                with a Metropolis-Hastings step

The kernel sees whitened points; what comes out is in the target's own coordinates. The randomness
of a step depends on its key alone, and the key on the chain and the number of the step: draws do
not depend on blocks, groups, threads, or on how many other chains there are.

If proposals do not look at x, those of many steps come from one batch, and only a tiny scan over
their weights w = p/q is left. With k tries for each step, one of them is picked with probability
w_j / W, W = Σ w, and taken with probability

    min{1, W / (W − w_j + w(x))}

which is exact for every k (multiple-try Metropolis with independent proposals), and the rule of
`salmc.metropolis` for k = 1. Each such step may be followed by local ones, in the kernel's latent
space or by a walk (`local_steps`): a chain that is where q is far too small need not wait there for
a proposal of its weight. A kernel without a correction leaves it out, min{1, p(x') / p(x)}: the
ratio that the paper reports, which is not exact unless its q happens to be symmetric.

Reference: Liu, Liang and Wong, "The multiple-try method and local optimization in Metropolis
sampling", JASA 2000; Martino, "A review of multiple try MCMC", 2018.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Integer, Key, PRNGKeyArray

from salmc.kernels.base import AbstractKernel
from salmc.kernels.layers import Whitening
from salmc.metropolis import log_q, log_ratio, step_keys, step_noise, taken
from salmc.sampling.chain_states import Ahead, ChainState, Info, Steps
from salmc.sampling.replicas import Ladder
from salmc.sampling.trajectories import Trajectory
from salmc.target import AbstractTarget, Point, Points

_LARGEST = 1e19
"""Whitened coordinates beyond it count as infinite; within, no squares or products overflow."""


class Transition(eqx.Module):
    """One Markov transition of a trained kernel, as pure functions.

    `init` and `step` are for one chain: `jax.jit`, `jax.vmap` and `jax.lax.scan` make of them what
    you like. `block` does the same for many chains and steps, at once where the kernel can.

    Attributes:
        kernel, whitening, target: what moves the chains. Without a target there is no Metropolis
            step, and log densities are NaN.
        metropolis: whether proposals may be rejected.
        tries: proposals for each step, of which one may be taken; independent kernels only.
        local: local steps after each step; independent kernels only.
        trajectory: what local steps follow, in place of a walk.
        ladder: temperatures of replicas that each chain has beside it; no local steps then.
        densities: whether forward passes find the log density of each draw; NaN if not.
    """

    kernel: AbstractKernel
    whitening: Whitening
    target: AbstractTarget | None
    metropolis: bool = eqx.field(static=True, default=True)
    tries: int = eqx.field(static=True, default=1)
    local: int = eqx.field(static=True, default=0)
    densities: bool = eqx.field(static=True, default=False)
    trajectory: Trajectory | None = None
    ladder: Ladder | None = None

    def init(self, position: Point) -> ChainState:
        """The state of a chain that begins at a position, in the target's own coordinates."""
        inside = position if self.target is None else self.target.inward(position)
        return _only(self.start(self.whitening.whiten(inside)[None]))

    def step(self, key: PRNGKeyArray, state: ChainState) -> tuple[ChainState, Info]:
        """One step of one chain."""
        moved, steps = self._steps(ChainState(*(value[None] for value in state)), key[None, None])
        where, value, accepted = (array[0, 0] for array in steps[:3])
        return _only(moved), Info(where, value, accepted)

    def start(self, points: Points) -> ChainState:
        """The state of chains at whitened points; densities only for a Metropolis step."""
        nothing, no_noise = jnp.zeros(len(points)), jnp.zeros((len(points), 0))
        if not self.metropolis:
            return ChainState(points, nothing, nothing, no_noise)
        log_p = self.log_densities(points)
        if self.local and self.kernel.latent:
            noise, log_scale = self.kernel.to_noise(points)
            return ChainState(points, log_p, log_p - log_q(noise, log_scale), noise)
        log_proposal = nothing
        if self.kernel.independent:
            log_proposal = self.kernel.log_densities(points, points)
        beside = no_noise if self.ladder is None else self.ladder.begun(points)
        return ChainState(points, log_p, log_p - log_proposal, beside)

    def block(
        self,
        state: ChainState,
        keys: Key[Array, " chains"],
        first: Integer[Array | np.ndarray, ""],
        length: int,
    ) -> tuple[ChainState, Steps]:
        """`length` steps of all chains, from step number `first` on."""
        return self._steps(state, step_keys(keys, first, length))

    def positions(self, state: ChainState) -> Float[Array, "*chains dim"]:
        """Where chains are, in the target's own coordinates."""
        points = self.whitening.colour(state.points)
        return points if self.target is None else self.target.outward(points, state.log_density)[0]

    def _steps(
        self, state: ChainState, keys: Key[Array, "steps chains"]
    ) -> tuple[ChainState, Steps]:
        noise, log_uniform = step_noise(keys, *self._randomness)
        if not self.metropolis:
            state, steps = self._forward(state, noise)
        elif self.ladder is not None:
            from salmc.sampling.replica_steps import with_replicas

            state, steps = with_replicas(self, state, noise, log_uniform)
        elif self.local:
            from salmc.sampling.local_steps import with_local_steps

            state, steps = with_local_steps(self, state, noise, log_uniform)
        elif self.kernel.independent:
            state, steps = self._independence(state, noise, log_uniform)
        else:
            state, steps = self._hastings(state, noise, log_uniform[..., 0])
        points, values = self.whitening.colour(steps.positions), steps.log_density
        if self.target is not None:
            points, values = self.target.outward(points, values)
        return state, steps._replace(positions=points, log_density=values)

    @property
    def width(self) -> int:
        """Points that one step of one chain asks the density of."""
        return self.tries if self.ladder is None else self.ladder.rungs

    @property
    def _randomness(self) -> tuple[int, int]:
        """Normal and uniform numbers of one step of one chain."""
        if self.ladder is not None and self.metropolis:
            return self.kernel.noise_dim + self.width * self.kernel.dim, 3 * self.width
        rows = (self.tries + 1 if self.tries > 1 else 1) + 2 * self.local
        return (self.tries + self.local) * self.kernel.noise_dim, rows

    def log_densities(self, points: Points) -> Float[Array, " n"]:
        """log p at whitened points; NaN where nobody asks for it."""
        if self.target is None or not (self.metropolis or self.densities):
            return jnp.full(len(points), jnp.nan)
        return self.target.log_densities(self.whitening.colour(points))

    def _forward(
        self, state: ChainState, noise: Float[Array, "steps chains noise_dim"]
    ) -> tuple[ChainState, Steps]:
        """Every proposal is taken, unless it is not finite: then the chain stays."""
        inputs, propose = self.kernel.forward_passes(noise)

        def step(points: Points, given: Any) -> tuple[Points, tuple[Array, Array]]:
            new = propose(given, points)
            valid = jnp.all(jnp.abs(new) < _LARGEST, axis=-1)
            points = jnp.where(valid[:, None], new, points)
            return points, (points, valid)

        last, (points, valid) = jax.lax.scan(step, state.points, inputs)
        values = self.log_densities(points.reshape(-1, points.shape[-1])).reshape(valid.shape)
        return state._replace(points=last), Steps(points, values, valid, jnp.sum(~valid))

    def _hastings(
        self,
        state: ChainState,
        noise: Float[Array, "steps chains noise_dim"],
        log_uniform: Float[Array, "steps chains"],
    ) -> tuple[ChainState, Steps]:
        """One proposal from each point, and the rule of `salmc.metropolis`."""

        def step(
            state: ChainState, given: tuple[Array, Array]
        ) -> tuple[ChainState, tuple[Array, Array, Array, Array]]:
            noise, log_uniform = given
            new, correction = self.kernel.propose(state.points, noise)
            valid = jnp.all(jnp.isfinite(new), axis=-1)
            if correction is None:
                correction = jnp.zeros(len(new))
            valid &= correction < jnp.inf
            log_p = self.log_densities(new)
            accepted = taken(log_uniform, log_ratio(log_p, state.log_density, correction, valid))
            state = state._replace(
                points=jnp.where(accepted[:, None], new, state.points),
                log_density=jnp.where(accepted, log_p, state.log_density),
            )
            return state, (state.points, state.log_density, accepted, jnp.sum(~valid))

        state, (points, values, accepted, invalid) = jax.lax.scan(step, state, (noise, log_uniform))
        return state, Steps(points, values, accepted, jnp.sum(invalid))

    def _independence(
        self,
        state: ChainState,
        noise: Float[Array, "steps chains tries_noise"],
        log_uniform: Float[Array, "steps chains rows"],
    ) -> tuple[ChainState, Steps]:
        """All proposals of all steps in one batch, then the accept scan."""
        ahead, steps = self.ahead(noise, log_uniform[..., 1:]), len(noise)

        def step(
            carry: tuple[Array, Array], inputs: tuple[Array, ...]
        ) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
            log_weight, origin = carry
            number, weight, total, others, log_uniform = inputs
            # Where the weights are all zero this is NaN or −inf: rejected.
            accepted = taken(log_uniform, total - jnp.logaddexp(others, log_weight))
            log_weight = jnp.where(accepted, weight, log_weight)
            origin = jnp.where(accepted, number, origin)
            return (log_weight, origin), (origin, accepted)

        # The scan, whose every step costs more than its arithmetic, only finds at which step the
        # point of each chain was proposed; 0 is where it began.
        numbers = jnp.arange(1, steps + 1)
        inputs = (numbers, ahead.log_weight, ahead.total, ahead.others, log_uniform[..., 0])
        start = (state.log_weight, jnp.zeros(state.log_weight.shape, numbers.dtype))
        (log_weight, _), (origin, accepted) = jax.lax.scan(step, start, inputs)
        points, values = (
            jnp.take_along_axis(jnp.concatenate([first[None], later]), rows, axis=0)
            for first, later, rows in (
                (state.points, ahead.points, origin[..., None]),
                (state.log_density, ahead.log_density, origin),
            )
        )
        state = ChainState(points[-1], values[-1], log_weight, state.beside)
        return state, Steps(points, values, accepted, ahead.invalid)

    def ahead(
        self,
        noise: Float[Array, "steps chains tries_noise"],
        log_uniform: Float[Array, "steps chains rows"],
    ) -> "Ahead":
        """The proposals of all steps in one batch, and of each step's the one that is picked."""
        steps, chains, tries = *noise.shape[:2], self.tries
        noise = noise.reshape(steps, chains * tries, -1)
        new, log_proposal = self.kernel.propose_ahead(noise)
        log_p = self.log_densities(new.reshape(-1, new.shape[-1])).reshape(log_proposal.shape)
        valid = jnp.all(jnp.isfinite(new), axis=-1) & jnp.isfinite(log_proposal)
        log_w = jnp.where(valid, log_p - log_proposal, -jnp.inf)
        new, noise = (a.reshape(steps, chains, tries, -1) for a in (new, noise))
        log_p, log_w = (values.reshape(steps, chains, tries) for values in (log_p, log_w))
        total, picked = _pick(log_w, log_uniform)
        others = jax.nn.logsumexp(jnp.where(jnp.arange(tries) == picked, -jnp.inf, log_w), -1)
        point, point_noise = (
            jnp.take_along_axis(a, picked[..., None], axis=2)[:, :, 0] for a in (new, noise)
        )
        point_p, point_w = (jnp.take_along_axis(v, picked, axis=2)[..., 0] for v in (log_p, log_w))
        return Ahead(point, point_noise, point_p, point_w, total, others, jnp.sum(~valid))


def _pick(
    log_w: Float[Array, "steps chains tries"], log_uniform: Float[Array, "steps chains rows"]
) -> tuple[Float[Array, "steps chains"], Int[Array, "steps chains 1"]]:
    """log W, and a try with probability w_j / W."""
    if log_w.shape[-1] == 1:
        return log_w[..., 0], jnp.zeros((*log_w.shape[:2], 1), int)
    # The largest of log w_j plus Gumbel noise, −log(−log U).
    picked = jnp.argmax(log_w - jnp.log(-log_uniform), axis=-1, keepdims=True)
    return jax.nn.logsumexp(log_w, axis=-1), picked


def _only(state: ChainState) -> ChainState:
    """The one chain of a state."""
    return ChainState(*(value[0] for value in state))
