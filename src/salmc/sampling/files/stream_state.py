"""What a stream of draws needs to go on where it was: in the folder, replaced after each part.

    resume/state.npz        the chains, counts and moments after so many draws, and whose they are
    resume/thinned-*.npz    of each part, the draws that the thinned subsample keeps

A step's randomness depends on the seed, the chain and the number of the step alone; so chains that
begin in a stored state go on with the draws that they would have had, bit for bit.
"""

import dataclasses
import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np

from salmc.errors import OutputError
from salmc.json_values import plain
from salmc.sampling.chain_states import ChainState
from salmc.sampling.executor import Block, ChainRun
from salmc.sampling.files.archive import damaged, numbers, read_arrays, real, require, whole
from salmc.sampling.files.atomic import new_file
from salmc.sampling.files.growing_store import KEPT
from salmc.sampling.running import RunningMoments, Thinning

FORMAT = "salmc-stream-state-1"
_CHAINS = (*ChainState._fields[:-1], "noise")
"""What states are called in files; the last has more meanings by now than it had."""


@dataclasses.dataclass(frozen=True, eq=False)
class Reached:
    """All that is known after some draws; one object, so that Ctrl-C finds the old or the new.

    Attributes:
        draws: of each chain.
        invalid: proposals that were not finite.
        accepted: (chain,) proposals that were taken.
        moments: of each chain.
        states: of the chains, by group.
    """

    draws: int
    invalid: int
    accepted: np.ndarray
    moments: RunningMoments
    states: tuple[ChainState, ...] = ()

    @staticmethod
    def nothing(chains: int) -> "Reached":
        """Before the first draw."""
        return Reached(0, 0, np.zeros(chains, int), RunningMoments())

    def plus(self, block: Block) -> "Reached":
        """After one more block."""
        return Reached(
            self.draws + len(block),
            self.invalid + block.invalid,
            self.accepted + np.sum(block.accepted, axis=0),
            self.moments.plus(block),
            block.states,
        )


class StreamState:
    """The state of one stream on disk.

    Args:
        folder: of the draws.
        run: that they are of.
        settings: of the run, as JSON values: a run goes on with its own draws only.
    """

    def __init__(self, folder: Path, run: ChainRun, settings: dict[str, Any]):
        self._folder = folder / KEPT
        self._identity = json.loads(json.dumps(plain({**settings, "kernel weights": _digest(run)})))

    def begin(self) -> None:
        """Say whose folder this is, before anything else is in it."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        self._write({"draws": 0}, {})

    def write(self, reached: Reached, thinning: Thinning, since: int, seconds: float) -> None:
        """Remember where the chains are; `since` is where they were the last time."""
        kept = thinning.between(since, reached.draws)
        if kept is not None:
            steps, block = kept
            with new_file(self._folder / f"thinned-{since:015d}.npz") as file:
                np.savez(
                    file,
                    steps=steps,
                    positions=block.positions,
                    log_density=block.log_density,
                    accepted=block.accepted,
                )
        header = {"draws": reached.draws, "invalid": reached.invalid, "seconds": seconds}
        fields = zip(*reached.states, strict=True)
        arrays = {
            name: np.concatenate([np.asarray(part) for part in parts])
            for name, parts in zip(_CHAINS, fields, strict=True)
        }
        arrays |= {"accepted": reached.accepted}
        arrays |= {"mean": reached.moments.mean, "squares": reached.moments.squares}
        self._write(header, arrays)

    def read(self, run: ChainRun, thinning: Thinning) -> tuple[Reached, float]:
        """Where the chains were, which `run` and `thinning` are told, and the seconds until then.

        Raises:
            OutputError: if there is no state, or it is damaged or of another run.
        """
        place = self._folder / "state.npz"
        if not place.is_file():
            raise OutputError(
                f"{self._folder.parent} has nothing to go on from: it is complete, or something "
                "else. Choose another folder."
            )
        with damaged(place, "it cannot be read in full"):
            arrays = read_arrays(place)
            header = json.loads(str(arrays["header"]))
            require(header["format"] == FORMAT, "format")
            stored, draws = header["identity"], whole(header["draws"], run.draws)
            differing = [name for name in self._identity if self._identity[name] != stored[name]]
            if differing:
                raise OutputError(
                    f"{self._folder.parent} holds the draws of another run: {', '.join(differing)} "
                    "differ. Go on with the same arguments, or choose another folder."
                )
            if draws == 0:
                return Reached.nothing(run.chains), 0.0
            shape = (run.chains, run.dim)
            reached = Reached(
                draws,
                whole(header["invalid"], 2**63),
                numbers(arrays["accepted"], run.chains),
                RunningMoments(
                    draws, numbers(arrays["mean"], *shape), numbers(arrays["squares"], *shape)
                ),
                (run.state_of([arrays[name] for name in _CHAINS]),),
            )
            for file in sorted(self._folder.glob("thinned-*.npz")):
                if whole(int(file.stem.removeprefix("thinned-")), 2**63) >= draws:
                    file.unlink()
                    continue
                kept = read_arrays(file)
                steps = numbers(kept["steps"], None)
                block = Block(
                    numbers(kept["positions"], len(steps), *shape),
                    numbers(kept["log_density"], len(steps), run.chains),
                    kept["accepted"],
                )
                require(kept["accepted"].shape == block.log_density.shape, "accepted")
                thinning.restore(steps, block)
            run.go_on(reached.states[0], draws)
            return reached, real(header["seconds"])

    def remove(self) -> None:
        """All draws are there: nothing is to go on with."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _write(self, header: dict[str, Any], arrays: dict[str, Any]) -> None:
        content = json.dumps({"format": FORMAT, "identity": self._identity, **header})
        with new_file(self._folder / "state.npz") as file:
            np.savez(file, header=np.array(content), **arrays)


def _digest(run: ChainRun) -> str:
    """Tells one kernel, in one set of coordinates and from one start, from another."""
    found = hashlib.sha256()
    transition, start = run.transition, run.start
    for leaf in jax.tree.leaves(
        eqx.filter((transition.kernel, transition.whitening, start), eqx.is_array)
    ):
        array = np.ascontiguousarray(leaf)
        found.update(f"{array.dtype.str}{array.shape}".encode() + array.tobytes())
    return found.hexdigest()
