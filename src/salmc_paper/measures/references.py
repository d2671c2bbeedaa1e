"""Reference moments of the posteriors that have no exact draws, from long runs of NUTS.

They are what bias is measured against, and nothing else: no target knows them, so that no
training and no tuning can look at them. `python -m benchmarks nuts_references` makes them anew.
"""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from salmc import checks
from salmc.errors import DataError
from salmc.sampling.draws import Draws
from salmc.target import AbstractTarget

REFERENCES = ("heart", "australian", "german")
FOLDER = Path(__file__).parent / "references"


@dataclasses.dataclass(frozen=True, eq=False)
class Reference:
    """Moments of each coordinate of a posterior, and how well they are known.

    Attributes:
        target: the target's name.
        names: of the coordinates.
        mean, std: the moments.
        mean_error, std_error: their Monte-Carlo standard errors.
        made_by: how the run was made; JSON values.
    """

    target: str
    names: tuple[str, ...]
    mean: Float[np.ndarray, " dim"]
    std: Float[np.ndarray, " dim"]
    mean_error: Float[np.ndarray, " dim"]
    std_error: Float[np.ndarray, " dim"]
    made_by: dict[str, Any]

    @property
    def largest_error(self) -> float:
        """The largest standard error of a mean or an sd, in units of the sd."""
        return float(np.max(np.maximum(self.mean_error, self.std_error) / self.std))

    def to_json(self) -> dict[str, Any]:
        """As JSON values; `from_json` reads them."""
        return {
            field.name: value.tolist() if isinstance(value, np.ndarray) else value
            for field in dataclasses.fields(self)
            for value in [getattr(self, field.name)]
        }

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> "Reference":
        """What `to_json` wrote; `DataError` if it is something else."""
        try:
            names = tuple(content["names"])
            arrays = {
                name: np.array(content[name], dtype=np.float64)
                for name in ("mean", "std", "mean_error", "std_error")
            }
            made = cls(target=content["target"], names=names, made_by=content["made_by"], **arrays)
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"The reference moments cannot be read ({error!r}).") from error
        for name, array in arrays.items():
            if array.shape != (len(names),) or not np.all(np.isfinite(array)):
                raise DataError(f"The reference moments have no usable `{name}`.")
        if np.any(made.std <= 0):
            raise DataError("The reference moments have an sd that is not positive.")
        return made


def reference(name: str) -> Reference:
    """The shipped reference of "heart", "australian" or "german": all data, prior N(0, I)."""
    checks.choice("name", name, REFERENCES)
    try:
        content = (FOLDER / f"{name}.json").read_text(encoding="utf-8")
        return Reference.from_json(json.loads(content))
    except (OSError, json.JSONDecodeError) as error:
        raise DataError(
            f"The reference moments of {name} are missing or damaged. Install salmc anew."
        ) from error


def measured(target: AbstractTarget, draws: Draws, made_by: dict[str, Any]) -> Reference:
    """The moments of long chains, and their standard errors from how much the chains differ.

    Chains are independent, so the spread of their own means and mean squares gives errors that
    assume nothing of autocorrelation. An ESS of the means would not do for the sds: where NUTS
    makes means more precise than independent draws would, squares are not, and the errors of sds
    come out at less than half.
    """
    chains = np.asarray(draws.chains(), dtype=np.float64)
    if len(chains) < 8:
        checks.fail("draws", "of at least 8 chains", f"{len(chains)} chains")
    mean, std = chains.mean(axis=(0, 1)), chains.std(axis=(0, 1))

    def error(of_chains: Float[np.ndarray, "chain dim"]) -> Float[np.ndarray, " dim"]:
        return np.std(of_chains, axis=0, ddof=1) / np.sqrt(len(chains))

    variances = np.mean((chains - mean) ** 2, axis=1)
    return Reference(
        target=target.name,
        names=target.names,
        mean=mean,
        std=std,
        mean_error=error(chains.mean(axis=1)),
        # d sd = d variance / (2 sd)
        std_error=error(variances) / (2 * std),
        made_by=made_by,
    )


def disagreement(first: Reference, second: Reference) -> float:
    """How far two independent runs are apart: the largest difference in standard errors."""
    worst = 0.0
    for moment in ("mean", "std"):
        apart = np.abs(getattr(first, moment) - getattr(second, moment))
        error = np.hypot(getattr(first, f"{moment}_error"), getattr(second, f"{moment}_error"))
        worst = max(worst, float(np.max(apart / error)))
    return worst
