"""One funnel in standard units: what governs the spread of which coordinates, and how.

The formula is that of `salmc.straight`; here it acts on clouds of the host.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from salmc.diagnostics.point_sets import Cloud, with_one
from salmc.diagnostics.straightening.search import Units
from salmc.straight import NEVER, Straight

LARGEST = 60.0
"""Of exponents."""


class Funnel(NamedTuple):
    """A scale s, its m effects, and the r coordinates that are neither."""

    scale: int
    members: np.ndarray
    rest: np.ndarray
    powers: Float[np.ndarray, " m"]
    weights: Float[np.ndarray, "r_and_one m"]
    """Of the centres, the shift last."""
    further: Float[np.ndarray, "r m"]
    turns: Float[np.ndarray, " m"]
    anchors: Float[np.ndarray, " m"]

    @classmethod
    def plain(
        cls,
        scale: int,
        members: np.ndarray,
        rest: np.ndarray,
        powers: np.ndarray,
        weights: np.ndarray,
    ) -> "Funnel":
        """One that never turns, of a single scale."""
        none, count = np.zeros((len(rest), len(members))), len(members)
        return cls(
            scale, members, rest, powers, weights, none, np.full(count, NEVER), np.zeros(count)
        )

    def growth(self, units: Cloud) -> tuple[Cloud, Cloud]:
        """G of each effect, and how much of its centre it keeps, B."""
        growth = units[:, [self.scale]] * self.powers + units[:, self.rest] @ self.further
        return turned(np.clip(growth, -LARGEST, LARGEST), self.turns)

    def straighten(self, units: Cloud) -> Cloud:
        """y."""
        moved = units.copy()
        centres = with_one(units[:, self.rest]) @ self.weights
        moved[:, self.members] = centres + self.away(units)
        return moved

    def away(self, units: Cloud) -> Cloud:
        """y − c(r), of the effects alone."""
        growth, kept = self.growth(units)
        centres = kept * (with_one(units[:, self.rest]) @ self.weights)
        return np.exp(-growth) * (units[:, self.members] - centres - (1.0 - kept) * self.anchors)

    def in_own_units(self, cloud: Units) -> Straight:
        """The map of the cloud's own coordinates."""
        middle, width, dim = cloud.middle, cloud.width, len(cloud.middle)
        members, rest = self.members, self.rest
        flat = {name: np.zeros(dim) for name in ("powers", "shift", "anchors")}
        turns, widths = np.full(dim, NEVER), np.ones(dim)
        weights, further = np.zeros((dim, dim)), np.zeros((dim, dim))
        flat["powers"][members] = self.powers / width[self.scale]
        scaled = width[members, None] * self.weights[:-1].T / width[rest]
        weights[np.ix_(members, rest)] = scaled
        further[np.ix_(members, rest)] = self.further.T / width[rest]
        own = middle[members] + width[members] * self.weights[-1]
        flat["shift"][members] = own - scaled @ middle[rest]
        turns[members] = self.turns
        flat["anchors"][members] = middle[members] + width[members] * self.anchors
        widths[members] = width[members] * np.std(self.away(cloud.units), axis=0)
        own = (middle[self.scale], flat["powers"], weights, flat["shift"], np.zeros((dim, dim)))
        rest_of_it = (middle, widths, further, turns, flat["anchors"])
        return Straight(
            jnp.array([self.scale]),
            *(jnp.asarray(part, dtype=float)[None] for part in (*own, *rest_of_it)),
        )


def turned(growth: np.ndarray, turns: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
    """G = g − ½ log(1 + e^{2(g − t)}) and B = 1 / (1 + e^{2(g − t)})."""
    past = np.logaddexp(0.0, 2.0 * (growth - turns))
    return growth - 0.5 * past, np.exp(-past)
