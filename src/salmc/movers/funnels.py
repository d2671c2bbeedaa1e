"""Through funnels: exact moves that take a cloud into necks where no straight step leads.

The maps are those of `diagnostics.trial.funnels`, by which draws are judged as well: a scale moves,
and what it spreads goes with it. Tempering by differences ends where the neck begins; these go on.
"""

from collections.abc import Callable

import jax
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from salmc.diagnostics.point_sets import Cloud, Numbers
from salmc.diagnostics.trial.funnels import Funnel, as_wide, follow, funnels
from salmc.movers.base import log_densities
from salmc.movers.evolution import settle_down
from salmc.programs import on_device
from salmc.target import AbstractTarget, Points

MOST_TURNS = 24
_TURNS_BACK = 3
"""Until the cloud is as wide in the scales as some turns before."""


def through_funnels(
    points: Cloud,
    values: Numbers,
    log_densities: Callable[[Cloud], Numbers],
    settle: Callable[[Cloud, Numbers], tuple[Cloud, Numbers]],
    generator: np.random.Generator,
    most_turns: int = MOST_TURNS,
) -> tuple[Cloud, Numbers]:
    """Moves along the funnels that a cloud shows, and settling, in turns, until none has an effect.

    Args:
        points, values: particles, and log p there.
        log_densities: log p of n points, −inf where it is not defined.
        settle: other exact moves, (points, values) ↦ (points, values).
        generator: of all random choices.
        most_turns: at most so many.
    """
    found: list[Funnel] = []
    clouds: list[Cloud] = []
    for _ in range(most_turns):
        # Half-way through a neck, a cloud may not show it for a while.
        found = list(funnels(generator.permutation(points))) or found
        if not found:
            break
        clouds = [*clouds, points.copy()][-_TURNS_BACK:]
        points, values = settle(*follow(found, points, values, log_densities, generator))
        scales = {funnel.scale for funnel in found}
        if len(clouds) == _TURNS_BACK and as_wide(scales, clouds[0], points):
            break
    return points, values


def particles_through_funnels(
    target: AbstractTarget, key: PRNGKeyArray, points: Points, values: Float[Array, " n"]
) -> tuple[Points, Float[Array, " n"]]:
    """A target's particles, with the necks that tempering did not come into."""
    generator = np.random.default_rng(int(jax.random.bits(key)))

    def settle(points: Cloud, values: Numbers) -> tuple[Cloud, Numbers]:
        one = jax.random.fold_in(key, int(generator.integers(2**31)))
        arrays = (on_device(points), on_device(values))
        new, there = settle_down(target, one, *arrays)
        return np.asarray(new, np.float64), np.asarray(there, np.float64)

    moved = through_funnels(
        np.asarray(points, np.float64),
        np.asarray(values, np.float64),
        lambda where: np.asarray(log_densities(target, on_device(where))),
        settle,
        generator,
    )
    return on_device(moved[0]), on_device(moved[1])
