"""What models of all libraries share: vectors and back, and where their prior is."""

import importlib
from collections.abc import Mapping
from typing import Any

import jax.flatten_util
import jax.numpy as jnp
import numpy as np

from salmc.errors import MissingPackageError, TargetError

PRIOR_DRAWS = 64
"""They show where to look first; the search goes on from there."""


def need(package: str, name: str, function: str) -> Any:
    """The package, or one sentence about how to get it.

    Args:
        package: what is imported, and the name of salmc's extra.
        name: what people call it.
        function: of salmc, which needs it.
    """
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise MissingPackageError(
            f"salmc.{function} needs {name}, which cannot be imported here ({error}): "
            f'pip install "salmc[{package}]".'
        ) from error


def reason(error: BaseException) -> str:
    """The first line of an error, as the end of a sentence."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0].rstrip('.')}." if lines else type(error).__name__


def vector(values: Mapping[str, Any]) -> tuple[Any, Any]:
    """The unconstrained variables as one vector, and the way back from any such vector."""
    floats = {name: jnp.asarray(value, dtype=float) for name, value in values.items()}
    flat, unravel = jax.flatten_util.ravel_pytree(floats)
    if flat.size == 0:
        raise TargetError("The model has no variable to sample: everything in it is given.")
    return flat, unravel


def coordinate_names(
    values: Mapping[str, Any], called: Mapping[str, str] | None = None
) -> tuple[str, ...]:
    """For the unconstrained coordinates, in the order of `vector`.

    Args:
        values: of the unconstrained variables, by name.
        called: of their names, what people call the variable.
    """
    names: list[str] = []
    for key in sorted(values):
        name = key if called is None else called[key]
        indices = np.ndindex(np.shape(values[key]))
        names += [f"{name}[{', '.join(map(str, i))}]" if i else name for i in indices]
    return tuple(names)


def without_tails(points: np.ndarray) -> np.ndarray | None:
    """Draws from a prior, as far as they are finite, with the tails cut off.

    The mean and spread of a Cauchy distribution mean nothing; those of its middle do.
    """
    finite = points[np.all(np.isfinite(points), axis=1)]
    if len(finite) < 2:
        return None
    low, high = np.quantile(finite, [0.1, 0.9], axis=0)
    return np.clip(finite, low, high)
