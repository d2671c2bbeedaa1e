"""Where chains are, and what they did: the records that steps of chains take and give."""

from typing import NamedTuple

from jaxtyping import Array, Bool, Float, Int

from salmc.target import Point


class ChainState(NamedTuple):
    """Where chains are: n of them, or one, without the leading axis."""

    points: Float[Array, "*chains dim"]
    """Whitened; `Transition.positions` has them in the target's coordinates."""
    log_density: Float[Array, "*chains"]
    log_weight: Float[Array, "*chains"]
    """log p − log q; only kernels that do not look at the state use it."""
    beside: Float[Array, "*chains more"]
    """What else belongs to a chain: ξ with T(ξ) = x, where there are local steps in a latent space;
    its replicas at other temperatures, where there are any; empty elsewhere."""


class Steps(NamedTuple):
    """What chains did, step by step; the positions are the target's own."""

    positions: Float[Array, "*steps chains dim"]
    log_density: Float[Array, "*steps chains"]
    accepted: Bool[Array, "*steps chains"]
    """Without a Metropolis step, whether the proposal was finite."""
    invalid: Int[Array, ""]
    """Proposals that were not finite."""


class Ahead(NamedTuple):
    """Independent proposals of many steps: of each the point that was picked from its tries."""

    points: Float[Array, "*steps chains dim"]
    noise: Float[Array, "*steps chains noise_dim"]
    log_density: Float[Array, "*steps chains"]
    log_weight: Float[Array, "*steps chains"]
    total: Float[Array, "*steps chains"]
    """log W, of all tries."""
    others: Float[Array, "*steps chains"]
    """log (W − w), without the one that was picked."""
    invalid: Array
    """Proposals that were not finite."""


class Info(NamedTuple):
    """What one step of one chain tells."""

    position: Point
    log_density: Float[Array, ""]
    accepted: Bool[Array, ""]
