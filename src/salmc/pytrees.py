"""Targets whose parameter is a tree of arrays: flat vectors and back."""

from collections.abc import Callable
from typing import Any

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from salmc import checks


def flattened(
    log_density: Callable[[PyTree], Float[Array, ""]], example: PyTree, options: dict[str, Any]
) -> dict[str, Any]:
    """The arguments of a `Target` over the flat vector of trees like `example`."""
    for taken in {"dim", "names", "constrain"} & options.keys():
        checks.fail(taken, "left out: `from_pytree` finds it from `example`", options[taken])
    try:
        example = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype=float), example)
    except (TypeError, ValueError):
        checks.fail("example", "a tree of numbers and arrays", example)
    flat, unravel = jax.flatten_util.ravel_pytree(example)
    if flat.size == 0:
        checks.fail("example", "a tree that holds at least one number", example)
    return {
        "log_density": lambda x: log_density(unravel(x)),
        "dim": flat.size,
        "names": _leaf_names(example),
        "constrain": unravel,
        **options,
    }


def _leaf_names(example: PyTree) -> tuple[str, ...]:
    """ "weights[0, 1]" and the like, in the order of the flattened tree."""
    names: list[str] = []
    for path, leaf in jax.tree_util.tree_leaves_with_path(example):
        stem = jax.tree_util.keystr(path, simple=True, separator=".") or "x"
        indices = np.ndindex(leaf.shape)
        names += [f"{stem}[{', '.join(map(str, i))}]" if i else stem for i in indices]
    return tuple(names)
