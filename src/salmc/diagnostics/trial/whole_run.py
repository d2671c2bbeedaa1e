"""Scores of the whole run: what thinning to the slowest coordinate throws away.

Tests of independent draws have no more of them than the slowest coordinate is worth. Steps that are
too large are wrong in the thinnest directions, which are the fastest: a run that is worth 700 draws
in its slowest coordinate may be worth 30,000 in these, and be 5 % too wide there for all to see.

So the run is cut into batches, each worth some twenty draws of the slowest coordinate. Means of the
functions of `stein` over batches are as good as independent, whatever the functions' own
autocorrelation is, and vanish under p; Student's t of them over the batches needs no estimate of
that. Coordinates of each half of the batches come from the other half: a centre and widths that
follow what is chance in the same draws would be off by dim/ESS, which fast functions show.
"""

import numpy as np
from jaxtyping import Float
from scipy import stats

from salmc.diagnostics.point_sets import Cloud
from salmc.diagnostics.trial.frame import Frame
from salmc.diagnostics.trial.host import HostDensity
from salmc.diagnostics.trial.stein import SteinTests

_WORTH = 20.0
"""Effective draws of the slowest coordinate in a batch: neighbours are correlated by 1/80."""

_FEWEST, _MOST = 20, 400
"""Batches."""

LEAST_MORE = 2.0
"""Times as many draws in the run as are tested one by one, from which on it is asked."""

_DRAWS, _ENTRIES = 32_000, 4_000_000
"""Draws that are asked at most, and these times functions."""


def batches_of(sample: Cloud, chains: int, effective: float) -> Float[np.ndarray, "b n dim"] | None:
    """The run, chain after chain, in batches of one length; None where there are too few.

    Args:
        sample: (n, dim), chain after chain, all as long.
        chains: how many.
        effective: what the slowest coordinate of all of it is worth.
    """
    if not chains or len(sample) % chains:
        return None
    # Chains are independent of each other as they are, however little each of them is worth.
    length, each = len(sample) // chains, max(1, int(min(effective / _WORTH, _MOST) // chains))
    if chains * each < _FEWEST or length < each:
        return None
    size, dim = length // each, sample.shape[1]
    cut = sample.reshape(chains, length, dim)[:, : each * size].reshape(chains * each, size, dim)
    stride = -(-chains * length * (4 * dim + 1) // _ENTRIES)
    return cut[:, ::stride]


def run_tests(density: HostDensity, batches: Float[np.ndarray, "b n dim"]) -> SteinTests | None:
    """The most surprising function of all, its p-value for all of them together.

    None where scores are not known everywhere.

    Args:
        density: in the coordinates of the draws; of a dear one fewer draws of each batch are asked.
        batches: of the run.
    """
    count, size, dim = batches.shape
    most = density.share_of(_DRAWS, 10 * count)
    batches = batches[:, :: max(1, -(-count * size // most))]
    scores = density.gradients(batches.reshape(-1, dim)).reshape(batches.shape)
    if not np.all(np.isfinite(scores)):
        return None
    half = count // 2
    first, second = slice(0, half), slice(half, None)
    parts = [
        _means(batches[one], scores[one], Frame.of(batches[other].reshape(-1, dim)))
        for one, other in ((first, second), (second, first))
    ]
    worst, tested = SteinTests(1.0, "shift", -1, 0.0, 0), 0
    for name in parts[0]:
        means = np.concatenate([part[name] for part in parts])
        error = np.std(means, axis=0, ddof=1) / np.sqrt(count)
        with np.errstate(divide="ignore", invalid="ignore"):
            sizes = np.nan_to_num(np.mean(means, axis=0) / error, posinf=0.0, neginf=0.0)
        tested += len(sizes)
        at = int(np.argmax(np.abs(sizes)))
        p_value = 2.0 * float(stats.t.sf(abs(sizes[at]), count - 1))
        if p_value < worst.p_value:
            worst = SteinTests(p_value, name, at if len(sizes) == dim else -1, float(sizes[at]), 0)
    return worst._replace(p_value=min(1.0, tested * worst.p_value), tested=tested)


def either(one: SteinTests, other: SteinTests | None) -> SteinTests:
    """The more surprising of two looks, each with half of the level."""
    if other is None:
        return one
    worse = one if one.p_value <= other.p_value else other
    tested = one.tested + other.tested
    return worse._replace(p_value=min(1.0, 2.0 * worse.p_value), tested=tested)


def _means(
    batches: Float[np.ndarray, "b n dim"], scores: np.ndarray, frame: Frame
) -> dict[str, np.ndarray]:
    """Means of functions over each batch, (batch, function)."""
    count, size, dim = batches.shape
    y = frame.inward(batches.reshape(-1, dim))
    s = (scores.reshape(-1, dim) * frame.scale) @ frame.factor
    # In the units of the frame, main axes are those of its correlations: thin ones are the fastest.
    axes = np.linalg.svd(frame.factor)[2]
    bounded, along, uphill = np.tanh(y), y @ axes.T, s @ axes.T
    spread = y * s + 1.0
    values = {
        "shift": s,
        "spread": spread,
        "shape": bounded * s + 1.0 - bounded**2,
        "overall spread": np.sum(spread, axis=1, keepdims=True),
    }
    if dim > 1:
        values["spread along an axis"] = along * uphill + 1.0
    return {name: np.mean(v.reshape(count, size, -1), axis=1) for name, v in values.items()}
