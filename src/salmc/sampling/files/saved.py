"""Samplers in `.salmc` files: what `kernel_file` writes of one, and the target found again."""

import dataclasses
from pathlib import Path
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from salmc.errors import OutputError
from salmc.kernels.base import AbstractKernel
from salmc.sampling.files.archive import damaged, numbers, real, require, whole, words
from salmc.sampling.files.coordinates import (
    arrays_of,
    arrays_of_whitening,
    in_coordinates,
    whitening_of,
)
from salmc.sampling.files.kernel_file import FORMAT_VERSION, read_kernel, write_kernel
from salmc.sampling.files.symmetry_arrays import (
    arrays_of_symmetries,
    read_symmetries,
    symmetries_of,
)
from salmc.sampling.replicas import Ladder
from salmc.sampling.sampler import Sampler
from salmc.sampling.symmetries import Symmetries
from salmc.sampling.trajectories import Trajectory
from salmc.target import AbstractTarget

_FINGERPRINT_POINTS = 16
_WITHOUT_LADDERS, _WITHOUT_SYMMETRIES = 3, 4
"""The last formats without replicas, and without moves to images."""

_LADDER = ("betas", "step_sizes", "factors", "starts")
_POOL_VALUES = "pool_log_density"
_HISTORY = "history/"
_MOST_LOCAL_STEPS, _MOST_GRADIENTS = 1000, 100_000


def save_sampler(sampler: Sampler, path: str | Path) -> Path:
    """Write a `.salmc` file, in full or not at all."""
    pool = np.asarray(sampler.pool)
    arrays: dict[str, Any] = arrays_of_whitening(sampler.whitening)
    if sampler.pool_log_density is not None:
        arrays[_POOL_VALUES] = sampler.pool_log_density
    coordinates = arrays_of(sampler.target)
    target = _described(None if sampler.target is None else sampler.target.outer, pool)
    more: dict[str, Any] = {"local": int(sampler.local)}
    if sampler.trajectory is not None:
        step, length = sampler.trajectory.step_size, sampler.trajectory.length
        more["trajectory"] = {"step_size": float(step), "length": int(length)}
    symmetries = symmetries_of(sampler)
    arrays |= arrays_of_symmetries(symmetries)
    if sampler.ladder is not None:
        arrays |= {f"ladder/{name}": getattr(sampler.ladder, name) for name in _LADDER}
        more["trajectory"] = {"length": int(sampler.ladder.length)}
    if "trajectory" in more or any(name.startswith("straight/") for name in coordinates):
        # An older version would draw in other coordinates, or walk: it must refuse.
        plain = _WITHOUT_LADDERS if sampler.ladder is None else _WITHOUT_SYMMETRIES
        more["format_version"] = plain if symmetries is None else FORMAT_VERSION
    return write_trained(path, sampler, {**arrays, **coordinates, "pool": pool}, target, more)


def write_trained(
    path: str | Path,
    sampler: Any,
    arrays: dict[str, Any],
    target: dict[str, Any],
    more: dict[str, Any] | None = None,
) -> Path:
    """Write the kernel of a sampler, of whatever it samples, and the record of its training."""
    header = {
        "method": sampler.method,
        "settings": sampler.settings,
        "seconds": {name: float(value) for name, value in sampler.seconds.items()},
        "target": target,
        "warnings": list(sampler.warnings),
        **(more or {}),
    }
    history = {f"{_HISTORY}{name}": np.asarray(value) for name, value in sampler.history.items()}
    return write_kernel(path, sampler.kernel, header, {**history, **arrays})


def training_of(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """The record of the training, as `write_trained` wrote it."""
    require(isinstance(header["settings"], dict), "settings")
    history = {
        name.removeprefix(_HISTORY): value
        for name, value in arrays.items()
        if name.startswith(_HISTORY)
    }
    return {
        "settings": header["settings"],
        "history": history,
        "seconds": {name: real(value) for name, value in header["seconds"].items()},
        "warnings": words(header.get("warnings", [])),
    }


def load(path: str | Path, target: AbstractTarget | None = None) -> Sampler:
    """Read what `Sampler.save` wrote.

    Args:
        path: the `.salmc` file.
        target: what to sample. A built-in target is found by its name; your own is code, which a
            file does not hold, so give it for a Metropolis step and for diagnostics.

    Raises:
        OutputError: if the file is missing, damaged, of a newer format, or not of salmc.
    """
    kernel, header, arrays = read_kernel(path)
    if kernel.over_images:
        raise OutputError(
            f"{path} holds a kernel over images. Use salmc.images.load, or salmc images sample."
        )
    with damaged(path):
        sampler = _sampler(kernel, header, arrays)
        if target is None:
            target = _built_in(header["target"], np.asarray(sampler.pool))
        target = in_coordinates(target, arrays, kernel.dim)
    # A target that does not fit is no fault of the file.
    return dataclasses.replace(sampler, target=target)


def _sampler(
    kernel: AbstractKernel, header: dict[str, Any], arrays: dict[str, np.ndarray]
) -> Sampler:
    """All but the target, checked."""
    dim = kernel.dim
    whitening = whitening_of(arrays, dim)
    pool, values = numbers(arrays["pool"], None, dim), arrays.get(_POOL_VALUES)
    require(pool.dtype.kind == "f", "pool")
    require(isinstance(header["method"], str), "method")
    symmetries = read_symmetries(arrays, dim)
    return Sampler(
        kernel=kernel,
        target=None,
        whitening=whitening,
        pool=pool,
        method=header["method"],
        pool_log_density=None if values is None else numbers(values, len(pool)),
        local=whole(header.get("local", 0), _MOST_LOCAL_STEPS),
        trajectory=_trajectory(header.get("trajectory"), symmetries),
        ladder=_ladder(header, arrays, dim, symmetries),
        **training_of(header, arrays),
    )


def _trajectory(described: Any, symmetries: Symmetries | None) -> Trajectory | None:
    if described is None or "step_size" not in described:
        return None
    size = real(described["step_size"])
    require(0.0 < size < np.inf, "step size")
    return Trajectory.of(size, whole(described["length"], _MOST_GRADIENTS), symmetries)


def _ladder(
    header: dict[str, Any],
    arrays: dict[str, np.ndarray],
    dim: int,
    symmetries: Symmetries | None = None,
) -> Ladder | None:
    if "ladder/betas" not in arrays:
        return None
    betas = numbers(arrays["ladder/betas"], None)
    rungs = len(betas)
    shapes = ((rungs,), (rungs,), (rungs, dim, dim), (None, rungs - 1, dim))
    parts = [
        numbers(arrays[f"ladder/{name}"], *shape)
        for name, shape in zip(_LADDER, shapes, strict=True)
    ]
    require(all(np.all(np.isfinite(part)) for part in parts), "ladder")
    require(rungs > 1 and len(parts[-1]) > 0, "ladder")
    # Without both ends draws would be of something else.
    ends = betas[0] == 1.0 and betas[-1] == 0.0 and bool(np.all(np.diff(betas) < 0.0))
    require(ends, "temperatures")
    require(bool(np.all(parts[1] >= 0.0)), "step sizes")
    length = whole(header["trajectory"]["length"], _MOST_GRADIENTS)
    *moves, starts = (jnp.asarray(part) for part in parts)
    return Ladder(moves[0], moves[1], moves[2], jnp.asarray(length), starts, symmetries)


def _described(target: AbstractTarget | None, pool: np.ndarray) -> dict[str, Any]:
    if target is None:
        return {}
    return {"name": target.name, "dim": target.dim, "log_density": _fingerprint(target, pool)}


def _built_in(described: dict[str, Any], pool: np.ndarray) -> AbstractTarget | None:
    """The built-in target of that name, if it is the same density and not only the same name."""
    from salmc.targets.loading import built_in

    target = built_in(described.get("name"))
    if target is None or target.dim != pool.shape[1]:
        return None
    expected = np.array(
        [-np.inf if value is None else value for value in described.get("log_density", [])]
    )
    found = _fingerprint(target, pool)
    same = len(found) == len(expected) and np.allclose(found, expected, rtol=1e-3, atol=1e-2)
    return target if same else None


def _fingerprint(target: AbstractTarget, pool: np.ndarray) -> np.ndarray:
    """log p at a few points: tells targets of one name apart."""
    points = jnp.asarray(pool[:_FINGERPRINT_POINTS], dtype=float)
    return np.asarray(eqx.filter_jit(target.log_densities)(points))
