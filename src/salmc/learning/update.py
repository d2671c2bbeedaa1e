"""One update of a network's weights: Adam, its average, and no step that is not finite."""

from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool

from salmc.learning.settings import TrainingSettings
from salmc.learning.state import TrainingState, Weights, optimiser
from salmc.target import Scalar

_AVERAGE_START = 10.0
"""The average forgets its beginning: its decay is (t + 1)/(t + 10) until that exceeds `average`."""


def descend(
    settings: TrainingSettings,
    weights: Weights,
    memory: Any,
    loss: Scalar,
    gradient: Weights,
    rate: Scalar,
) -> tuple[Weights, Any, Bool[Array, ""]]:
    """One Adam step.

    Args:
        settings: of Adam.
        weights, memory: as they are; `memory` is Optax's.
        loss, gradient: there.
        rate: of learning.

    Returns:
        Weights and memory, left as they were where loss or gradient is not finite; and whether
        they were finite.
    """
    change, new_memory = optimiser(settings).update(gradient, memory)
    fine = jnp.isfinite(loss) & jnp.all(jnp.isfinite(gradient))
    new = (optax.apply_updates(weights, -rate * change), new_memory)
    weights, memory = jax.tree.map(lambda a, b: jnp.where(fine, a, b), new, (weights, memory))
    return weights, memory, fine


def averaged(settings: TrainingSettings, state: TrainingState, weights: Weights) -> Weights:
    """The average of the kernel's weights, with new ones."""
    decay = jnp.minimum(settings.average, (state.step + 1.0) / (state.step + _AVERAGE_START))
    return decay * state.average + (1.0 - decay) * weights
