"""`Draws`: what every method returns, so that one set of diagnostics and plots serves all."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from salmc import checks
from salmc.sampling.deferred import DeferredLogDensity
from salmc.target import AbstractTarget

if TYPE_CHECKING:
    import xarray

    from salmc.diagnostics.summary import Summary


@dataclasses.dataclass(frozen=True, eq=False)
class Draws:
    """Positions of chains or particles over kept steps, and how they came to be.

    Attributes:
        positions: (chain, draw, dim). For a mover each particle is a chain and each draw a kept
            step, so `positions[:, -1]` is where the particles ended.
        log_density: (chain, draw), unnormalised; given as None, it is found when first asked for.
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
    """

    positions: np.ndarray
    log_density: np.ndarray | Any
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

    def __post_init__(self) -> None:
        if np.ndim(self.positions) != 3:
            checks.fail(
                "positions", "an array of shape (chain, draw, dim)", np.shape(self.positions)
            )
        for name in ("log_density", "accepted"):
            value = vars(self)[name]  # not getattr, which would compute it
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
        """A name for each coordinate."""
        if self.target is not None:
            return self.target.names
        return tuple(f"x{i}" for i in range(self.dim))

    def chains(self) -> np.ndarray:
        """(chain, draw, dim) with the burn-in left out."""
        return self.positions[:, int(self.burn_in * self.positions.shape[1]) :]

    def sample(self) -> np.ndarray:
        """(n, dim): the points that stand for the target."""
        if self.kind == "particles":
            return self.positions[:, -1]
        return self.chains().reshape(-1, self.dim)

    def summary(self, seed: int = 0) -> "Summary":
        """Mean, sd, ESS, R-hat, discrepancies and a verdict in words."""
        from salmc.diagnostics.summary import summarize

        return summarize(self, seed=seed)

    def to_arviz(self) -> "xarray.DataTree":
        """An `xarray.DataTree` for everything that ArviZ can do."""
        from salmc.sampling.store import to_arviz

        return to_arviz(self)

    def save(self, path: str | Path) -> Path:
        """Write a Zarr folder that ArviZ can read; atomic."""
        from salmc.sampling.store import save_draws

        return save_draws(self, path)

    @staticmethod
    def load(path: str | Path, target: AbstractTarget | None = None) -> "Draws":
        """Read what `save` wrote."""
        from salmc.sampling.store import load_draws

        return load_draws(path, target)


# After the class, whose decorator would take it for the field's default.
Draws.log_density = DeferredLogDensity()
