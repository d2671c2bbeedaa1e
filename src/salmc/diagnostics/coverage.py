"""Did the draws go everywhere that the warm-up had found?

R-hat, ESS and Stein discrepancies read draws alone and cannot see a mode that no chain visited. But
a sampler that was trained has seen more than its draws: the pool it learned from. A point a of the
pool is *missed* if its nearest draw is further away than three times the distance to its fifth
neighbour in another part of the pool. Of draws that follow the pool, a ball that size holds 5·3^d
on average, so none at all has a chance below e^−15: a missed point is no accident.

The share of missed points estimates the mass of the target that the draws leave out.
"""

import numpy as np
from jaxtyping import Float

from salmc.diagnostics.point_sets import AnyArray, as_points, safe_scale, squared_distances, subset

_NEIGHBOUR = 5
_FACTOR = 3.0
_MOST_POINTS = 1000
"""Points of each of the three sets: all distances between two sets take a few milliseconds."""


def missed_share(
    seen: Float[AnyArray, "m dim"], draws: Float[AnyArray, "n dim"], *, seed: int = 0
) -> float:
    """Share of the seen points around which there is no draw.

    Args:
        seen: points that follow the target as far as it is known, such as a pool; at least 20.
        draws: the sample; as many of it are used as of the seen points.
        seed: of the choice of points.
    """
    pool, sample = as_points("seen", seen), as_points("draws", draws)
    generator = np.random.default_rng(seed)
    half = min(len(pool) // 2, len(sample), _MOST_POINTS)
    if half <= _NEIGHBOUR:
        return 0.0
    order = generator.permutation(len(pool))
    scale = safe_scale(pool)
    centre = np.mean(pool, axis=0)
    pool, sample = (pool - centre) / scale, (sample - centre) / scale
    asked, others = pool[order[:half]], pool[order[half : 2 * half]]
    chosen = sample[subset(len(sample), half, generator)]
    squares = np.partition(squared_distances(asked, others), _NEIGHBOUR - 1, axis=1)
    to_others = np.sqrt(squares[:, _NEIGHBOUR - 1])
    to_draws = np.sqrt(np.min(squared_distances(asked, chosen), axis=1))
    # Pool points that coincide, as copies after resampling do, have no distance to speak of.
    radius = np.maximum(to_others, np.median(to_others) * 1e-2)
    return float(np.mean(to_draws > _FACTOR * radius))
