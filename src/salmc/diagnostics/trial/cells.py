"""Each mode by itself: are the draws in it those of the density in it?

A mode of a tenth of the mass may be an eighth too narrow: of all draws only few are off, and what
all of them say hardly shows it. Space is cut into cells, in each of which one of the modes that the
hunt found is the nearest, in its own widths. Draws of p that lie in a cell A are exact draws of p
within A, whatever A is as long as they have not chosen it, and moves that leave A have no density
there. So `balance` holds in each cell, in the frame of its own draws.
"""

from collections.abc import Sequence

import numpy as np

from salmc.diagnostics.hunt.masses import Region
from salmc.diagnostics.point_sets import Cloud
from salmc.diagnostics.trial.balance import balance_tests
from salmc.diagnostics.trial.host import HostDensity
from salmc.diagnostics.trial.stein import SteinTests

_FEWEST, _MOST_CELLS = 200, 12


def in_each_mode(
    density: HostDensity, points: Cloud, regions: Sequence[Region], seed: int = 0
) -> SteinTests | None:
    """The most surprising function in any cell, its p-value for all; None for less than two modes.

    Args:
        density: in the same coordinates as the points.
        points: (n, dim), nearly independent, in random order.
        regions: around modes.
        seed: of the axes that are chosen where there are many.
    """
    if len(regions) < 2:
        return None
    heights = [-float(np.linalg.slogdet(place.factor)[1]) for place in regions]

    def cell(places: Cloud) -> np.ndarray:
        near = [
            height - 0.5 * np.sum(place.units(places) ** 2, axis=1)
            for place, height in zip(regions, heights, strict=True)
        ]
        return np.argmax(near, axis=0)

    own = cell(points)
    draws = np.bincount(own, minlength=len(regions))
    found = []
    for number in np.argsort(-draws)[:_MOST_CELLS].tolist():
        if draws[number] < _FEWEST:
            break
        test = balance_tests(
            density,
            points[own == number],
            seed,
            lambda places, number=number: cell(places) == number,  # type: ignore[misc]
        )
        found += [] if test is None else [test]
    if not found:
        return None
    worst = min(found, key=lambda test: test.p_value)
    return worst._replace(
        p_value=min(1.0, len(found) * worst.p_value),
        function=f"{worst.function} in one mode",
        tested=sum(test.tested for test in found),
    )
