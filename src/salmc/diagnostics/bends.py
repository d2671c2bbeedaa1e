"""Bends of a cloud: coordinates that follow the square of another, as in a banana.

    u_j = y_j + b_j (u_k − m)²

straightens one coordinate j, or all that follow the same u_k at once: of two that also follow each
other neither is straighter for having its own bend undone, only both together are.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from salmc.diagnostics.point_sets import Cloud
from salmc.diagnostics.standard_units import Units, are_empty, likelihood
from salmc.straight import NEVER, Straight

_NEXT_TO_NONE = 0.05
"""Weight of a square, in standard units, below which a coordinate does not follow it."""


def best_bend(cloud: Units, least: float) -> tuple[float, Straight | None]:
    """The square of one coordinate that explains most of others, and what it gains; None where it
    is less than `least` on the points that built it."""
    built, held = cloud.units[::2], cloud.units[1::2]
    usable = ~are_empty(cloud.units)
    before = likelihood(built, held)
    single = _single_correlations(built) * usable
    j, k = (int(i) for i in np.unravel_index(np.argmax(single), single.shape))
    alone: tuple[float, Straight | None] = (-np.inf, None)
    together = alone
    if _gain_of(single[j, k]) >= least:
        alone = _bent(cloud, np.arange(len(usable)) == j, k, before)
    joint = _joint_correlations(built) * usable
    k = int(np.argmax(joint))
    if _gain_of(joint[k]) >= least:
        together = _bent(cloud, np.arange(len(usable)) != k, k, before)
    # Singly as long as that gains: of bends that depend on each other the last is undone first.
    return max(alone[0], together[0]), alone[1] if alone[0] >= least else together[1]


def _gain_of(correlation: float) -> float:
    return float(-0.5 * np.log(max(1.0 - correlation**2, 1e-30)))


def _single_correlations(units: Cloud) -> Float[np.ndarray, "dim dim"]:
    """|r| of each u_j (row) with each u_k² (column), when all other coordinates are taken off both.

    With P the precision of u, what is left of u_j has the variance 1/P_jj; with B the coefficients
    of u_k² on all of u, and e_k what they leave, u_k² without the part of the others is
    e_k + B_jk (what is left of u_j): both are had from one solution for all pairs. On the points
    that built it the square gains −½ log(1 − r²).
    """
    precision, coefficients, left, _ = _on_squares(units)
    shared = coefficients**2 / np.diag(precision)[:, None]
    found = np.sqrt(shared / (shared + left + 1e-30))
    np.fill_diagonal(found, 0.0)
    return found


def _joint_correlations(units: Cloud) -> Float[np.ndarray, " dim"]:
    """R of each u_k² on all other coordinates, when u_k is taken off: what all of them gain."""
    _, _, left, alone = _on_squares(units)
    return np.sqrt(np.maximum(0.0, 1.0 - left / (alone + 1e-30)))


def _on_squares(units: Cloud) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The precision of u, coefficients of each u_k² on all of u, the variance that these leave of
    it, and the one that u_k alone leaves."""
    dim = units.shape[1]
    centred, squares = units - np.mean(units, axis=0), units**2
    squares = squares - np.mean(squares, axis=0)
    covariance = centred.T @ centred / len(units) + 1e-9 * np.eye(dim)
    precision = np.linalg.inv(covariance)
    coefficients = precision @ (centred.T @ squares) / len(units)
    left = np.mean((squares - centred @ coefficients) ** 2, axis=0)
    slope = np.mean(centred * squares, axis=0) / np.diag(covariance)
    return precision, coefficients, left, np.mean((squares - slope * centred) ** 2, axis=0)


def _bent(cloud: Units, rows: np.ndarray, k: int, before: float) -> tuple[float, Straight]:
    """The bend of some coordinates by the square of another, and what it gains."""
    built, held = cloud.units[::2], cloud.units[1::2]
    known = np.stack([np.ones(len(built)), built[:, k], built[:, k] ** 2], axis=1)
    _, linear, weights = np.linalg.lstsq(known, built, rcond=None)[0]
    most = int(np.argmax(np.where(rows, np.abs(weights), -1.0)))
    weights = np.where(
        rows & (np.abs(weights) >= min(_NEXT_TO_NONE, abs(weights[most]))), weights, 0
    )
    # With its linear part, or what is left would hide the bends of others.
    origin = float(-0.5 * linear[most] / weights[most])
    built, held, whole = (
        units - weights * (units[:, k, None] - origin) ** 2 for units in (built, held, cloud.units)
    )
    gain = likelihood(built, held) - before
    width, dim = cloud.width, len(cloud.middle)
    middle = cloud.middle + origin * width
    bends = np.zeros((dim, dim))
    bends[:, k] = weights * width / width[k] ** 2
    widths = np.where(weights != 0.0, width * np.std(whole, axis=0), 1.0)
    nothing, matrix = np.zeros(dim), np.zeros((dim, dim))
    own = (np.zeros(()), nothing, matrix, nothing, bends, middle, widths)
    further = (matrix, np.full(dim, NEVER), nothing)
    parts = (jnp.asarray(a, dtype=float)[None] for a in (*own, *further))
    return gain, Straight(jnp.array([k]), *parts)
