"""`salmc run --effective`: as many effective draws as asked for, judged and written to a folder."""

import dataclasses

from salmc.cli.results import Results

EFFECTIVE = 10_000


@dataclasses.dataclass(frozen=True)
class Request:
    """What was asked for; None where the default is wanted."""

    effective: int | None
    evaluations: int | None
    chains: int | None
    seed: int = 0


def ask(request: Request, spec: str, results: Results) -> None:
    """Search, learn if it pays, draw, judge, write, tell."""
    from salmc.cli.train_and_draw import CHAINS, TrainingBar
    from salmc.progress import SilentReporter
    from salmc.request.sample import sample
    from salmc.targets.loading import load_target

    results.check_place()
    target = load_target(spec)
    with SilentReporter() if results.quiet else TrainingBar(f"finding {target.name}") as report:
        draws = sample(
            target,
            EFFECTIVE if request.effective is None else request.effective,
            evaluations=request.evaluations,
            chains=CHAINS if request.chains is None else request.chains,
            seed=request.seed,
            progress=report,
        )
    results.end_run(draws, spec, target, sampler=draws.sampler)
