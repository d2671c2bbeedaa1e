"""Do gradients tell what values do? Where log p jumps, or has a slope not its own, they do not.

Stein's identity is an integration by parts. A density with a jump, as of a change point or a table,
has a term there that no gradient shows, so that exact draws seem biased by hundreds of standard
errors. Between the two ends of a short way

    log p(x + δ) − log p(x) = ∫₀¹ δ·∇log p(x + t δ) dt ≈ ½ δ·(∇log p(x) + ∇log p(x + δ)),

and what is missing vanishes as the way is halved, whichever half lacks more is kept, unless there
is a jump in it. A gradient that belongs to other values, as of `stop_gradient` or of a derivative
written by hand, lacks its share of every difference instead.
"""

import numpy as np

from salmc.diagnostics.point_sets import Cloud, Numbers
from salmc.diagnostics.trial.frame import Frame
from salmc.diagnostics.trial.host import HostDensity

_WAYS = 512
_LENGTHS = (1.0, 0.3, 0.1)
"""Of ways, in widths of the draws."""

_HALVINGS = 14
_JUMP, _FEWEST = 0.05, 3
"""Of log p, that is left on the shortest ways; and on how many of them to believe it."""

_ROUNDING = 64.0
"""Units in the last place of log p, which a difference of two values may be off by."""

_WRONG, _SEEN, _MOST_WRONG = 0.3, 0.05, 0.5
"""Part of a difference that slopes may lack on short ways; differences that are large enough to
tell; and the share of them that may lack more."""


def slopes_hold(density: HostDensity, points: Cloud, frame: Frame, seed: int = 0) -> bool:
    """Whether differences of log p are integrals of its gradient, near some draws.

    Args:
        density: in the same coordinates as the points.
        points: (n, dim), draws in random order.
        frame: of the sample.
        seed: of the ways.
    """
    generator = np.random.default_rng(seed)
    count = min(density.share_of(_WAYS, 64), len(points))
    return all(_hold(density, points[:count], frame, length, generator) for length in _LENGTHS)


def _hold(
    density: HostDensity,
    start: Cloud,
    frame: Frame,
    length: float,
    generator: np.random.Generator,
) -> bool:
    steps = length * generator.normal(size=start.shape) / np.sqrt(frame.dim)
    near, far = start, start + frame.directions(steps)
    ends = [(place, density.values(place), density.gradients(place)) for place in (near, far)]
    missing, change = _missing(*ends)
    told = np.isfinite(missing) & (np.abs(change) > _SEEN) & (np.abs(change) < 1.0)
    wrong = np.abs(missing[told]) > _WRONG * np.abs(change[told])
    if length == _LENGTHS[-1] and np.sum(told) > _WAYS // 8 and np.mean(wrong) > _MOST_WRONG:
        return False
    low, high = ends
    for _ in range(_HALVINGS):
        place = 0.5 * (low[0] + high[0])
        middle = (place, density.values(place), density.gradients(place))
        lower, upper = (np.abs(_missing(*pair)[0]) for pair in ((low, middle), (middle, high)))
        first = np.nan_to_num(lower, nan=-1.0) >= np.nan_to_num(upper, nan=-1.0)
        low, high = _chosen(first, low, middle), _chosen(first, middle, high)
    missing, _ = _missing(low, high)
    # A kink leaves at most this, and a jump between slopes that stay finite much more.
    bend = 0.5 * np.abs(np.sum((high[0] - low[0]) * (high[2] - low[2]), axis=1))
    scale = np.maximum(np.abs(low[1]), np.abs(high[1])).astype(density.precision)
    allowed = _JUMP + bend + _ROUNDING * np.spacing(np.where(np.isfinite(scale), scale, 1.0))
    return int(np.sum(np.abs(missing) > allowed)) < _FEWEST


End = tuple[Cloud, Numbers, Cloud]
"""Places, log p there, and its gradient."""


def _missing(low: End, high: End) -> tuple[Numbers, Numbers]:
    """What the slopes at both ends do not tell of the difference, and the difference."""
    with np.errstate(invalid="ignore"):
        change = high[1] - low[1]
        told = 0.5 * np.sum((high[0] - low[0]) * (low[2] + high[2]), axis=1)
        return change - told, change


def _chosen(first: np.ndarray, one: End, other: End) -> End:
    return (
        np.where(first[:, None], one[0], other[0]),
        np.where(first, one[1], other[1]),
        np.where(first[:, None], one[2], other[2]),
    )
