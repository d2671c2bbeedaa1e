"""Symmetries that chains of a sampler make use of, as arrays of a file and back."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from salmc.sampling.files.archive import numbers, require
from salmc.sampling.symmetries import Symmetries

_NAMES = ("matrices", "offsets")
_ROUNDED = 1e-2


def symmetries_of(sampler: Any) -> Symmetries | None:
    """Those that move its chains."""
    moves = sampler.trajectory if sampler.ladder is None else sampler.ladder
    return None if moves is None else moves.symmetries


def arrays_of_symmetries(symmetries: Symmetries | None) -> dict[str, Any]:
    """Under their names in a file."""
    if symmetries is None:
        return {}
    return {f"symmetries/{name}": getattr(symmetries, name) for name in _NAMES}


def read_symmetries(arrays: dict[str, np.ndarray], dim: int) -> Symmetries | None:
    """Checked: maps that change volumes, or that have no way back, would leave another density
    invariant."""
    if "symmetries/matrices" not in arrays:
        return None
    matrices = numbers(arrays["symmetries/matrices"], None, dim, dim)
    offsets = numbers(arrays["symmetries/offsets"], len(matrices), dim)
    half = len(matrices) // 2
    forward, back = (
        (matrices[part].astype(np.float64), offsets[part].astype(np.float64))
        for part in (slice(half), slice(half, None))
    )
    require(half > 0 and 2 * half == len(matrices), "symmetries")
    around = np.abs(forward[0] @ back[0] - np.eye(dim))
    shifted = np.abs(np.einsum("kd,kde->ke", forward[1], back[0]) + back[1])
    require(bool(np.all(around < _ROUNDED) and np.all(shifted < _ROUNDED)), "symmetries")
    volumes = np.linalg.slogdet(forward[0])[1]
    require(bool(np.all(np.abs(volumes) < _ROUNDED)), "symmetries")
    return Symmetries(jnp.asarray(matrices), jnp.asarray(offsets))
