"""A statistic is shown with its floor: the size below which it says nothing."""

from typing import NamedTuple


class StatisticWithFloor(NamedTuple):
    """A discrepancy and the 95 % quantile it would have if the sample were exact.

    One exact sample in twenty lies above the floor by chance; `ratio` tells how far above.
    """

    value: float
    floor: float

    @property
    def ratio(self) -> float:
        """value / floor; infinite where the floor is zero."""
        if self.floor > 0:
            return self.value / self.floor
        return float("inf") if self.value > 0 else 0.0

    @property
    def above(self) -> bool:
        """Whether the value lies above its floor, or is not a number."""
        return not self.value <= self.floor
