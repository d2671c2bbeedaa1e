"""What a target may know of its own truth. Only diagnostics ever look at it."""

from typing import NamedTuple

import equinox as eqx
from jaxtyping import Array, Float, Int, PRNGKeyArray

from salmc.errors import TargetError

Point = Float[Array, " dim"]
Points = Float[Array, "n dim"]
Scalar = Float[Array, ""]


class Moments(NamedTuple):
    """Known mean and standard deviation of each judged quantity."""

    mean: Float[Array, " k"]
    std: Float[Array, " k"]


class KnownTruth(eqx.Module):
    """The truth, where it is known: nothing of it, unless a target says otherwise."""

    name: eqx.AbstractVar[str]

    @property
    def mean(self) -> Point | None:
        """The true mean, or None where it is not known."""
        return None

    @property
    def std(self) -> Point | None:
        """The true standard deviation of each coordinate, or None where it is not known."""
        return None

    @property
    def can_sample(self) -> bool:
        """Whether `sample` gives exact draws."""
        return False

    def sample(self, key: PRNGKeyArray, n: int) -> Points:
        """n exact draws, for diagnostics only."""
        del key, n
        raise TargetError(f"The target `{self.name}` has no exact draws; `can_sample` tells.")

    def statistic(self, points: Points) -> Float[Array, "n k"]:
        """The quantities on which ESS is measured: the coordinates unless stated otherwise."""
        return points

    @property
    def statistic_moments(self) -> Moments | None:
        """True mean and standard deviation of `statistic`, or None where they are not known."""
        if self.mean is None or self.std is None:
            return None
        return Moments(self.mean, self.std)

    @property
    def component_weights(self) -> Float[Array, " modes"] | None:
        """True weight of each mode, or None for a target without labelled modes."""
        return None

    def component(self, points: Points) -> Int[Array, " n"]:
        """The mode each point belongs to."""
        del points
        raise TargetError(f"The target `{self.name}` has no labelled modes.")
