"""Draws as a tree of labelled arrays, with the groups that ArviZ knows.

`posterior` and `sample_stats` hold the points that stand for the target, in the user's variables.
For chains that is every chain without its burn-in (which is in `warmup_posterior`); for particles
it is the last cloud, as one chain of that many draws, since the way of a particle to its place is
not a sample. A model that knows its data adds `observed_data`, `constant_data`, `log_likelihood`
of each datum at each draw, and `posterior_predictive`: new data at the draws, or at some of
them where each takes long.
"""

from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from salmc.errors import MissingPackageError
from salmc.sampling.draws import Draws
from salmc.sampling.variables import fitting, named_leaves

if TYPE_CHECKING:
    import xarray

MOST_NUMBERS = 2**26
"""In a group, at most: 256 MB. Beyond, `log_likelihood` is left out, and says so; new data are
predicted at fewer draws."""

_BATCH = 1024
_DATA_GROUPS = ("observed_data", "constant_data", "log_likelihood", "posterior_predictive")


def to_arviz(draws: Draws, *, data: bool = True) -> "xarray.DataTree":
    """An `xarray.DataTree` with the groups that ArviZ knows; see the module's text.

    Args:
        draws: the draws.
        data: whether to add the groups of data and of their likelihood.
    """
    from arviz_base import from_dict

    values, dims, coords, kept_groups = draws.variables
    groups: dict[str, dict[str, Any]] = {}
    for prefix, part in _parts(draws).items():
        groups[f"{prefix}posterior"] = {name: part(value) for name, value in values.items()}
        known = {"lp": draws.log_density, "accepted": draws.accepted}
        statistics = {name: part(value) for name, value in known.items() if value is not None}
        if statistics:
            groups[f"{prefix}sample_stats"] = statistics
    attributes = {
        "method": draws.method,
        "target": "unknown" if draws.target is None else draws.target.name,
        "kind": draws.kind,
        "sampling_time": draws.seconds,
        "compile_time": draws.compile_seconds,
        "inference_library": "salmc",
        "warnings": list(draws.warnings),
    }
    steps = np.zeros(0, int)
    if data and draws.target is not None:
        more, steps, left_out = _data_groups(draws, groups["posterior"])
        groups |= more
        notes = draws.target.annotations
        data_of = {**notes.observed, **notes.constants}
        shapes = {name: np.shape(value) for name, value in data_of.items()}
        shapes |= {name: value.shape[2:] for name, value in values.items()}
        if draws.target.has_variables:
            dims, coords = fitting(shapes, notes.dims, notes.coords)
        if left_out:
            attributes["left_out"] = left_out
    tree = from_dict(
        groups,
        save_warmup=True,
        check_conventions=False,  # more chains than draws is what movers make
        dims={name: list(names) for name, names in dims.items()},
        coords={name: list(labels) for name, labels in coords.items()},
        attrs={"/": attributes, **dict.fromkeys(groups, attributes)},
    )
    if "posterior_predictive" in groups:
        predicted = tree["posterior_predictive"].to_dataset()
        tree["posterior_predictive"] = predicted.assign_coords(draw=steps)
    for name, group in kept_groups.items():
        tree[name] = group
    return tree


def to_inference_data(draws: Draws) -> Any:
    """An `arviz.InferenceData`, which ArviZ before 1.0 takes.

    Raises:
        MissingPackageError: if ArviZ is not there, or is one that takes `to_arviz()` as it is.
    """
    wanted = (
        "An InferenceData needs ArviZ before 1.0, which is not installed here; ArviZ 1 takes "
        "draws.to_arviz() as it is."
    )
    try:
        import arviz
    except ImportError as error:
        raise MissingPackageError(wanted) from error
    # Later ones still have the name, of something else.
    if not arviz.__version__.startswith("0."):
        raise MissingPackageError(wanted)
    tree = to_arviz(draws)
    groups: dict[str, Any] = {
        name: _by_place(node.to_dataset()) for name, node in tree.children.items()
    }
    return arviz.InferenceData(attrs=dict(tree.attrs), **groups)


def _by_place(group: "xarray.Dataset") -> "xarray.Dataset":
    """Axes without a name numbered by their place, as ArviZ before 1.0 has them.

    Later ones count such axes alone: beside one named axis `z_dim_0` was `z_dim_1`.
    """
    names: dict[Any, str] = {}
    for name, values in group.data_vars.items():
        own = [axis for axis in values.dims if axis not in ("chain", "draw")]
        unnamed = [(axis, str(axis).startswith(f"{name}_dim_")) for axis in own]
        names |= {
            axis: f"{name}_dim_{place}" for place, (axis, is_so) in enumerate(unnamed) if is_so
        }
    return group.rename(names)


def _data_groups(
    draws: Draws, posterior: dict[str, np.ndarray]
) -> tuple[dict[str, dict[str, Any]], np.ndarray, list[str]]:
    """The groups, at which draws new data are predicted, and what is left out, in words."""
    notes = draws.target.annotations  # type: ignore[union-attr]
    groups: dict[str, dict[str, Any]] = {}
    left_out: list[str] = []
    for name, found in (("observed_data", notes.observed), ("constant_data", notes.constants)):
        if found:
            groups[name] = dict(found)
    chains, count = next(iter(posterior.values())).shape[:2]
    data = sum(int(np.size(value)) for value in notes.observed.values())
    if notes.log_likelihood is not None and data:
        if chains * count * data > MOST_NUMBERS:
            left_out.append(
                f"log_likelihood: {chains * count} draws × {data} data are more than "
                f"{MOST_NUMBERS} numbers. Draw fewer for it."
            )
        else:
            flat = draws.sample()
            found = named_leaves(jax.lax.map(notes.log_likelihood, flat, batch_size=_BATCH))
            groups["log_likelihood"] = {
                name: value.reshape(chains, count, *value.shape[1:])
                for name, value in found.items()
            }
    most = max(MOST_NUMBERS // max(data, 1), 1)
    most = most if notes.predicted is None else min(most, notes.predicted)
    every = max(1, -(-chains * count // most))
    steps = np.arange(0, count, every)
    if notes.predict is not None:
        chosen = {
            name: value[:, steps].reshape(-1, *value.shape[2:]) for name, value in posterior.items()
        }
        try:
            predicted = notes.predict(0, chosen)
        # The user's own model in another library's hands: whatever fails there costs no draws.
        except Exception as error:
            left_out.append(f"posterior_predictive: {type(error).__name__}: {error}")
        else:
            groups["posterior_predictive"] = {
                name: np.asarray(value).reshape(chains, len(steps), *np.shape(value)[1:])
                for name, value in predicted.items()
            }
    return groups, steps, left_out


def stored_groups(tree: "xarray.DataTree") -> dict[str, Any]:
    """The groups of data of a stored tree."""
    return {name: tree[name].to_dataset().load() for name in _DATA_GROUPS if name in tree}


def _parts(draws: Draws) -> dict[str, Any]:
    """For each prefix of a group, what to take of an array (chain, draw, ...)."""
    if draws.kind == "particles":
        return {"": lambda value: value[None, :, -1]}
    burnt = draws.positions.shape[1] - draws.chains().shape[1]
    parts: dict[str, Any] = {"": lambda value: value[:, burnt:]}
    if burnt:
        parts["warmup_"] = lambda value: value[:, :burnt]
    return parts
