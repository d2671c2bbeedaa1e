"""Jobs that run chains and judge them: of a trained kernel, and of a mover."""

import dataclasses
from typing import Any

import numpy as np

from salmc.sampling.draws import Draws
from salmc.sampling.sampler import Sampler
from salmc_paper.experiments.regressions import reference_moments
from salmc_paper.experiments.training import label, trained, training_seconds
from salmc_paper.harness.jobs import Context, Job, Plan, not_interrupted
from salmc_paper.harness.timing import take_turns
from salmc_paper.measures.judging import POINTS, SUBSETS, discrepancy_floor, judge_chains
from salmc_paper.measures.problems import find_target

VERSION = 1
KERNEL_VERSION = 2
"""Of chains of a kernel: they run in groups since the second."""
TIMED = 3
"""Times that chains are run; the median of their seconds is told."""

_SAMPLING_STREAM = 100
"""Added to the seed of the training, so that sampling has a stream of its own."""


def size(plan: Plan) -> dict[str, int]:
    """Chains and draws: the paper's 32 × 2000, or fewer."""
    return {"chains": 8, "draws": 500} if plan.quick else {"chains": 32, "draws": 2000}


def kernel_chains(train: Job, metropolis: bool, *, chains: int, draws: int) -> Job:
    """A job that runs chains of a trained kernel and judges them."""
    told = train.arguments
    arguments = {**told, "metropolis": metropolis, "chains": chains, "draws": draws}
    name = f"{label(told['method'], told['kernel'])}{' + MH' if metropolis else ''} "
    name += f"on {told['target']}, seed {told['seed']}"
    return Job("chains", name, arguments, _kernel_chains, KERNEL_VERSION, (train,), seconds=6.0)


def mover_chains(
    target: str, mover: str, seed: int, *, chains: int, draws: int, burn_in: int
) -> Job:
    """A job that runs a mover and judges the path of each particle as a chain."""
    arguments: dict[str, Any] = {
        "target": target,
        "method": mover,
        "seed": seed,
        "chains": chains,
        "draws": draws,
        "burn_in": burn_in,
    }
    name = f"{mover} on {target}, seed {seed}"
    return Job("chains", name, arguments, _mover_chains, VERSION, seconds=12.0)


def floor(target: str, *, chains: int, draws: int) -> Job:
    """A job that finds what MMD² exact draws would have."""
    arguments = {"target": target, "floor": SUBSETS, "points": min(POINTS, chains * draws)}
    name = f"floor of MMD² on {target}"
    return Job("chains", name, arguments, _floor, VERSION, seconds=12.0, support=True)


def timed_draws(sampler: Sampler, *, chains: int, draws: int, seed: int, metropolis: bool) -> Draws:
    """Draws with the median time of a few runs, which is without compilation."""

    def run() -> Draws:
        made = sampler.sample(chains, draws, seed, metropolis=metropolis, progress=False)
        not_interrupted(made.warnings)
        return made

    timed = take_turns({"chains": run}, turns=TIMED, untimed=0, clock=told_seconds)["chains"]
    compiling = max(made.compile_seconds for made in timed.results)
    return dataclasses.replace(timed.results[0], seconds=timed.median, compile_seconds=compiling)


def told_seconds(draws: Draws) -> float:
    """What draws say that sampling took, without compilation."""
    return draws.seconds


def _kernel_chains(context: Context) -> dict[str, Any]:
    train = context.needed[0]
    sampler = trained(train)
    assert sampler.target is not None
    draws = timed_draws(
        sampler,
        chains=context["chains"],
        draws=context["draws"],
        seed=_SAMPLING_STREAM + context["seed"],
        metropolis=context["metropolis"],
    )
    moments: tuple[Any, ...] = ()
    if sampler.target.statistic_moments is None:
        moments = reference_moments(context["target"])
    seconds, compiling = training_seconds(train)
    return {
        **judge_chains(sampler.target, draws, *moments),
        "train_seconds": seconds,
        "train_compile_seconds": compiling,
        "train_parts": train.figures["parts"],
        "train_steps": train.figures["steps"],
        "warnings": list(draws.warnings),
    }


def _mover_chains(context: Context) -> dict[str, Any]:
    from salmc.movers import MOVERS
    from salmc.sampling.move import move

    target = find_target(context["target"])
    mover = MOVERS[context["method"]](target)
    chains, draws, burn_in = context["chains"], context["draws"], context["burn_in"]
    steps = burn_in + draws
    options: dict[str, Any] = {"particles": chains, "seed": context["seed"], "progress": False}
    path = move(mover, steps=steps, keep=steps, **options)
    # Looking at every step costs more than the steps: the time is that of a run that does not.
    swift = move(mover, steps=steps, keep=1, **options)
    for made in (path, swift):
        not_interrupted(made.warnings)
    kept = dataclasses.replace(
        path,
        positions=path.positions[:, burn_in:],
        log_density=np.asarray(path.log_density)[:, burn_in:],
        steps=np.asarray(path.steps)[burn_in:],
        burn_in=0.0,
        seconds=swift.seconds * draws / steps,
        compile_seconds=swift.compile_seconds,
    )
    return {**judge_chains(target, kept), "warnings": list(path.warnings)}


def _floor(context: Context) -> dict[str, Any]:
    usual, fine = discrepancy_floor(find_target(context["target"]), context["points"])
    return {"floor": usual, "fine_floor": fine}
