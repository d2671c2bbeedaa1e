"""Tables of the paper's logistic regressions: raw values, random splits, standardisation.

Heart 270 × 13, Australian 690 × 14, German 1000 × 24, all from UCI's Statlog; labels are 0 or 1.
"""

import dataclasses
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from salmc import checks
from salmc.datasets.fetch import find
from salmc.datasets.parsing import parse_table

TABLES: dict[str, int] = {"heart": 13, "australian": 14, "german": 24}
"""The tables by name, and the number of features of each."""


@dataclasses.dataclass(frozen=True, eq=False)
class Table:
    """Features and labels of a data set, raw.

    Attributes:
        name: "heart", "australian" or "german".
        features: (rows, k).
        labels: (rows,), 0 or 1.
        feature_names: k names; x1 … xk where the source has none.
    """

    name: str
    features: Float[np.ndarray, "rows k"]
    labels: Int[np.ndarray, " rows"]
    feature_names: tuple[str, ...]

    def rows(self, chosen: Int[np.ndarray, " n"]) -> "Table":
        """The table of some of the rows, in the given order."""
        return dataclasses.replace(self, features=self.features[chosen], labels=self.labels[chosen])


class Standardisation(NamedTuple):
    """z = (x − mean)/sd for each feature, with the moments (ddof 0) of the data it was made of."""

    mean: Float[np.ndarray, " k"]
    std: Float[np.ndarray, " k"]

    @classmethod
    def of(cls, features: Float[np.ndarray, "rows k"]) -> "Standardisation":
        """That of these features. One that never varies is only centred."""
        values = np.asarray(features, dtype=np.float64)
        constant = np.all(values == values[:1], axis=0)
        return cls(values.mean(axis=0), np.where(constant, 1.0, values.std(axis=0)))

    def apply(self, features: Float[np.ndarray, "rows k"]) -> Float[np.ndarray, "rows k"]:
        """Standardised features."""
        return (np.asarray(features, dtype=np.float64) - self.mean) / self.std


def load(name: str) -> Table:
    """The whole table of that name.

    Raises:
        DataError: if its file cannot be had or is not the right one.
    """
    checks.choice("name", name, tuple(TABLES))
    content = find(f"{name}.csv").read_bytes()
    values, names = parse_table(content, TABLES[name] + 1)
    return Table(name, values[:, :-1], values[:, -1].astype(np.int64), names[:-1])


def split(table: Table, seed: int, share: float = 0.8) -> tuple[Table, Table]:
    """A random split into a table to train on, of `share` of the rows, and one to test on.

    Every row is in exactly one of the two, and the same seed gives the same split.
    """
    checks.integer("seed", seed, 0)
    checks.real("share", share, above=0.0, at_most=1.0)
    rows = len(table.labels)
    training = round(share * rows)
    if not 0 < training < rows:
        checks.fail("share", f"such that both parts of {rows} rows have some", share)
    order = np.random.default_rng(seed).permutation(rows)
    return table.rows(order[:training]), table.rows(order[training:])
