"""The checks of types that all other tests run under can fail, the second time as well."""

import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from jaxtyping import Array, Float

from salmc.kernels.spline import parameter_count, wide_grid
from salmc.metropolis import mean_jump


def test_arguments_of_a_wrong_type_or_shape_are_refused():
    wide_grid(4, 1.0)
    with pytest.raises(jaxtyping.TypeCheckError, match="wide_grid"):
        wide_grid("4", 1.0)
    old, new = jnp.zeros((3, 2)), jnp.ones((3, 2))
    mean_jump(jnp.ones(3), old, new)
    for _ in range(2):
        with pytest.raises(jaxtyping.TypeCheckError, match="mean_jump"):
            mean_jump(jnp.ones(4), old, new)
        with pytest.raises(jaxtyping.TypeCheckError, match="parameter_count"):
            parameter_count(2.5)


def test_what_is_returned_is_checked_whenever_its_type_is_new():
    results = [jnp.zeros(3), jnp.zeros(3), np.zeros(3), jnp.zeros(4), [0.0]]

    def give(points: Float[Array, " n"], inside: list[float] | None = None) -> Float[Array, " n"]:
        return results.pop(0)

    lookup = jaxtyping._import_hook.Typechecker.lookup
    give = jaxtyping.jaxtyped(typechecker=next(iter(lookup.values())))(give)
    assert give(jnp.ones(3)).shape == (3,)
    assert give(jnp.ones(3)).shape == (3,)
    for _ in range(3):
        with pytest.raises(jaxtyping.TypeCheckError, match="return value"):
            give(jnp.ones(3))
    # What is inside of a list its type does not tell.
    results += [jnp.zeros(3)] * 2
    give(jnp.ones(3), [0.5])
    with pytest.raises(jaxtyping.TypeCheckError, match="parameters"):
        give(jnp.ones(3), ["a"])
