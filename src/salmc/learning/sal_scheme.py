"""The scheme of SAL-MC and AL-MC: Algorithm 1's step, and the mixture's move of the pool."""

import dataclasses

import equinox as eqx
from jaxtyping import Array, Float, PRNGKeyArray

from salmc.learning.moves import mixture_move
from salmc.learning.scheme import Scheme
from salmc.learning.settings import LearningSettings
from salmc.learning.state import Problem, TrainingState
from salmc.learning.step import figure_names, training_step
from salmc.learning.validation import figure_kind


@eqx.filter_jit
def mix_pool(
    problem: Problem, settings: LearningSettings, state: TrainingState, key: PRNGKeyArray
) -> tuple[TrainingState, Float[Array, ""]]:
    """The mixture's independence move over the whole pool."""
    pool, values, accepted = mixture_move(
        key, state.pool, state.log_density, problem.log_density, settings.mixture_components
    )
    return dataclasses.replace(state, pool=pool, log_density=values), accepted


def _mixture_every(problem: Problem, settings: LearningSettings) -> int:
    has_moves = problem.target is not None and problem.mover is None
    return settings.mixture_every if has_moves and settings.mixture_components > 0 else 0


SAL_SCHEME = Scheme(
    step=training_step,
    figure_names=figure_names,
    figure_kind=figure_kind,
    pool_move=mix_pool,
    pool_move_name="mixture",
    pool_move_every=_mixture_every,
)
