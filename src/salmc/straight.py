"""Straight coordinates: funnels and bends undone by exact maps.

A log scale s and effects θ with the spread e^{as} around centres c(r), that other coordinates r
have, are a funnel that nothing affine makes round. In y,

    θ = c(r) + e^{a (s − m)} (y − c(r)),    log |∂x/∂y| = Σ a (s − m),

it is: what people call the non-centred form of a hierarchical model. Data hold effects in places d
of their own, which they come to where the scale is wide: the funnel opens only so far. With
g = a (s − m) + Σ b_k (x_k − m_k), as several scales may multiply, and a turn t,

    θ = B c(r) + (1 − B) d + e^{G} (y − c(r)),    G = g − ½ log(1 + e^{2(g − t)}),
    B = 1 / (1 + e^{2(g − t)}),                   log |∂x/∂y| = Σ G,

the mean and spread of a normal effect given its scales: centred where data speak, non-centred where
they do not. t = ∞ is the plain form.

A ridge that bends, as a banana does or Rosenbrock's valley, is straight in

    x_j = y_j + b (x_k − m_k)²,    log |∂x/∂y| = 0.

Deep in a neck θ − c(r) is a small difference of large numbers. Where rounding loses it, log p no
longer falls as y goes anywhere, and a region that has next to no mass would seem to have all of it:
points that do not come back to themselves are outside of what can be computed, and `outward` says
so.

Reference: Gorinova, Moore and Hoffman, "Automatic reparameterisation of probabilistic programs",
ICML 2020, who learn such powers from the model's text and by gradients; here draws show them
(`diagnostics.straightening.search`).
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

_MOST_LOST = 0.1
"""By rounding, of the width of a coordinate."""

NEVER = 1e6
"""A turn that nothing comes to."""


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
        further: b, with rows of the effects and columns as of the weights; m_k are the origins.
        turns: t, `NEVER` where the funnel goes on opening.
        anchors: d.
    """

    scales: Int[Array, " k"]
    middles: Float[Array, " k"]
    powers: Float[Array, "k dim"]
    weights: Float[Array, "k dim dim"]
    shifts: Float[Array, "k dim"]
    bends: Float[Array, "k dim dim"]
    origins: Float[Array, "k dim"]
    widths: Float[Array, "k dim"]
    further: Float[Array, "k dim dim"]
    turns: Float[Array, "k dim"]
    anchors: Float[Array, "k dim"]

    @classmethod
    def of(cls, parts: "Sequence[Straight]") -> "Straight":
        """One after the other: the first is the nearest to x."""
        joined = [
            np.concatenate([np.asarray(getattr(part, field.name)) for part in parts])
            for field in dataclasses.fields(cls)
        ]
        return cls(*map(jnp.asarray, joined))

    @property
    def moves(self) -> Bool[np.ndarray, " dim"]:
        """Which coordinates are others in y than in x."""
        powers, bends = np.asarray(self.powers), np.asarray(self.bends)
        return np.any(powers != 0.0, axis=0) | np.any(bends != 0.0, axis=(0, 2))

    @property
    def governs(self) -> Bool[np.ndarray, " dim"]:
        """Which coordinates others go with: scales, parts of centres, what bends."""
        found = np.zeros(self.powers.shape[1], bool)
        found[np.asarray(self.scales)] = True
        for each in (self.weights, self.bends, self.further):
            found |= np.any(np.asarray(each) != 0.0, axis=(0, 1))
        return found

    def outward(self, y: Float[Array, "*n dim"]) -> tuple[Array, Array, Bool[Array, "*n"]]:
        """x, log |∂x/∂y|, and whether rounding left enough of y in x."""

        def through(carry: tuple[Array, Array, Array], one: Straight) -> tuple[Any, None]:
            x, log_slope, kept = carry
            moved, growth = _moved(jnp, one, x, 1.0)
            lost = jnp.finfo(x.dtype).eps * (jnp.abs(moved) + jnp.abs(moved - x)) * jnp.exp(-growth)
            touched = (one.powers != 0.0) | jnp.any(one.bends != 0.0, axis=1)
            kept &= jnp.all(~touched | (lost <= _MOST_LOST * one.widths), axis=-1)
            return (moved, log_slope + jnp.sum(growth, axis=-1), kept), None

        start = (y, jnp.zeros(y.shape[:-1], y.dtype), jnp.ones(y.shape[:-1], dtype=bool))
        # One body for all maps, which a loop that is written out would compile one by one.
        (x, log_slope, kept), _ = jax.lax.scan(through, start, self, reverse=True)
        return x, log_slope, kept

    def outward_points(self, y: np.ndarray) -> np.ndarray:
        """x alone, by NumPy."""
        for one in reversed(self._each()):
            y, _ = _moved(np, one, y, 1.0)
        return y

    def _each(self) -> list[Any]:
        count = range(len(self.scales))
        return [
            jax.tree.map(lambda leaf, i=i: np.asarray(leaf, np.float64)[i], self) for i in count
        ]

    def inward(self, x: Any) -> Any:
        """y, of (…, dim) points; of NumPy's by NumPy, which has nothing to compile."""
        if isinstance(x, np.ndarray):
            for one in self._each():
                x, _ = _moved(np, one, x, -1.0)
            return x
        return jax.lax.scan(lambda x, one: (_moved(jnp, one, x, -1.0)[0], None), x, self)[0]


def _moved(xp: Any, one: Any, x: Any, sign: float) -> tuple[Any, Any]:
    """Through one map, one way or the other; and the logarithm of each coordinate's growth."""
    effects = one.powers != 0.0
    inner = x @ one.weights.T + one.shifts
    scale = int(one.scales) if xp is np else one.scales
    growth = one.powers * (x[..., scale, None] - one.middles)
    growth = growth + (x - one.origins) @ one.further.T
    past = xp.logaddexp(0.0, 2.0 * (growth - one.turns))
    growth, kept = xp.where(effects, growth - 0.5 * past, 0.0), xp.exp(-past)
    outer = kept * inner + (1.0 - kept) * one.anchors
    there, back = (inner, outer) if sign > 0.0 else (outer, inner)
    moved = xp.where(effects, back + xp.exp(sign * growth) * (x - there), x)
    # What bends is not what bends it, so that it is the same before and after.
    return moved + sign * ((x - one.origins) ** 2 @ one.bends.T), growth
