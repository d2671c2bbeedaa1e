"""`Draws`: what every method returns, so that one set of diagnostics and plots serves all.

`Tally` counts what goes on while they are made, and tells it in words in the end.
"""

import dataclasses
import functools
from typing import TYPE_CHECKING, Any, Literal

import equinox as eqx
import jax
import numpy as np

from salmc import checks
from salmc.programs import RUNTIME_ERRORS, failure, nothing_left, on_device
from salmc.sampling.draws_uses import DrawsUses
from salmc.target import AbstractTarget

if TYPE_CHECKING:
    from salmc.sampling.executor import Block, ChainRun
    from salmc.sampling.files.stream_state import Reached
    from salmc.sampling.variables import Shown, Variables

_BATCH = 8192
"""Points that are evaluated at once."""

_STUCK_DRAWS = 100
"""A chain that takes none of so many proposals is stuck."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Draws(DrawsUses):
    """Positions of chains or particles over kept steps, and how they came to be.

    Attributes:
        positions: (chain, draw, dim). For a mover each particle is a chain and each draw a kept
            step, so `positions[:, -1]` is where the particles ended.
        log_density: (chain, draw), unnormalised; None where nothing needed it yet, as after forward
            passes: `evaluated` finds it.
        accepted: (chain, draw) of bool where there was a Metropolis step, else None.
        seconds: wall time of the sampling, without compilation.
        kind: "chains" if each chain's path is a sample, "particles" if the last cloud is.
        method, target, settings: what made the draws; settings hold JSON values only.
        steps: (draw,) the number of the step at which each draw was kept.
        burn_in: leading share of the draws that `sample` leaves out ("chains" only).
        compile_seconds: wall time of compilation before the first step.
        seen: (n, dim) what training had found of the target, where there was training: diagnostics
            tell whether the draws went everywhere that it did.
        warnings: what went wrong on the way, in words; empty when nothing did.
        stored: the user's variables of draws that were read without their target.
        sampler: what drew them, where it was a trained kernel; not stored.
    """

    positions: np.ndarray
    log_density: np.ndarray | None
    seconds: float
    kind: Literal["chains", "particles"] = "chains"
    accepted: np.ndarray | None = None
    method: str = "unknown"
    target: AbstractTarget | None = None
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    steps: np.ndarray | None = None
    burn_in: float = 0.0
    compile_seconds: float = 0.0
    seen: np.ndarray | None = None
    warnings: tuple[str, ...] = ()
    stored: "Variables | None" = None
    sampler: Any = dataclasses.field(default=None, repr=False)

    def __post_init__(self) -> None:
        if np.ndim(self.positions) != 3:
            checks.fail(
                "positions", "an array of shape (chain, draw, dim)", np.shape(self.positions)
            )
        for name in ("log_density", "accepted"):
            value = getattr(self, name)
            if value is not None and np.shape(value) != self.positions.shape[:2]:
                checks.fail(name, f"of shape {self.positions.shape[:2]}", np.shape(value))
        checks.choice("kind", self.kind, ("chains", "particles"))
        checks.real("burn_in", self.burn_in, at_least=0.0, at_most=0.99)
        if self.steps is None:
            object.__setattr__(self, "steps", np.arange(1, self.positions.shape[1] + 1))

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return self.positions.shape[2]

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each coordinate; `shown` has those of the user's variables."""
        if self.target is not None:
            return self.target.names
        if self.stored is not None and self.shown.own:
            return self.shown.names
        return tuple(f"x{i}" for i in range(self.dim))

    @functools.cached_property
    def variables(self) -> "Variables":
        """The user's own variables: arrays (chain, draw, …) by name, their axes and labels."""
        from salmc.sampling.variables import variables_of

        return self.stored if self.target is None and self.stored else variables_of(self)

    @functools.cached_property
    def shown(self) -> "Shown":
        """The user's variables as one array of named numbers: what tables and pictures show."""
        from salmc.sampling.variables import shown_of

        return shown_of(self, self.variables)

    def numbers_at(self, points: np.ndarray) -> np.ndarray:
        """(n, number): what is shown, at other points (n, dim) of the target."""
        there = dataclasses.replace(
            self, positions=np.asarray(points)[None], log_density=None, accepted=None, steps=None
        )
        return there.shown.values[0]

    def chains(self) -> np.ndarray:
        """(chain, draw, dim) with the burn-in left out."""
        return self.positions[:, int(self.burn_in * self.positions.shape[1]) :]

    def sample(self) -> np.ndarray:
        """(n, dim): the points that stand for the target."""
        if self.kind == "particles":
            return self.positions[:, -1]
        return self.chains().reshape(-1, self.dim)

    def evaluated(self) -> "Draws":
        """The same draws with their log density, which is computed here unless it is known.

        NaN without a target, and where the target failed, which a warning tells: draws that exist
        are worth keeping.
        """
        if self.log_density is not None:
            return self
        values, trouble = _log_density_at(self.target, self.positions)
        warnings = self.warnings if trouble is None else (*self.warnings, trouble)
        return dataclasses.replace(self, log_density=values, warnings=warnings)


class Tally:
    """Counts of one run, and a context in which nothing that was drawn is lost.

    Attributes:
        draws: steps that were done.
        invalid: proposals that were not finite.
        accepted: proposals taken by each chain.
    """

    def __init__(self, run: "ChainRun") -> None:
        self.draws, self.invalid, self.accepted = 0, 0, np.zeros(run.chains, int)
        self._run = run
        self._interruption: str | None = None

    def add(self, block: "Block") -> None:
        """Count one more block, which is safe."""
        self.draws += len(block)
        self.invalid += block.invalid
        self.accepted += np.sum(block.accepted, axis=0)

    def take_over(self, reached: "Reached") -> None:
        """What was counted elsewhere."""
        self.draws, self.invalid, self.accepted = reached.draws, reached.invalid, reached.accepted

    def __enter__(self) -> "Tally":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: object
    ) -> bool:
        """Ctrl-C and a target that fails end the run in good order, if there is something to keep.

        Raises:
            TargetError, KeyboardInterrupt: if there is not.
        """
        if isinstance(error, KeyboardInterrupt):
            self._interruption = f"Interrupted after {self.draws} of {self._run.draws} draws."
            return self.draws > 0
        if isinstance(error, RUNTIME_ERRORS):
            self._interruption = f"The target failed after {self.draws} draws: {failure(error)}"
            if self.draws == 0:
                raise nothing_left(self._interruption, error) from error
            return True
        return False

    @property
    def acceptance(self) -> np.ndarray:
        """Share of the proposals that each chain took."""
        return self.accepted / max(self.draws, 1)

    def figures(self) -> dict[str, float]:
        """What is worth showing beside a progress bar."""
        if not self._run.transition.metropolis:
            return {}
        return {"acceptance": float(np.mean(self.acceptance))}

    def warnings(self) -> tuple[str, ...]:
        """What went wrong, in words."""
        found = []
        kernel, metropolis = self._run.transition.kernel, self._run.transition.metropolis
        if metropolis and not kernel.exact:
            found.append(
                f"not exact: the kernel `{kernel.name}` has no proposal density, so the "
                "Metropolis step is min{1, p(x')/p(x)} without it and does not leave the target "
                "invariant. Use a tractable kernel, such as flow, for exact draws."
            )
        if self.invalid:
            found.append(
                f"{self.invalid} proposals were NaN or infinite; the chains stayed where they "
                "were. Train the kernel longer, or with a smaller learning rate."
            )
        stuck = int(np.sum(self.acceptance == 0))
        if metropolis and stuck and self.draws >= _STUCK_DRAWS:
            found.append(
                f"{stuck} of {self._run.chains} chains never moved: they took none of {self.draws} "
                "proposals. Train the kernel longer, or start the chains elsewhere."
            )
        return (*found, *((self._interruption,) if self._interruption else ()))


def _log_density_at(
    target: AbstractTarget | None, positions: np.ndarray
) -> tuple[np.ndarray, str | None]:
    """log p at (chain, draw, dim) positions, as (chain, draw), and what went wrong."""
    shape, dim = positions.shape[:2], positions.shape[2]
    if target is None:
        return np.full(shape, np.nan, positions.dtype), None
    flat = positions.reshape(-1, dim)
    count, size = len(flat), min(len(flat), _BATCH)
    values = np.full(count, np.nan, positions.dtype)
    evaluate = eqx.filter_jit(target.log_densities)
    for first in range(0, count, size):
        # The last batch goes back a little, so that all have one shape and one trace.
        at = slice(min(first, count - size), min(first, count - size) + size)
        try:
            values[at] = jax.block_until_ready(evaluate(on_device(flat[at])))
        except RUNTIME_ERRORS as error:
            trouble = f"The target failed at {first} of {count} draws: {failure(error)}"
            return values.reshape(shape), trouble
    return values.reshape(shape), None
