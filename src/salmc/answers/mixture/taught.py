"""Where chains stayed teaches a mixture that hardly ever draws there.

Exact chains of a mixture stay long where p/q is large: their draws, each place as often as they
stayed, show what the mixture lacks. Where evaluations are dear, a few rounds that go on from a
mixture of these draws cost a hundredth of what a flow would, as all draws so far are kept. What
rounds make of it may lack such a place again, as few of their draws come there; so a share of the
proposals keeps to where chains ever were: q ≥ ε q_seen, and p/q is bounded by p/(ε q_seen).

Reference: Hesterberg, "Weighted average importance sampling and defensive mixture distributions",
1995.
"""

import numpy as np
from jaxtyping import Float

from salmc.answers.mixture.adaptation import Adaptation
from salmc.answers.mixture.density import Mixture
from salmc.answers.mixture.fitting import fit_mixture
from salmc.answers.mixture.host_moves import Moves
from salmc.programs import on_device

_TAUGHT = 2048
"""Draws of chains at most, of which a mixture is fitted."""

_LONGEST, _COPIES = 20, 10
"""Places where chains stayed longest, and particles that begin at each."""

_DEFENSIVE = 0.2
"""Share of the proposals that keep to where chains were."""


def teach(found: Adaptation, positions: Float[np.ndarray, "chains draws dim"]) -> None:
    """Rounds that go on from where chains were.

    Args:
        found: the mixture, which is changed; without a budget.
        positions: of its exact chains, in the user's variables.
    """
    modes = None if found.one_mode else found.modes
    cloud = _around(found, positions)
    found.seen = cloud if found.seen is None else np.concatenate([found.seen, cloud])
    with np.errstate(all="ignore"):
        seen = fit_mixture(found.seen, np.ones(len(found.seen)), found.generator, modes=modes)
        found.draw(seen, found.effort.each)
        found.improve()
        found.settle()
    if found.mixture is not None:
        found.mixture = _defended(found.mixture, seen)
        found.efficiency = found.archive.efficiency(found.mixture)


def _defended(mixture: Mixture, seen: Mixture) -> Mixture:
    """A mixture of both; the second has a small share."""
    weights = [(1.0 - _DEFENSIVE) * mixture.weights, _DEFENSIVE * seen.weights]
    return mixture.beside(seen)._replace(weights=np.concatenate(weights))


def _around(found: Adaptation, positions: np.ndarray) -> np.ndarray:
    """Where chains were, and what lies around the places where they stayed."""
    target, generator = found.evaluator.target, found.generator
    points = positions.reshape(-1, positions.shape[-1])
    points, stays = np.unique(points, axis=0, return_counts=True)
    long = np.argsort(stays)[-_LONGEST:]
    often = generator.choice(len(points), _TAUGHT, p=stays / np.sum(stays))
    chosen = np.concatenate([np.repeat(long, _COPIES), often])
    cloud = np.asarray(target.inward(on_device(points[chosen])), np.float64)
    stayed = len(long) * _COPIES
    # Halves move by each other's differences: those of the draws are as wide as the target.
    moving = found.evaluator.rounded(cloud[: 2 * stayed])
    moves = Moves(found.evaluator, generator, found.effort.sweeps)
    moved, _ = moves.evolved(moving, found.evaluator(moving))
    return np.concatenate([moved, cloud[2 * stayed :]])
