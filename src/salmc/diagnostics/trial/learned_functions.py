"""Functions of Stein's identity that the draws themselves choose, each tested on later draws.

A sample may be too narrow, or cut off, in one direction of many that no coordinate shows: of a
tenth in one direction of thirty each coordinate has a three-hundredth. In a frame y in which the
draws' covariance is I exact draws of any density have E[s yᵀ] = −I with the score s, and E[s] = 0.
So the eigenvectors of

    Q = −½ mean(s yᵀ + y sᵀ)

to its smallest and largest eigenvalues are where draws are narrower and wider than p by most, and
mean(s) points to where they ought to be. With v from some draws, and t = v·y, the means of

    φ(t) (v·s) + φ′(t),  φ(t) = 2 tanh(t/2),    and of    v·s

over others vanish under p; φ grows as t where most draws are, and not beyond, or else one draw far
out would decide. The first draws choose v, the next are tested and then help to choose v
for those after them: so most draws are tested, no draw along a direction of its own choice, and the
sum over its error is normal (it is a martingale).
"""

import itertools

import numpy as np

from salmc.diagnostics.point_sets import Cloud
from salmc.diagnostics.trial.frame import Frame

_FIRST, _BLOCKS = 0.3, 4
"""Share of the draws that choose first, and tested parts of the others."""

_FOR_EACH = 10
"""Draws for each coordinate, at least, that choose."""

_HELD = 4.0
"""Units at which draws and scores are held: a few must not choose."""


def learned_values(points: Cloud, scores: Cloud) -> dict[str, np.ndarray]:
    """Values with mean zero under p, by what they tell; nothing for too few draws.

    Args:
        points: (n, dim), nearly independent, in random order.
        scores: (n, dim), ∇ log p there.
    """
    n, dim = points.shape
    first = int(_FIRST * n)
    if dim < 2 or first < _FOR_EACH * dim:
        return {}
    found: dict[str, list[np.ndarray]] = {"spread": [], "wide spread": [], "shift": []}
    edges = np.linspace(first, n, _BLOCKS + 1).astype(int)
    for start, end in itertools.pairwise(edges.tolist()):
        frame = Frame.of(points[:start], shrunk=False)
        y = frame.inward(points[:end])
        s = (scores[:end] * frame.scale) @ frame.factor
        held, held_scores = np.clip(y[:start], -_HELD, _HELD), np.clip(s[:start], -_HELD, _HELD)
        product = held.T @ held_scores / start
        axes = np.linalg.eigh(-0.5 * (product + product.T))[1]
        y, s = y[start:], s[start:]
        for name, axis in (("spread", axes[:, 0]), ("wide spread", axes[:, -1])):
            bounded = np.tanh(0.5 * (y @ axis))
            found[name].append(2.0 * bounded * (s @ axis) + 1.0 - bounded**2)
        shift = np.mean(held_scores, axis=0)
        found["shift"].append(s @ (shift / max(np.linalg.norm(shift), 1e-300)))
    return {name: np.concatenate(values)[:, None] for name, values in found.items()}
