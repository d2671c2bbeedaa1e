"""Noise with a discrete part: one number of ξ picks a component, which places the others.

    k ~ w,   z   ↦   m_k + L_k z

A generator is continuous in its noise. From one connected cloud it reaches modes that lie apart
only by strewing draws on the way between them; from a cloud for each of them it need not. And what
a network adds to z is in units of the component, not of the whole target, whose modes may be far
narrower than it.

Components are placed by the pool before training (`learning.places`); no gradient reaches them.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from salmc.metropolis import choice
from salmc.programs import on_device
from salmc.target import Points

_NEVER = -30.0
"""Logit of a component that is not in use; −∞ would make a vector of weights that is not finite."""


class PickedNoise(eqx.Module):
    """k components, of which some may not be in use.

    Attributes:
        logits: log w.
        means, factors: m and L; what is above the diagonal of L is not looked at.
    """

    logits: Float[Array, " k"]
    means: Float[Array, "k dim"]
    factors: Float[Array, "k dim dim"]

    @classmethod
    def of(
        cls, components: int, weights: np.ndarray, means: np.ndarray, factors: np.ndarray
    ) -> "PickedNoise":
        """Given components, and others up to their number that are never picked."""
        count, dim = means.shape
        logits = np.full(components, _NEVER)
        logits[:count] = np.maximum(np.log(weights), _NEVER)
        rest = components - count
        places = np.concatenate([means, np.zeros((rest, dim))])
        shapes = np.concatenate([factors, np.tile(np.eye(dim), (rest, 1, 1))])
        return cls(*(on_device(part) for part in (logits, places, shapes)))

    @classmethod
    def single(cls, components: int, dim: int) -> "PickedNoise":
        """N(0, I) alone."""
        return cls.of(components, np.ones(1), np.zeros((1, dim)), np.eye(dim)[None])

    @property
    def used(self) -> int:
        """Components in use; not inside `jit`."""
        return int(np.sum(np.asarray(self.logits) > _NEVER))

    def in_use(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Weights, means and factors of these, in double precision; not inside `jit`."""
        parts = (self.logits, self.means, self.factors)
        logits, means, factors = (np.asarray(part, dtype=np.float64) for part in parts)
        used = logits > _NEVER
        weights = np.exp(logits[used] - np.max(logits))
        return weights / np.sum(weights), means[used], np.tril(factors[used])

    def pick(self, number: Float[Array, " n"]) -> Int[Array, " n"]:
        """A component for each normal number."""
        # Rounded, the weights may sum to less than 1.
        return jnp.minimum(choice(self.logits, number), jnp.sum(self.logits > _NEVER) - 1)

    def place(self, which: Int[Array, " n"], points: Points) -> Points:
        """m_k + L_k z."""
        factors = jnp.tril(self.factors)[which]
        return self.means[which] + jnp.einsum("nij,nj->ni", factors, points)
