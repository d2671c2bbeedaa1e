"""Draws that exceed memory: written to a Zarr folder while they are made.

The folder has the groups of `store`, in the same layout: `posterior` with the user's own variables
(chain, draw, …) and `sample_stats`, so that ArviZ and `xarray.open_datatree(path, engine="zarr")`
read it, the latter without loading it. Its group `salmc` holds a record and no second copy of the
draws. What stays in memory is one part of the draws, a running mean and variance of each chain, and
an evenly thinned subsample for everything else that is worth knowing.
"""

import dataclasses
import time
from pathlib import Path
from typing import Any

import numpy as np

from salmc.progress import AbstractReporter, reporter
from salmc.sampling.atomic import check_place, new_folder
from salmc.sampling.draws import Draws, Tally
from salmc.sampling.executor import AbstractExecutor
from salmc.sampling.growing_store import GrowingStore
from salmc.sampling.running import RunningMoments, Thinning
from salmc.sampling.sampler import Sampler


@dataclasses.dataclass(frozen=True, eq=False)
class Streamed:
    """What is known of draws on disk.

    Attributes:
        path: the Zarr folder.
        chains, draws: how many there are; fewer draws than asked for after an interruption.
        mean, sd: (dim,), of all draws.
        chain_mean, chain_sd: (chain, dim), of all draws.
        rhat: (dim,), Gelman and Rubin's, of all draws; NaN for one chain.
        acceptance: (chain,), or None without a Metropolis step.
        thinned: evenly spaced draws, for `summary()` and plots; an ESS of them is a lower bound.
        warnings: what went wrong on the way, in words.
    """

    path: Path
    chains: int
    draws: int
    mean: np.ndarray
    sd: np.ndarray
    chain_mean: np.ndarray
    chain_sd: np.ndarray
    rhat: np.ndarray
    acceptance: np.ndarray | None
    thinned: Draws
    warnings: tuple[str, ...]


def sample_to(
    sampler: Sampler,
    path: str | Path,
    chains: int = 32,
    draws: int = 1_000_000,
    seed: int = 0,
    *,
    metropolis: bool | None = None,
    tries: int = 1,
    start: Any = None,
    executor: AbstractExecutor | None = None,
    progress: bool | AbstractReporter = True,
) -> Streamed:
    """Run chains of a kernel and write them to a new Zarr folder as they go.

    The arguments are those of `Sampler.sample`, and so are the draws. The folder appears under its
    name when it is complete; after Ctrl-C it holds the draws made until then.

    Raises:
        OutputError: if the folder exists already or cannot be written.
    """
    check_place(path)
    began = time.perf_counter()
    run, settings = sampler.begin(
        chains, draws, seed, metropolis, tries, start, executor, densities=True
    )
    common = {
        "method": sampler.method,
        "target": None if sampler.target is None else sampler.target.outer,
        "settings": {**settings, "training": sampler.settings},
        "compile_seconds": time.perf_counter() - began,
    }
    tally, moments, thinning = Tally(run), RunningMoments(), Thinning(run)
    began = time.perf_counter()
    with new_folder(path) as working, reporter(progress) as report:
        writer = GrowingStore(working, run, common)
        report.start(sampler.title, draws)
        with tally:
            for block in run.blocks():
                writer.add(block)
                moments.add(block)
                thinning.add(block, tally.draws)
                tally.add(block)
                report.advance(len(block), **tally.figures())
        warnings = (*sampler.warnings, *tally.warnings())
        seconds = time.perf_counter() - began
        writer.finish(tally.draws, seconds, warnings)
    return Streamed(
        path=Path(path),
        chains=chains,
        draws=tally.draws,
        **moments.figures(),
        acceptance=tally.acceptance if run.transition.metropolis else None,
        thinned=thinning.draws(seconds=seconds, warnings=warnings, seen=sampler.seen(), **common),
        warnings=warnings,
    )
