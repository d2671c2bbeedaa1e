"""What else a trained sampler is good for: streams, BlackJAX's loops, weights, training, files.

Each is one call of a module that is loaded when it is asked for.
"""

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from salmc.sampling.importance import WeightedDraws
    from salmc.sampling.stream import Streamed

TRAJECTORIES = "trajectories along the gradient"
MOVED_BY = {"gradient": TRAJECTORIES, "replicas": "replicas at several temperatures"}
"""What moves the chains of methods that are not moved by their kernel, in words."""

UNTRAINED = ("mixture", *MOVED_BY)
"""Methods that search and tune, and train nothing."""


class SamplerUses:
    """The methods of `Sampler` beside the chains themselves."""

    @property
    def trained(self: Any) -> bool:
        """Whether its kernel was trained; else a search found all that it is made of."""
        return self.method not in UNTRAINED

    @property
    def moved_by(self: Any) -> str:
        """What moves its chains, in words."""
        if self.ladder is not None:
            return f"{MOVED_BY['replicas']} ({self.ladder.rungs})"
        return f"kernel {self.kernel.name}" if self.trajectory is None else TRAJECTORIES

    def sample_to(self: Any, path: str | Path, **options: Any) -> "Streamed":
        """Draws that exceed memory, to a Zarr folder; see `salmc.sampling.stream.sample_to`."""
        from salmc.sampling.stream import sample_to

        return sample_to(self, path, **options)

    def as_blackjax(self: Any, *, metropolis: bool | None = None, tries: int = 1) -> Any:
        """(init, step) in BlackJAX's form; see `salmc.sampling.blackjax_algorithm`."""
        from salmc.sampling.blackjax_algorithm import algorithm

        return algorithm(self.transition(metropolis=metropolis, tries=tries))

    def importance_sample(self: Any, n: int = 10_000, seed: int = 0) -> "WeightedDraws":
        """Independent draws with Pareto-smoothed weights; see `salmc.sampling.importance`."""
        from salmc.sampling.importance import importance_sample

        return importance_sample(self, n, seed)

    def improve(self: Any, **options: Any) -> Any:
        """A better one, by more training from where this one is; see `salmc.improve`."""
        # Learning is a later stage of the way of the data than this one.
        return importlib.import_module("salmc.learning.improve").improve(self, **options)

    def __repr__(self: Any) -> str:
        exact = "exact" if self.kernel.exact and self.target is not None else "not exact"
        return f"<Sampler of {self.title}: {self.moved_by}, {self.kernel.dim} dimensions, {exact}>"

    def _repr_html_(self: Any) -> str:
        """For notebooks."""
        return importlib.import_module("salmc.report.notebook").sampler_html(self)

    def save(self: Any, path: str | Path) -> Path:
        """Write a `.salmc` file, which `salmc.load` reads; atomic.

        Raises:
            OutputError: if it cannot be written.
        """
        from salmc.sampling.files.saved import save_sampler

        return save_sampler(self, path)
