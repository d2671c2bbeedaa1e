"""Straight coordinates: funnels and bends undone by exact maps.

A log scale s and effects θ with the spread e^{as} around centres c(r), that other coordinates r
have, are a funnel that nothing affine makes round. In y,

    θ = c(r) + e^{a (s − m)} (y − c(r)),    log |∂x/∂y| = Σ a (s − m),

it is: what people call the non-centred form of a hierarchical model. Where data hold effects in
places of their own, a smaller power a suits them better, and each effect has its own.

A ridge that bends, as a banana does or Rosenbrock's valley, is straight in

    x_j = y_j + b (x_k − m_k)²,    log |∂x/∂y| = 0.

Deep in a neck θ − c(r) is a small difference of large numbers. Where rounding loses it, log p no
longer falls as y goes anywhere, and a region that has next to no mass would seem to have all of it:
points that do not come back to themselves are outside of what can be computed, and `outward` says
so.

Reference: Gorinova, Moore and Hoffman, "Automatic reparameterisation of probabilistic programs",
ICML 2020, who learn such powers from the model's text and by gradients; here draws show them
(`diagnostics.straightening`).
"""

import dataclasses
from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

_MOST_LOST = 0.1
"""By rounding, of the width of a coordinate."""


class Straight(eqx.Module):
    """So many maps, one after the other; each of a funnel, or of a bend.

    Attributes:
        scales: s of each, the number of a coordinate.
        middles: m.
        powers: a of each coordinate; 0 for those that the funnel leaves as they are.
        weights, shifts: c(r) = weights r + shift, with rows of the effects, and columns of none of
            them, nor of s.
        bends, origins: b of each pair, whose rows are of no coordinate that has a column; and m_k.
        widths: of y − c(r), or of what is left of y_j; 1 for others.
    """

    scales: Int[Array, " k"]
    middles: Float[Array, " k"]
    powers: Float[Array, "k dim"]
    weights: Float[Array, "k dim dim"]
    shifts: Float[Array, "k dim"]
    bends: Float[Array, "k dim dim"]
    origins: Float[Array, "k dim"]
    widths: Float[Array, "k dim"]

    @classmethod
    def of(cls, parts: "Sequence[Straight]") -> "Straight":
        """One after the other: the first is the nearest to x."""
        joined = [
            np.concatenate([np.asarray(getattr(part, field.name)) for part in parts])
            for field in dataclasses.fields(cls)
        ]
        return cls(*map(jnp.asarray, joined))

    def outward(self, y: Float[Array, "*n dim"]) -> tuple[Array, Array, Bool[Array, "*n"]]:
        """x, log |∂x/∂y|, and whether rounding left enough of y in x."""
        x, log_slope, kept = y, jnp.zeros(y.shape[:-1]), jnp.ones(y.shape[:-1], dtype=bool)
        for i in reversed(range(len(self.scales))):
            moved, growth = self._moved(i, x, 1.0)
            back, _ = self._moved(i, moved, -1.0)
            kept &= jnp.all(jnp.abs(back - x) <= _MOST_LOST * self.widths[i], axis=-1)
            x, log_slope = moved, log_slope + jnp.sum(growth, axis=-1)
        return x, log_slope, kept

    def inward(self, x: Float[Array, "*n dim"]) -> Float[Array, "*n dim"]:
        """y."""
        for i in range(len(self.scales)):
            x, _ = self._moved(i, x, -1.0)
        return x

    def _moved(self, i: int, x: Array, sign: float) -> tuple[Array, Array]:
        """Through one map, one way or the other; and the logarithm of each coordinate's growth."""
        centres = x @ self.weights[i].T + self.shifts[i]
        growth = self.powers[i] * (x[..., self.scales[i], None] - self.middles[i])
        moved = centres + jnp.exp(sign * growth) * (x - centres)
        moved = jnp.where(self.powers[i] != 0.0, moved, x)
        # What bends is not what bends it, so that it is the same before and after.
        return moved + sign * ((x - self.origins[i]) ** 2 @ self.bends[i].T), growth
