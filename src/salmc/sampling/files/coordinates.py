"""The coordinates of a kernel in files: its whitening, bounds that were found, straight funnels."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from salmc.bounds import Bounds, Unbounded
from salmc.errors import OutputError
from salmc.kernels.layers import Whitening
from salmc.programs import on_device
from salmc.sampling.files.archive import numbers, require
from salmc.straight import NEVER, Straight
from salmc.target import AbstractTarget

_WHITENING = ("mean", "forward_matrix", "inverse_matrix")
_BOUNDS = ("lower", "upper")
_STRAIGHT = tuple(field.name for field in dataclasses.fields(Straight))
_TURNED = ("further", "turns", "anchors")


def arrays_of_whitening(whitening: Whitening) -> dict[str, np.ndarray]:
    """What to keep of the map to whitened coordinates."""
    return {f"whitening/{name}": np.asarray(getattr(whitening, name)) for name in _WHITENING}


def whitening_of(arrays: Mapping[str, Any], dim: int) -> Whitening:
    """The map that was kept. Within `damaged`."""
    shapes = ((dim,), (dim, dim), (dim, dim))
    parts = [
        numbers(arrays[f"whitening/{name}"], *shape)
        for name, shape in zip(_WHITENING, shapes, strict=True)
    ]
    require(all(np.all(np.isfinite(part)) for part in parts), "whitening")
    return Whitening(*map(jnp.asarray, parts))


def arrays_of(target: AbstractTarget | None) -> dict[str, np.ndarray]:
    """What to keep of a target's coordinates; nothing where they are the user's own."""
    if not isinstance(target, Unbounded):
        return {}
    found = {f"bounds/{name}": np.asarray(getattr(target.bounds, name)) for name in _BOUNDS}
    if target.straight is not None:
        found |= {
            f"straight/{name}": np.asarray(getattr(target.straight, name)) for name in _STRAIGHT
        }
    return found


def in_coordinates(
    target: AbstractTarget | None, arrays: Mapping[str, Any], dim: int
) -> AbstractTarget | None:
    """A target in the coordinates that were kept. Within `damaged`."""
    bounds = straight = None
    if "bounds/lower" in arrays:
        sides = (numbers(arrays[f"bounds/{name}"], dim) for name in _BOUNDS)
        bounds = Bounds(*(on_device(side) for side in sides))
    if "straight/scales" in arrays:
        scales = numbers(arrays["straight/scales"], None)
        require(scales.dtype.kind in "iu", "scales")
        require(bool(np.all((scales >= 0) & (scales < dim))), "scales")
        count = len(scales)
        flat, square = (count, dim), (count, dim, dim)
        shapes = ((count,), flat, square, flat, square, flat, flat, square, flat, flat)
        # Files of before funnels could turn do not tell of it.
        plain = dict(zip(_TURNED, (0.0, NEVER, 0.0), strict=True))
        rest = [
            np.full(shape, plain[name])
            if name in plain and f"straight/{name}" not in arrays
            else numbers(arrays[f"straight/{name}"], *shape)
            for name, shape in zip(_STRAIGHT[1:], shapes, strict=True)
        ]
        require(all(np.all(np.isfinite(part)) for part in rest), "funnels")
        straight = Straight(jnp.asarray(scales), *(on_device(p) for p in rest))
    if target is None and (bounds is not None or straight is not None):
        raise OutputError(
            "The kernel lives in other coordinates than its target, which undoes them. Give the "
            "target: salmc.load(path, target), or --target."
        )
    if target is None or target.dim != dim:
        return target  # one that does not fit is no fault of the file
    if target.unbounded is not target:
        target = target.unbounded  # by bounds of its own
    elif bounds is not None and not isinstance(target, Unbounded):
        target = Unbounded(target, bounds)
    return target if straight is None else Unbounded.with_straight(target, straight)
