"""Draws in the user's own variables: arrays by name, and as one list of named numbers.

Kernels and movers work on vectors; people think of `tau` and of `theta[Choate]`. Tables, verdicts,
pictures and folders ask here, so that all of them call one number by one name.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from salmc.programs import compiled, on_device
from salmc.target import AbstractTarget, Points

if TYPE_CHECKING:
    import xarray

    from salmc.sampling.draws import Draws

_BATCH, _BATCH_NUMBERS = 8192, 2**21
"""Points that are mapped to the user's variables at once, and numbers that they have, at most."""

_ROUNDING = 1e-5
"""Relative: numbers that differ by less are the same number, computed twice."""


class Variables(NamedTuple):
    """Arrays by name, what their axes are called, and labels along those.

    A target without variables of its own has one, `x`, along the axis `coordinate`.
    """

    values: dict[str, np.ndarray]
    """(chain, draw, …) each; of loaded particles the last draw alone."""
    dims: dict[str, tuple[str, ...]]
    coords: dict[str, np.ndarray]
    groups: dict[str, Any] = {}  # noqa: RUF012 - nobody writes to it
    """Of stored draws, the datasets beside the posterior, by group."""


class Shown(NamedTuple):
    """The same as one array, a name for each number."""

    names: tuple[str, ...]
    values: np.ndarray
    """(chain, draw, number)."""
    fixed: np.ndarray
    """(number,): whether it never changes, as the diagonal of a correlation matrix does not."""
    own: bool
    """Whether the numbers are the coordinates of the draws, in their order: then the target's
    density and known truth are about them."""

    def flat(self, kept: int, particles: bool) -> np.ndarray:
        """(n, number) of the points that stand for the target: the last steps, or the last one."""
        values = np.asarray(self.values, np.float64)
        if particles:
            return values[:, -1]
        return values[:, -min(kept, values.shape[1]) :].reshape(-1, values.shape[2])

    def moving(self) -> "Shown":
        """Without what never changes, unless there is nothing else."""
        kept = ~self.fixed if np.any(~self.fixed) else np.ones_like(self.fixed)
        names = tuple(name for name, keep in zip(self.names, kept, strict=True) if keep)
        return Shown(names, self.values[..., kept], self.fixed[kept], self.own and bool(kept.all()))


def variables_of(draws: "Draws") -> Variables:
    """The user's variables at every draw."""
    positions, target = np.asarray(draws.positions), draws.target
    if target is None or not target.has_variables:
        names = tuple(f"x{i}" for i in range(draws.dim)) if target is None else target.names
        return Variables({"x": positions}, {"x": ("coordinate",)}, {"coordinate": np.array(names)})
    flat = positions.reshape(-1, draws.dim)
    values = named_leaves(_constrained(target, flat))
    values = {name: values[name] for name in _order(target.constrain, flat, list(values))}
    shaped = {
        name: value.reshape(positions.shape[:2] + value.shape[1:]) for name, value in values.items()
    }
    shapes = {name: value.shape[2:] for name, value in shaped.items()}
    notes = target.annotations
    return Variables(shaped, *fitting(shapes, notes.dims, notes.coords))


def _constrained(target: AbstractTarget, points: np.ndarray) -> Any:
    """The user's variables at n points, in batches of one shape: one program, however many parts
    of however many sizes there are, and the same digits in whatever part a point is."""
    size = max(16, min(_BATCH, 1 << (_BATCH_NUMBERS // target.dim).bit_length()))
    batches = []
    for first in range(0, len(points), size):
        batch = points[first : first + size]
        padded = np.pad(batch, ((0, size - len(batch)), (0, 0)), mode="edge")
        batches.append(_constrain(target, on_device(padded)))
    return jax.tree.map(lambda *leaves: np.concatenate(leaves)[: len(points)], *batches)


@compiled
def _constrain(target: AbstractTarget, points: Points) -> Any:
    return jax.vmap(target.constrain)(points)


def shown_of(draws: "Draws", variables: Variables) -> Shown:
    """The variables as one array, each number with its name."""
    names: list[str] = []
    parts: list[np.ndarray] = []
    for name, value in variables.values.items():
        shape = value.shape[2:]
        names += _numbers(name, shape, variables)
        parts.append(value.reshape(*value.shape[:2], -1).astype(draws.positions.dtype))
    values = np.concatenate(parts, axis=2)
    own = np.array_equal(values, draws.positions, equal_nan=True)
    fixed = np.zeros(values.shape[2], bool)
    if not own and values.size:
        with np.errstate(invalid="ignore"):
            low, high = np.min(values, axis=(0, 1)), np.max(values, axis=(0, 1))
            fixed = high - low <= _ROUNDING * np.maximum(np.abs(low), np.abs(high))
    return Shown(tuple(names), values, fixed, own)


def named_leaves(tree: object) -> dict[str, np.ndarray]:
    """The leaves of a tree by their paths, such as "a.b"; a lone array is `x`."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {_name(path): np.asarray(leaf) for path, leaf in leaves}


def stored_variables(tree: "xarray.DataTree", kind: str) -> Variables | None:
    """Of a stored tree, so that draws that are read without their target keep their names."""
    groups = [tree[name].dataset for name in ("warmup_posterior", "posterior") if name in tree]
    if not groups or (kind == "particles" and "posterior" not in tree):
        return None
    last = groups[-1]
    values, dims = {}, {}
    for name, variable in last.data_vars.items():
        parts = [np.asarray(group[name]) for group in groups]
        # Particles were stored as one chain of as many draws.
        whole = parts[-1][0][:, None] if kind == "particles" else np.concatenate(parts, axis=1)
        values[str(name)] = whole
        dims[str(name)] = tuple(str(dim) for dim in variable.dims[2:])
    used = {dim for names in dims.values() for dim in names}
    coords = {dim: np.asarray(last.coords[dim]) for dim in used if dim in last.coords}
    return Variables(values, dims, coords)


def _name(path: Any) -> str:
    name = jax.tree_util.keystr(path, simple=True, separator=".")
    # A group of a Zarr folder cannot have a slash in the names of its arrays.
    return name.replace("/", "_") or "x"


def _order(constrain: Callable[..., Any], flat: np.ndarray, names: list[str]) -> list[str]:
    """The names as the user's function has them: JAX sorts the keys of what it returns."""
    said = constrain(jnp.asarray(flat[0])) if len(flat) else None
    keys = list(said) if isinstance(said, Mapping) else []
    places = {str(key).replace("/", "_"): place for place, key in enumerate(keys)}
    return sorted(names, key=lambda name: places.get(name.split(".")[0], len(places)))


def _numbers(name: str, shape: tuple[int, ...], variables: Variables) -> list[str]:
    """ "theta[Choate]", "weights[0, 1]" and the like; coordinates of `x` by their own names."""
    axes = variables.dims.get(name, ())
    labels = [
        variables.coords.get(axes[i] if i < len(axes) else "", np.arange(length))
        for i, length in enumerate(shape)
    ]
    if axes == ("coordinate",) and name == "x":
        return [str(label) for label in labels[0]]
    indices = np.ndindex(shape)
    texts = [", ".join(str(labels[axis][i]) for axis, i in enumerate(index)) for index in indices]
    return [f"{name}[{text}]" if text else name for text in texts]


def fitting(
    shapes: Mapping[str, tuple[int, ...]],
    dims: Mapping[str, tuple[str, ...]],
    coords: Mapping[str, Any],
) -> tuple[dict[str, tuple[str, ...]], dict[str, np.ndarray]]:
    """Names of axes that these arrays have, and labels of the right number: others are left out."""
    axes_of = {name: tuple(dims[name])[: len(shapes[name])] for name in shapes if name in dims}
    lengths: dict[str, set[int]] = {}
    for name, axes in axes_of.items():
        for axis, length in zip(axes, shapes[name], strict=False):
            lengths.setdefault(axis, set()).add(length)
    # One name for axes of two lengths is no name.
    unique = {axis for axis, found in lengths.items() if len(found) == 1}
    axes_of = {name: axes for name, axes in axes_of.items() if set(axes) <= unique}
    labels = {axis: np.asarray(found) for axis, found in coords.items() if axis in unique}
    return axes_of, {axis: v for axis, v in labels.items() if lengths[axis] == {len(v)}}
