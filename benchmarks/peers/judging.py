"""Errors of draws against the truth, what exact draws would have, and what is called wrong.

Three figures, each the largest over what it is of:

* mean: |mean − true mean| of a coordinate, in its standard deviations;
* tails: |P(x ≤ q) − level| for the true 5 % and 95 % quantiles q of a coordinate;
* modes: |share − true share| of a mode, for targets that have several.

The floor of a figure is what exact draws have: its median and its 95 % quantile over samples of
exact draws, as many in each as the ESS is. The rule, in this order:

* "limit" or "failed": no draws came;
* "stuck": R-hat above 1.05, or fewer than a tenth of the effective draws that were asked for;
* "wrong": a figure is more than twice the 95 % quantile of its floor;
* "short": right, with fewer effective draws than asked for; times are then extrapolated;
* "right".
"""

from typing import Any, NamedTuple

import numpy as np

from benchmarks.peers.truths import Truth

LEVELS = (0.05, 0.95)
LARGEST_RHAT, LEAST_SHARE, ALLOWED = 1.05, 0.1, 2.0
ENOUGH = 0.95
"""Of the effective draws that were asked for: ESS is an estimate itself."""

_SAMPLES = 60


class Errors(NamedTuple):
    """The three figures; None where a target has no such thing."""

    mean: float | None
    tails: float
    modes: float | None


class Yardstick(NamedTuple):
    """What errors are measured by: moments, quantiles, shares."""

    centre: np.ndarray
    spread: np.ndarray
    quantiles: np.ndarray
    truth: Truth


def yardstick(truth: Truth) -> Yardstick:
    """Made once for a target."""
    pool = truth.pool
    return Yardstick(pool.mean(axis=0), pool.std(axis=0), np.quantile(pool, LEVELS, axis=0), truth)


def errors(by: Yardstick, points: np.ndarray, weights: np.ndarray | None = None) -> Errors:
    """Of points (n, dim), weighted or not."""
    share = np.full(len(points), 1.0 / len(points)) if weights is None else weights / weights.sum()
    below = [np.abs(share @ (points <= q) - p) for q, p in zip(by.quantiles, LEVELS, strict=True)]
    mean = modes = None
    if by.truth.has_moments:
        mean = float(np.max(np.abs(share @ points - by.centre) / by.spread))
    if by.truth.mode is not None and by.truth.shares is not None:
        found = np.bincount(by.truth.mode(points), share, minlength=len(by.truth.shares))
        modes = float(np.max(np.abs(found - by.truth.shares)))
    return Errors(mean, float(np.max(below)), modes)


def floor(by: Yardstick, ess: float, seed: int = 0) -> dict[str, Errors]:
    """Median and 95 % quantile of the errors of exact draws, as many as `ess`."""
    pool = by.truth.pool
    # Samples of more than a fifth of the pool would be much like the pool.
    count = int(min(max(ess, 2.0), len(pool) / 5))
    generator = np.random.default_rng(seed)
    found = [errors(by, pool[generator.integers(len(pool), size=count)]) for _ in range(_SAMPLES)]
    levels = {"median": 0.5, "high": 0.95}
    return {name: _quantile(found, level) for name, level in levels.items()}


def _quantile(found: list[Errors], level: float) -> Errors:
    columns = []
    for values in zip(*found, strict=True):
        known = [value for value in values if value is not None]
        columns.append(float(np.quantile(known, level)) if known else None)
    return Errors(*columns)  # type: ignore[arg-type]


def verdict(
    found: Errors, high: Errors, *, ess: float, rhat: float, effective: int
) -> tuple[str, str]:
    """The word of the rule, and why, by the module's text."""
    if rhat > LARGEST_RHAT:  # infinite for chains that never move, NaN without chains
        return "stuck", f"R-hat {rhat:.2f}"
    if not ess >= LEAST_SHARE * effective:
        return "stuck", f"{ess:.0f} effective draws of {effective}"
    for name in Errors._fields:
        value, allowed = getattr(found, name), getattr(high, name)
        if value is not None and not value <= ALLOWED * allowed:
            return "wrong", f"{name} off by {value:.3g}, exact draws by at most {allowed:.3g}"
    if ess < ENOUGH * effective:
        return "short", f"{ess:.0f} effective draws of {effective}"
    return "right", ""


def judged(truth: Truth, draws: dict[str, np.ndarray], effective: int) -> dict[str, Any]:
    """All that is said of the draws of a worker."""
    by = yardstick(truth)
    points, weights = draws["points"], draws["weights"]
    ess, rhat = float(draws["ess"]), float(draws["rhat"])
    if not np.all(np.isfinite(points)):
        return {"outcome": "wrong", "sentence": "Draws are not finite.", "ess": ess}
    found, low = errors(by, points, weights), floor(by, min(ess, truth.size))
    outcome, sentence = verdict(found, low["high"], ess=ess, rhat=rhat, effective=effective)
    return {
        "outcome": outcome,
        "sentence": sentence,
        "ess": ess,
        "rhat": rhat if np.isfinite(rhat) else None,
        "errors": found._asdict(),
        "floor": low["median"]._asdict(),
        "floor_95": low["high"]._asdict(),
    }
