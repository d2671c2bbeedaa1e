"""What a model says of its variables, beside their values: names of axes, labels, data.

None of it changes a draw. It is what makes `Draws.to_arviz` read like a run of the library that
the model was written for, and what tables and pictures call things.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from salmc import checks

Arrays = Mapping[str, Any]


@dataclasses.dataclass(frozen=True, eq=False)
class Annotations:
    """Compared and hashed as an object, so that a target that carries it is one and the same.

    Attributes:
        dims: of a variable, the names of its axes; axes at the end may be left out.
        coords: of an axis, the labels along it.
        observed: the data that the likelihood is of, by the names of their sites.
        constants: further data.
        log_likelihood: x of shape (dim,) ↦ the log likelihood of each datum, by site; JAX.
        predict: (seed, variables with a leading axis of n) ↦ n draws of new data, by site.
        predicted: the number of draws at which new data are predicted, at most; None for all.
    """

    dims: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    coords: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)
    observed: Arrays = dataclasses.field(default_factory=dict)
    constants: Arrays = dataclasses.field(default_factory=dict)
    log_likelihood: Callable[[Any], Arrays] | None = None
    predict: Callable[[int, Arrays], Arrays] | None = None
    predicted: int | None = 1000

    def labelled(self, dims: Mapping[str, Any] | None, coords: Mapping[str, Any] | None) -> Any:
        """The same with more names; those that are given replace others.

        Raises:
            ArgumentError: if they are no names and labels.
        """
        new_dims = {} if dims is None else _named(dims)
        new_coords = {} if coords is None else _labels(coords)
        return dataclasses.replace(
            self, dims={**self.dims, **new_dims}, coords={**self.coords, **new_coords}
        )


NOTHING = Annotations()


def _named(dims: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    expectation = "a dictionary of lists of names of axes, such as {'theta': ['school']}"
    if not isinstance(dims, Mapping):
        checks.fail("dims", expectation, dims)
    for names in dims.values():
        if isinstance(names, str) or not all(isinstance(name, str) for name in names):
            checks.fail("dims", expectation, dims)
    return {name: tuple(names) for name, names in dims.items()}


def _labels(coords: Mapping[str, Any]) -> dict[str, np.ndarray]:
    expectation = "a dictionary of lists of labels, such as {'school': ['Choate', …]}"
    if not isinstance(coords, Mapping):
        checks.fail("coords", expectation, coords)
    found = {name: np.asarray(labels) for name, labels in coords.items()}
    if any(labels.ndim != 1 for labels in found.values()):
        checks.fail("coords", expectation, coords)
    return found
