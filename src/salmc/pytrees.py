"""Targets whose parameter is a tree of arrays: flat vectors and back."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from salmc import checks


def flattened(
    log_density: Callable[[PyTree], Float[Array, ""]],
    example: PyTree,
    constrain: Any,
    bounds: Any,
    options: dict[str, Any],
) -> dict[str, Any]:
    """The arguments of a `Target` over the flat vector of trees like `example`."""
    for taken in {"dim", "names"} & options.keys():
        checks.fail(taken, "left out: `from_pytree` finds it from `example`", options[taken])
    if constrain is not None and not callable(constrain):
        checks.fail("constrain", "a function of one tree", constrain)
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
        "constrain": unravel if constrain is None else lambda x: constrain(unravel(x)),
        "bounds": _leaf_bounds(example, bounds) if isinstance(bounds, Mapping) else bounds,
        **options,
    }


def _leaf_bounds(example: PyTree, bounds: Mapping[str, Any]) -> list[Any]:
    """A pair for each number, from pairs for some of the leaves."""
    leaves = jax.tree_util.tree_leaves_with_path(example)
    sizes = {_stem(path): leaf.size for path, leaf in leaves}
    unknown = [name for name in bounds if name not in sizes]
    if unknown:
        checks.fail("bounds", f"of leaves of `example`: {', '.join(sizes)}", unknown)
    return [bounds.get(name, (None, None)) for name, size in sizes.items() for _ in range(size)]


def _stem(path: Any) -> str:
    return jax.tree_util.keystr(path, simple=True, separator=".") or "x"


def _leaf_names(example: PyTree) -> tuple[str, ...]:
    """ "weights[0, 1]" and the like, in the order of the flattened tree."""
    names: list[str] = []
    for path, leaf in jax.tree_util.tree_leaves_with_path(example):
        stem = _stem(path)
        indices = np.ndindex(leaf.shape)
        names += [f"{stem}[{', '.join(map(str, i))}]" if i else stem for i in indices]
    return tuple(names)
