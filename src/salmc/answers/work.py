"""How much work a log density is, by what JAX traces of it: the same on every machine, every time.

What a search asks of a density must not depend on how busy the machine is, or the same seed would
not give the same sampler. So numbers that one evaluation computes are counted, not seconds.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from salmc.target import AbstractTarget

_UNKNOWN_LENGTH = 100
"""Rounds of a loop that ends by itself."""


def work(target: AbstractTarget) -> float:
    """Numbers that one evaluation of log p computes; products count each of their terms."""
    point = jax.ShapeDtypeStruct((target.dim,), jnp.zeros(()).dtype)
    return _of(jax.make_jaxpr(target.log_density)(point).jaxpr)


def _of(jaxpr: Any) -> float:
    total = 0.0
    for equation in jaxpr.eqns:
        inner = [_of(getattr(part, "jaxpr", part)) for part in _parts(equation.params)]
        if inner:
            name = equation.primitive.name
            rounds = equation.params.get("length", _UNKNOWN_LENGTH if name == "while" else 1)
            total += rounds * (max(inner) if name == "cond" else sum(inner))
            continue
        size = sum(float(np.prod(getattr(out.aval, "shape", ()))) for out in equation.outvars)
        if equation.primitive.name == "dot_general":
            contracted = equation.params["dimension_numbers"][0][0]
            shape = equation.invars[0].aval.shape
            size *= float(np.prod([shape[axis] for axis in contracted]))
        total += size
    return total


def _parts(parameters: dict[str, Any]) -> list[Any]:
    """The traced functions among the parameters of an equation."""
    values = [
        part
        for value in parameters.values()
        for part in (value if isinstance(value, (tuple, list)) else (value,))
    ]
    return [part for part in values if hasattr(getattr(part, "jaxpr", part), "eqns")]
