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

from salmc.compiled import RUNTIME_ERRORS, failure
from salmc.errors import TargetError
from salmc.progress import AbstractReporter, reporter
from salmc.sampling.atomic import check_place, new_folder
from salmc.sampling.draws import Draws
from salmc.sampling.growing_store import GrowingStore
from salmc.sampling.launch import Tally, launch, run_settings
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
    metropolis: bool = False,
    tries: int = 1,
    start: Any = None,
    progress: bool | AbstractReporter = True,
) -> Streamed:
    """Run chains of a kernel and write them to a new Zarr folder as they go.

    The arguments are those of `Sampler.sample`, and so are the draws. The folder appears under its
    name when it is complete; after Ctrl-C it holds the draws made until then.

    Raises:
        OutputError: if the folder exists already or cannot be written.
    """
    check_place(path)
    ready, compile_seconds = launch(
        sampler.kernel,
        sampler.whitening,
        sampler.target,
        sampler.pool,
        chains=chains,
        draws=draws,
        seed=seed,
        metropolis=metropolis,
        tries=tries,
        start=start,
    )
    common = {
        "method": sampler.method,
        "target": sampler.target,
        "settings": {**run_settings(ready, seed, start), "training": sampler.settings},
        "compile_seconds": compile_seconds,
    }
    tally, moments, thinning = Tally(), RunningMoments(), Thinning(ready)
    interruption = []
    began = time.perf_counter()
    with new_folder(path) as working, reporter(progress) as report:
        writer = GrowingStore(working, ready, common)
        report.start(sampler.title, draws)
        try:
            for block in ready.blocks():
                writer.add(block)
                moments.add(block)
                thinning.add(block, tally.draws)
                tally.add(block)
                report.advance(len(block), **tally.figures(ready))
        except KeyboardInterrupt:
            if tally.draws == 0:
                raise
            interruption.append(f"Interrupted after {tally.draws} of {draws} draws.")
        except RUNTIME_ERRORS as error:
            sentence = f"The target failed after {tally.draws} draws: {failure(error)}"
            if tally.draws == 0:
                raise TargetError(sentence) from error
            interruption.append(sentence)
        warnings = (*sampler.warnings, *tally.warnings(ready), *interruption)
        seconds = time.perf_counter() - began
        writer.finish(tally.draws, seconds, warnings)
    return Streamed(
        path=Path(path),
        chains=chains,
        draws=tally.draws,
        **moments.figures(),
        acceptance=tally.acceptance if metropolis else None,
        thinned=thinning.draws(seconds=seconds, warnings=warnings, seen=sampler.seen(), **common),
        warnings=warnings,
    )
