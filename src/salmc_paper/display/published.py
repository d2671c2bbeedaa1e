"""The numbers that the paper prints, each with where it stands.

"The paper" is the AAAI 2019 paper on self-adversarially learned Bayesian sampling that this
package implements. Of its figures only what the text states is here: no number was read off a
picture. N/A is the paper's own word for A-NICE-MC without a Metropolis-Hastings step, which it
says collapses; a dash stands where it prints a dash.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Published:
    """A number of the paper.

    Attributes:
        value: the number.
        where: where it stands.
    """

    value: int | float
    where: str


TABLE1 = "Table 1"
TABLE2 = "Table 2"
SYNTHETIC = "the section on synthetic data"
REGRESSION = "the section on Bayesian logistic regression"

DRAWS = Published(2000, "the captions of Tables 1 and 2")
"""Draws of each chain, the most that ESS can be there."""

CHAINS = Published(32, SYNTHETIC)
"""Chains of the R-hat there, and of the accuracies."""

# (method, with a Metropolis-Hastings step) ↦ target ↦ (ESS, ESS per second).
_TABLES: dict[str, dict[tuple[str, bool], dict[str, tuple[int, int]]]] = {
    TABLE1: {
        ("sal-mc", False): {
            "ring": (1635, 121138),
            "mog2": (1435, 72691),
            "mog6": (1212, 65287),
        },
        ("sal-mc", True): {
            "ring": (1561, 25624),
            "mog2": (1172, 17531),
            "mog6": (978, 12235),
            "ring5": (414, 16287),
        },
        ("a-nice-mc", True): {
            "ring": (2000, 43887),
            "mog2": (951, 17216),
            "mog6": (889, 11745),
            "ring5": (335, 6022),
        },
    },
    TABLE2: {
        ("sal-mc", False): {
            "heart": (1683, 93140),
            "australian": (1385, 70655),
            "german": (1897, 86512),
        },
        ("sal-mc", True): {
            "heart": (1, 10),
            "australian": (1, 8),
            "german": (1, 14),
        },
        ("a-nice-mc", True): {
            "heart": (663, 10939),
            "australian": (596, 9834),
            "german": (483, 7848),
        },
    },
}

_PARTICLE_METHODS = ("pos", "sgld")

_ACCURACY = {"heart": 0.8410, "australian": 0.8838, "german": 0.8032}
"""Of SAL-MC, over 10 runs; the text says that those of A-NICE-MC are the same."""

RHAT = Published(1.00, SYNTHETIC)
"""Of SAL-MC on all tasks, 32 chains."""


def ess(method: str, metropolis: bool, target: str) -> Published | None:
    """ESS of 2000, or None where the paper prints none."""
    return _entry(method, metropolis, target, 0)


def ess_per_second(method: str, metropolis: bool, target: str) -> Published | None:
    """ESS per second, or None where the paper prints none."""
    return _entry(method, metropolis, target, 1)


def accuracy(method: str, target: str) -> Published | None:
    """Test accuracy, a share of 1."""
    if method not in ("sal-mc", "a-nice-mc") or target not in _ACCURACY:
        return None
    return Published(_ACCURACY[target], REGRESSION)


def all_numbers() -> list[tuple[str, Published]]:
    """Every number of the two tables and the accuracies, with a name; for tests and the record."""
    found = []
    for table, rows in _TABLES.items():
        for (method, metropolis), row in rows.items():
            for target, pair in row.items():
                label = f"{method}{' + MH' if metropolis else ''} on {target}"
                found.append((f"ESS, {label}", Published(pair[0], table)))
                found.append((f"ESS/s, {label}", Published(pair[1], table)))
    found += [
        (f"accuracy, sal-mc on {target}", Published(value, REGRESSION))
        for target, value in _ACCURACY.items()
    ]
    return found


def _entry(method: str, metropolis: bool, target: str, index: int) -> Published | None:
    if method in _PARTICLE_METHODS and index == 0 and target in _TABLES[TABLE1]["sal-mc", True]:
        return Published(10, f"{SYNTHETIC}: “around 10”")
    for table, rows in _TABLES.items():
        pair = rows.get((method, metropolis), {}).get(target)
        if pair is not None:
            return Published(pair[index], table)
    return None
