"""Funnels read off the density's own derivatives: no draw of them is needed, and no luck.

Where θ_j is normal given all other coordinates, its conditional law is known at every point:

    spread  f_j = (−∂²_j log p)^{−1/2},    mean  m_j = θ_j + ∂_j log p · f_j²

so that functions of the other coordinates that describe f_j and m_j can be fitted without noise, at
points of any law: chains that have not come to the neck of a funnel show all of it. What is fitted
is the form of `salmc.straight`,

    −2 log f_j = log(e^{2(b − g)} + e^{2κ}),   g = Σ a_i x_i,   turn t = b − κ,

a prior's precision and that of data, and m_j = B c(r) + (1 − B) d. Effects that it does not
describe, as of coordinates that are no effects, are left alone.
"""

import numpy as np
from jaxtyping import Float

from salmc.diagnostics.point_sets import Cloud, with_one
from salmc.diagnostics.straightening.funnel import Funnel, turned
from salmc.diagnostics.straightening.search import Units
from salmc.diagnostics.straightening.spreads import STEEPEST, Spread, governed_spreads
from salmc.straight import NEVER, Straight

_MOST_CENTRES, _WORTH, _FEW = 3, 0.1, 128
_FEWEST_EACH = 3
_SMALL = 0.05


def funnels_of_curvature(
    points: Cloud, gradients: Cloud, hessians: Float[np.ndarray, "n dim dim"]
) -> Straight | None:
    """Maps that make funnels straight; None where the density shows none.

    Args:
        points: (n, dim), somewhere near the target.
        gradients: of log p there.
        hessians: ∂_j ∂_k log p there.
    """
    cloud = Units.of(np.asarray(points, np.float64), each=_FEWEST_EACH)
    if cloud is None:
        return None
    usable = np.all(np.isfinite(gradients), axis=1) & np.all(np.isfinite(hessians), axis=(1, 2))
    units, slopes = cloud.units[usable], gradients[usable] * cloud.width
    joint = -hessians[usable] * np.outer(cloud.width, cloud.width)
    precisions = np.diagonal(joint, axis1=1, axis2=2)
    if len(units) < _FEWEST_EACH * units.shape[1]:
        return None
    spreads = governed_spreads(units, precisions, cloud.width)
    for scale in _primary(spreads):
        members = [j for j, spread in spreads.items() if _first(spread, spreads) == scale]
        for centre in _centres(joint, members):
            del spreads[centre]
    if not spreads:
        return None
    free = np.setdiff1d(
        np.arange(units.shape[1]), [*spreads, *(s for one in spreads.values() for s in one.scales)]
    )
    found = []
    for scale in _primary(spreads):
        members = [j for j, spread in spreads.items() if _first(spread, spreads) == scale]
        found.append(_funnel(units, slopes, precisions, scale, members, spreads, free, cloud))
    return Straight.of([funnel.in_own_units(cloud) for funnel in found])


def _primary(spreads: dict[int, Spread]) -> list[int]:
    """Scales that effects are sorted by."""
    return sorted({_first(spread, spreads) for spread in spreads.values()})


def _first(spread: Spread, spreads: dict[int, Spread]) -> int:
    """Of the scales of an effect, the one that governs most effects."""
    counts = [sum(scale in one.scales for one in spreads.values()) for scale in spread.scales]
    return spread.scales[int(np.argmax(counts))]


def _centres(joint: Float[np.ndarray, "n dim dim"], members: list[int]) -> list[int]:
    """Of some effects, those that rather are centres of the others.

    Given θ, the mean μ that they share is as narrow as they are, and a funnel of both has no place
    to begin. It shows in spreads with all effects left free, (H⁻¹)_jj, which then do not follow the
    conditional ones: for each standard unit of log f_j a part of one alone.
    """
    found: list[int] = []
    while len(members) > 1 and len(found) < _MOST_CENTRES:
        block = joint[:_FEW][:, members][:, :, members]
        roots = np.sqrt(np.maximum(np.diagonal(block, axis1=1, axis2=2), 1e-300))
        scaled = block / (roots[:, :, None] * roots[:, None, :])
        tried = [
            (_following(scaled, roots, np.delete(np.arange(len(members)), row)), row)
            for row in range(len(members))
        ]
        gain, row = max(tried)
        if gain < _following(scaled, roots, np.arange(len(members))) + _WORTH:
            break
        found.append(members[row])
        members = [*members[:row], *members[row + 1 :]]
    return found


def _following(scaled: np.ndarray, roots: np.ndarray, rows: np.ndarray) -> float:
    """How much spreads follow the conditional ones when some effects are free: 1 for all of it."""
    block = scaled[:, rows][:, :, rows] + 1e-6 * np.eye(len(rows))
    free = np.diagonal(np.linalg.inv(block), axis1=1, axis2=2)
    proper = np.all(free > 0.0, axis=1)
    if np.mean(proper) < 0.5:
        return -np.inf
    conditional = -np.log(roots[proper][:, rows])
    both = conditional + 0.5 * np.log(free[proper])
    conditional = conditional - np.mean(conditional, axis=0)
    return float(np.mean(np.mean(conditional * both, axis=0) / np.mean(conditional**2, axis=0)))


def _funnel(
    units: Cloud,
    slopes: Cloud,
    precisions: Cloud,
    scale: int,
    members: list[int],
    spreads: dict[int, Spread],
    free: np.ndarray,
    cloud: Units,
) -> Funnel:
    """The effects of one scale, with centres."""
    rest = np.setdiff1d(np.arange(units.shape[1]), [scale, *members])
    row = {int(coordinate): i for i, coordinate in enumerate(rest)}
    weights, further = (np.zeros((len(rest) + k, len(members))) for k in (1, 0))
    powers, turns, anchors = np.zeros(len(members)), np.zeros(len(members)), np.zeros(len(members))
    free = np.setdiff1d(free, [scale])
    for i, j in enumerate(members):
        spread = spreads[j]
        for one, power in zip(spread.scales, spread.powers, strict=True):
            if one == scale:
                powers[i] = power
            elif one in row:
                further[row[one], i] = power
        turns[i] = spread.turn
        curved = precisions[:, j] > 0.0
        middle = units[curved, j] + slopes[curved, j] / precisions[curved, j]
        growth, kept = turned(units[curved][:, spread.scales] @ spread.powers, spread.turn)
        centre, anchors[i] = _centre(
            units[curved][:, free], middle, growth, kept, spread.turn, _plain(cloud, j, free)
        )
        weights[[row[int(one)] for one in free], i] = centre[:-1]
        weights[-1, i] = centre[-1]
    return Funnel(scale, np.array(members), rest, powers, weights, further, turns, anchors)


def _plain(cloud: Units, j: int, free: np.ndarray) -> Float[np.ndarray, "centres r_and_one"]:
    """Centres that models are written with: 0, or one other coordinate as it is."""
    middle, width = cloud.middle, cloud.width
    found = np.zeros((len(free) + 1, len(free) + 1))
    found[:, -1] = -middle[j] / width[j]
    for row, other in enumerate(free):
        found[row, row] = width[other] / width[j]
        found[row, -1] += middle[other] / width[j]
    return found


def _centre(
    free: Cloud,
    middle: np.ndarray,
    growth: np.ndarray,
    kept: np.ndarray,
    turn: float,
    plain: Float[np.ndarray, "centres r_and_one"],
) -> tuple[Float[np.ndarray, " r_and_one"], float]:
    """Weights of c(r), the shift last, and d: as models are written, or by least squares.

    Deviations count in units of f, so that the neck, where they would be many, counts most.
    """
    root = np.exp(-np.clip(growth - np.median(growth), -STEEPEST, STEEPEST))
    inner, left = kept[:, None] * with_one(free), root * (1.0 - kept)
    anchored = turn != NEVER and float(left @ left) > 0.0

    def judged(centre: np.ndarray) -> tuple[float, np.ndarray, float]:
        missing = root * (middle - inner @ centre)
        anchor = float(left @ missing / (left @ left)) if anchored else 0.0
        return float(np.mean((missing - anchor * left) ** 2)), centre, anchor

    given = root[:, None] * inner
    columns = np.column_stack([given, left]) if anchored else given
    gram = columns.T @ columns
    gram += 1e-9 * (np.trace(gram) / len(gram) + 1e-300) * np.eye(len(gram))
    solved = np.linalg.solve(gram, columns.T @ (root * middle))[: inner.shape[1]]
    fitted, written = judged(solved), min((judged(one) for one in plain), key=lambda one: one[0])
    # An effect is one unit wide: what is a small part of that tells nothing.
    best = written if written[0] < 1.5 * fitted[0] + _SMALL else fitted
    return best[1], best[2]
