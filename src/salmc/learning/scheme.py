"""What one method of learning does in a step and between steps; `loop` does the rest for all."""

import dataclasses
from collections.abc import Callable
from typing import Any

from jaxtyping import Array, Bool, Float, PRNGKeyArray

from salmc.learning.state import Problem, TrainingState

StepResult = tuple[TrainingState, Float[Array, " figures"], Bool[Array, ""]]


@dataclasses.dataclass(frozen=True)
class Scheme:
    """The parts of a method, all functions of the problem and the method's settings.

    Attributes:
        step: one update of the kernel: (problem, settings, state, key) ↦ the state, the figures,
            and whether the update was finite. Its randomness depends on the key and the number of
            the step alone.
        figure_names: of the figures, in order.
        figure_kind: what is looked at to judge progress; see `validation`.
        pool_move: a move of the whole pool now and then: (problem, settings, state, key) ↦ the
            state and the share of proposals that was accepted. Compiled.
        pool_move_name: what it is, for seconds and history.
        pool_move_every: steps between such moves; 0 for none.
    """

    step: Callable[[Problem, Any, TrainingState, PRNGKeyArray], StepResult]
    figure_names: Callable[[Problem, Any], tuple[str, ...]]
    figure_kind: Callable[[Problem, Any], str]
    pool_move: Callable[[Problem, Any, TrainingState, PRNGKeyArray], tuple[TrainingState, Array]]
    pool_move_name: str
    pool_move_every: Callable[[Problem, Any], int]
