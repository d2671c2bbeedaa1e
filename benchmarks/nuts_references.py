"""Long runs of NUTS that give the reference moments of the three logistic regressions.

For each posterior two independent runs of 32 chains must agree within their standard errors and
have no divergence and an R-hat below 1.005; their pooled moments are written to
`src/salmc_paper/measures/references/`.
"""

import json
from typing import Any

import numpy as np

from salmc.diagnostics import ess_bulk, rhat
from salmc.errors import SalmcError
from salmc.sampling.draws import Draws
from salmc_paper.harness.jobs import Context, Job
from salmc_paper.harness.store import write_text
from salmc_paper.measures.nuts import nuts
from salmc_paper.measures.problems import find_target
from salmc_paper.measures.references import FOLDER, REFERENCES, disagreement, measured

LARGEST_ERROR = 0.005
"""In units of the sd."""
LARGEST_DISAGREEMENT = 4.5
"""Standard errors. They come from 32 chains each, so the worst of 2 × 25 comparisons (Student's t
of 62 degrees) exceeds this with a probability of about 1.5e-3."""


def jobs() -> list[Job]:
    """One for each posterior."""
    return [
        Job(
            "nuts_references",
            f"NUTS on {name}",
            {"target": name, "draws": 4000, "seeds": [1, 2]},
            _run,
            entry=("posteriors", name),
            seconds=120.0,
        )
        for name in REFERENCES
    ]


def _run(context: Context) -> dict[str, Any]:
    """Run, check, write."""
    name, count, seeds = context["target"], context["draws"], context["seeds"]
    target = find_target(name)
    runs = [nuts(target, draws=count, seed=seed, mass_matrix="dense") for seed in seeds]
    pooled = Draws(
        positions=np.concatenate([run.positions for run in runs]),
        log_density=np.concatenate([run.log_density for run in runs]),
        seconds=sum(run.seconds for run in runs),
    )
    made_by = {
        "method": "BlackJAX NUTS, dense mass matrix, window adaptation",
        "chains": len(pooled.positions),
        "draws": count,
        "seeds": seeds,
    }
    found = measured(target, pooled, made_by)
    single = [measured(target, run, {}) for run in runs]
    figures = {
        "largest_error_in_sd": found.largest_error,
        "disagreement_of_two_runs_in_standard_errors": disagreement(*single),
        "rhat": float(np.max(rhat(pooled.positions))),
        "smallest_ess_bulk": float(np.min(ess_bulk(pooled.positions))),
        "divergences": sum(run.settings["divergences"] for run in runs),
        "seconds": pooled.seconds,
    }
    if (
        figures["largest_error_in_sd"] > LARGEST_ERROR
        or figures["disagreement_of_two_runs_in_standard_errors"] > LARGEST_DISAGREEMENT
        or figures["rhat"] > 1.005
        or figures["divergences"] > 0
    ):
        raise SalmcError(f"The reference of {name} is not good enough ({json.dumps(figures)}).")
    write_text(FOLDER / f"{name}.json", json.dumps(found.to_json(), indent=1) + "\n")
    return figures
