"""Long runs of NUTS that give the reference moments of the three logistic regressions.

For each posterior two independent runs of 32 chains must agree within their standard errors and
have no divergence and an R-hat below 1.005; their pooled moments are written to
`src/salmc_paper/measures/references/`.
"""

import json
from pathlib import Path

import numpy as np

import salmc_paper.measures
from benchmarks.common import record
from salmc.diagnostics import ess_bulk, rhat
from salmc.sampling.atomic import new_file
from salmc.sampling.draws import Draws
from salmc.targets import load_target
from salmc_paper.measures.nuts import nuts
from salmc_paper.measures.references import REFERENCES, disagreement, measured

DRAWS, SEEDS = 4000, (1, 2)
LARGEST_ERROR = 0.005
"""In units of the sd."""
LARGEST_DISAGREEMENT = 4.5
"""Standard errors. They come from 32 chains each, so the worst of 2 × 25 comparisons (Student's t
of 62 degrees) exceeds this with a probability of about 1.5e-3."""


def main() -> None:
    """Run, check, write."""
    folder = Path(salmc_paper.measures.__file__).parent / "references"
    folder.mkdir(exist_ok=True)
    results = {}
    for name in REFERENCES:
        target = load_target(name)
        runs = [nuts(target, draws=DRAWS, seed=seed, mass_matrix="dense") for seed in SEEDS]
        pooled = Draws(
            positions=np.concatenate([run.positions for run in runs]),
            log_density=np.concatenate([run.log_density for run in runs]),
            seconds=sum(run.seconds for run in runs),
        )
        made_by = {
            "method": "BlackJAX NUTS, dense mass matrix, window adaptation",
            "chains": len(pooled.positions),
            "draws": DRAWS,
            "seeds": list(SEEDS),
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
        results[name] = figures
        print(name, json.dumps(figures), flush=True)
        if (
            figures["largest_error_in_sd"] > LARGEST_ERROR
            or figures["disagreement_of_two_runs_in_standard_errors"] > LARGEST_DISAGREEMENT
            or figures["rhat"] > 1.005
            or figures["divergences"] > 0
        ):
            raise SystemExit(f"The reference of {name} is not good enough; nothing is written.")
        with new_file(folder / f"{name}.json") as working:
            working.write_text(json.dumps(found.to_json(), indent=1) + "\n", encoding="utf-8")
    record("nuts_references", {"posteriors": results})
