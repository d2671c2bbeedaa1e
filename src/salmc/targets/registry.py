"""The built-in targets by name, as `salmc targets` lists them."""

from collections.abc import Callable
from typing import NamedTuple

from salmc.target import AbstractTarget
from salmc.targets.banana import Banana
from salmc.targets.eight_schools import EightSchools
from salmc.targets.funnel import Funnel
from salmc.targets.gaussian import Gaussian
from salmc.targets.logistic_regression import Australian, German, Heart
from salmc.targets.mixtures import Mog2, Mog4, Mog6, Mog10
from salmc.targets.rings import Ring, Ring5


class TargetEntry(NamedTuple):
    """How to make a built-in target, and one line about it."""

    factory: Callable[[], AbstractTarget]
    explanation: str
    known_dim: int | None = None
    """The dimension of a target that needs data, so that it can be listed without them."""

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return self.factory().dim if self.known_dim is None else self.known_dim


TARGETS: dict[str, TargetEntry] = {
    "ring": TargetEntry(Ring, "one ring of radius 2 on the plane"),
    "mog2": TargetEntry(Mog2, "two Gaussians ten units apart on the plane"),
    "mog6": TargetEntry(Mog6, "six Gaussians on a circle of radius 5"),
    "ring5": TargetEntry(Ring5, "five rings of radii 1 to 5, judged by the radius"),
    "mog4": TargetEntry(Mog4, "four distant Gaussians of varied variance on the plane"),
    "mog10": TargetEntry(Mog10, "ten overlapping Gaussians in five dimensions"),
    "gaussian": TargetEntry(
        lambda: Gaussian.with_condition_number(10, 100.0),
        "a correlated Gaussian in ten dimensions, condition number 100",
    ),
    "banana": TargetEntry(Banana, "a Gaussian bent along a parabola on the plane"),
    "funnel": TargetEntry(Funnel, "Neal's funnel in ten dimensions, of very different scales"),
    "eight-schools": TargetEntry(
        EightSchools, "a hierarchical model of eight schools, non-centred, its truth known"
    ),
    "heart": TargetEntry(Heart, "logistic regression: heart disease, 270 patients", 14),
    "australian": TargetEntry(
        Australian, "logistic regression: credit cards, 690 applications (data not shipped)", 15
    ),
    "german": TargetEntry(German, "logistic regression: bad credit, 1000 customers", 25),
}
