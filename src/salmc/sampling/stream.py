"""Draws that exceed memory: written to a Zarr folder while they are made.

The folder has the groups of `store`, in the same layout: `posterior` with the user's own variables
(chain, draw, …) and `sample_stats`, so that ArviZ and `xarray.open_datatree(path, engine="zarr")`
read it, the latter without loading it. Its group `salmc` holds a record and no second copy of the
draws. What stays in memory is one part of the draws, a running mean and variance of each chain, and
an evenly thinned subsample for everything else that is worth knowing. The folder grows part by part
(`growing_store`) and knows how to go on (`stream_state`).
"""

import contextlib
import dataclasses
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from salmc.errors import OutputError
from salmc.progress import AbstractReporter, reporter
from salmc.sampling.draws import Draws, Tally
from salmc.sampling.executor import AbstractExecutor, Block, ChainRun
from salmc.sampling.files.atomic import check_place, final_place, output_errors
from salmc.sampling.files.growing_store import GrowingStore
from salmc.sampling.files.lock import locked_folder
from salmc.sampling.files.stream_state import Reached, StreamState
from salmc.sampling.running import Thinning
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
    resume: bool = False,
) -> Streamed:
    """Run chains of a kernel and write them to a new Zarr folder as they go.

    The arguments are those of `Sampler.sample`, and so are the draws. The folder can be read at any
    time: it holds the draws of all parts that are finished, whatever becomes of the process.

    Args:
        sampler, path, chains, draws, seed: what is run, and where to.
        metropolis, tries, start, executor, progress: as for `Sampler.sample`.
        resume: go on with a folder that is not complete, if there is one. The draws are the same,
            bit for bit, as without the interruption.

    Raises:
        OutputError: if the folder exists already or cannot be written, if another run is writing to
            it, or if it holds the draws of another run.
    """
    place = final_place(path)
    new = not (resume and place.is_dir())
    if new:
        check_place(place)
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
    with contextlib.ExitStack() as stack:
        if new:
            with output_errors(place):
                place.mkdir()
        stack.enter_context(locked_folder(place))
        stream, tally = _Stream(place, run, common, settings), Tally(run)
        stream.begin(new or not any(place.iterdir()))
        stack.push(stream.give_up)
        report = stack.enter_context(reporter(progress))
        report.start(sampler.title, draws)
        if stream.reached.draws:
            report.advance(stream.reached.draws)
        tally.take_over(stream.reached)
        with tally:
            for block in run.blocks():
                stream.add(block)
                tally.take_over(stream.reached)
                report.advance(len(block), **tally.figures())
        reached = stream.reached
        tally.take_over(reached)
        warnings = (*sampler.warnings, *tally.warnings())
        seconds = stream.end(warnings)
    return Streamed(
        path=Path(path),
        chains=chains,
        draws=reached.draws,
        **reached.moments.figures(),
        acceptance=tally.acceptance if run.transition.metropolis else None,
        thinned=stream.thinning.draws(
            reached.draws, seconds=seconds, warnings=warnings, seen=sampler.seen(), **common
        ),
        warnings=warnings,
    )


class _Stream:
    """Draws on their way to the disk.

    Attributes:
        reached: what is known after the last block.
        thinning: the subsample.
    """

    def __init__(
        self, place: Path, run: ChainRun, common: dict[str, Any], settings: dict[str, Any]
    ) -> None:
        self.reached, self.thinning = Reached.nothing(run.chains), Thinning(run)
        self._place, self._run, self._common = place, run, common
        self._state = StreamState(place, run, settings)
        self._before, self._began = 0.0, time.perf_counter()

    def begin(self, new: bool) -> None:
        """With an empty folder, or with what is there."""
        with self._errors():
            if new:
                try:
                    self._state.begin()
                except BaseException:
                    shutil.rmtree(self._place, ignore_errors=True)
                    raise
            else:
                self.reached, self._before = self._state.read(self._run, self.thinning)
            self._safe = self.reached.draws
            self._store = GrowingStore(self._place, self._run, self._common, self._safe)

    def add(self, block: Block) -> None:
        """One more block, and to the disk where it is time."""
        self._store.add(block)
        self.thinning.add(block, self.reached.draws)
        self.reached = self.reached.plus(block)
        if self._store.is_due(self.reached.draws):
            self._write(())

    def end(self, warnings: tuple[str, ...]) -> float:
        """What is left to the disk; tells the seconds that all of it took."""
        self._write(warnings)
        if self.reached.draws == self._run.draws:
            self._state.remove()
        return self._seconds()

    def give_up(self, kind: type[BaseException] | None, *_: object) -> None:
        """After an error, leave what is safe, and no trace where that is nothing."""
        if kind is not None and self._safe == 0:
            shutil.rmtree(self._place, ignore_errors=True)

    def _write(self, warnings: tuple[str, ...]) -> None:
        reached, seconds = self.reached, self._seconds()
        with self._errors():
            self._store.write(reached.draws, seconds, warnings)
            self._state.write(reached, self.thinning, self._safe, seconds)
        self._safe = reached.draws

    def _seconds(self) -> float:
        return self._before + time.perf_counter() - self._began

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """A disk that fails is told with what is safe."""
        try:
            with output_errors(self._place):
                yield
        except OutputError as error:
            safe = getattr(self, "_safe", 0)
            if not safe or not isinstance(error.__cause__, OSError):
                raise
            raise OutputError(
                f"{error} The first {safe:,} draws of each chain are safe there; when the cause is "
                "removed, go on with `resume`."
            ) from error
