"""Laplace's Gaussians at the modes that climbs find, as one mixture; and whether it nearly fits.

Where it does, a mixture that adapts is there in seconds, whatever else the density looks like: the
curvature of many a regression changes with its parameters as that of a funnel does.
"""

import numpy as np

from salmc.answers.mixture.density import Mixture
from salmc.answers.mixture.evaluator import Evaluator
from salmc.answers.mixture.weighted_draws import effective_count
from salmc.movers.base import log_densities
from salmc.movers.climb import Modes, find_modes
from salmc.target import AbstractTarget, Points

_CLIMBS, _REPEATS = 24, 6
"""Climbs, from the likeliest of some places, of which so many in a row find nothing new."""

_DRAWN, _FITS = 1024, 0.1
"""Draws of the mixture, and effective ones for each of them, with which it nearly fits."""

_WIDENED = 1.1
"""How much wider it is drawn from: tails must not be wanting."""


def laplace_mixture(found: Modes) -> Mixture | None:
    """One Gaussian at each mode; None where there is none."""
    if not len(found.positions):
        return None
    masses = np.exp(found.log_masses - found.log_masses[0])
    # A mode that Laplace thinks light may be heavy: each is drawn from often enough to show it.
    weights = 0.5 * masses / np.sum(masses) + 0.5 / len(masses)
    return Mixture.of_gaussians(weights, found.positions, found.factors)


def nearly_fits(target: AbstractTarget, places: Points, seed: int) -> bool:
    """Whether Laplace's mixture would do for importance sampling.

    Args:
        target: differentiable twice.
        places: to climb from, the likeliest first.
        seed: of the draws.
    """
    values = np.asarray(log_densities(target, places))
    order = np.argsort(-np.where(np.isnan(values), -np.inf, values))
    mixture = laplace_mixture(find_modes(target, places[order[:_CLIMBS]], _REPEATS))
    if mixture is None:
        return False
    evaluator, wide = Evaluator(target), mixture.widened(_WIDENED)
    points = evaluator.rounded(wide.sample(np.random.default_rng(seed), _DRAWN))
    log_weights = evaluator(points) - wide.log_density(points)
    return effective_count(log_weights) >= _FITS * _DRAWN
