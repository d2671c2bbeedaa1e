"""What draws are good for: a summary, pictures, a page, evidence, ArviZ, files.

Each is one call of a module that is loaded when it is asked for.
"""

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from salmc import checks
from salmc.target import AbstractTarget

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from salmc.diagnostics.summary import Summary
    from salmc.sampling.draws import Draws
    from salmc.sampling.log_evidence import LogEvidence


class DrawsUses:
    """The methods of `Draws` beside the draws themselves."""

    judged: "Summary | None" = None
    """What `summary` said last, so that notebooks show the verdict without computing it again."""

    def summary(self: Any, seed: int = 0, hunt: bool = True) -> "Summary":
        """Mean, sd, ESS, R-hat, discrepancies and a verdict in words.

        Args:
            seed: of all random choices.
            hunt: whether to look for modes that the draws lack: some seconds for a density that is
                cheap, and less of it where each evaluation takes long. Without it no draws are
                called trustworthy.
        """
        from salmc.diagnostics.summary import summarize

        found = summarize(self.evaluated(), seed=seed, hunt=hunt)
        object.__setattr__(self, "judged", found)
        return found

    def plot(self: Any, kind: str = "scatter", *, dark: bool = False) -> "Figure":
        """A picture in the user's variables, as a Matplotlib figure; notebooks show it.

        Args:
            kind: "scatter" (one number: a histogram over the density; two: points over the
                density; more: pairs), "corner" (pairs, however few), "trace", "rank" (does each
                chain have its share of low and high draws?), "autocorrelation", "modes" (each
                cluster of draws, with its weight) or "discrepancy" (distance from the target,
                step by step).
            dark: whether on dark paper.

        Raises:
            ArgumentError: if there is no such picture of these draws; it says what that takes.
        """
        # The report is a later stage of the way of the data than this one.
        page = importlib.import_module("salmc.report.draws_page")
        return page.plot(self, kind, on_dark=dark)

    def report(self: Any, path: str | Path, summary: "Summary | None" = None) -> Path:
        """Write one page of HTML that needs nothing beside it: verdict, numbers, pictures.

        Args:
            path: the file; what is there is replaced when the page is written in full.
            summary: what to tell; else what `summary` said last, or says now.

        Returns:
            The path of the page.

        Raises:
            OutputError: if it cannot be written.
        """
        page = importlib.import_module("salmc.report.draws_page")
        return page.report(self, path, summary)

    def log_evidence(
        self: Any, n: int = 10_000, seed: int = 0, *, sampler: Any = None
    ) -> "LogEvidence":
        """log Z = log ∫ p, with its standard error, or a refusal in words.

        By bridge sampling between these draws and proposals of an exact kernel, or by the
        proposals alone where the draws are not exact; see `salmc.sampling.log_evidence`.

        Args:
            n: proposals, each of which is one evaluation of the target.
            seed: of the proposals.
            sampler: a trained kernel, for draws that were read from a file; else the one that drew.
        """
        from salmc.sampling.log_evidence import log_evidence

        found = self.sampler if sampler is None else sampler
        if found is None:
            checks.fail("sampler", "given: these draws do not know of a trained kernel", sampler)
        return log_evidence(self, found, n, seed)

    def to_arviz(self: Any) -> "xarray.DataTree":
        """An `xarray.DataTree` for everything that ArviZ can do.

        In the variables, axes and labels of the user's model, with its data, its log likelihood
        and new data that it predicts, where the target knows of them. ArviZ before 1.0 does not
        take trees: see `to_inference_data`.
        """
        from salmc.sampling.arviz_tree import to_arviz

        return to_arviz(self)

    def to_inference_data(self: Any) -> Any:
        """The same as `to_arviz` for ArviZ before 1.0, as PyMC 5 has it: an `InferenceData`."""
        from salmc.sampling.arviz_tree import to_inference_data

        return to_inference_data(self)

    def save(self: Any, path: str | Path) -> Path:
        """Write a Zarr folder that ArviZ can read; atomic."""
        from salmc.sampling.files.store import save_draws

        return save_draws(self, path)

    @staticmethod
    def load(path: str | Path, target: AbstractTarget | None = None) -> "Draws":
        """Read what `save` wrote."""
        from salmc.sampling.files.store import load_draws

        return load_draws(path, target)

    def __repr__(self: Any) -> str:
        shape = f"{len(self.positions):,} {self.kind} × {self.positions.shape[1]:,} kept steps"
        name = "" if self.target is None else f" on {self.target.name}"
        warned = f", {len(self.warnings)} warnings" if self.warnings else ""
        told = (
            "not judged yet: ask .summary()" if self.judged is None else self.judged.verdict.degree
        )
        return f"<Draws of {self.method}{name}: {shape}, {self.dim} dimensions{warned}; {told}>"

    def _repr_html_(self: Any) -> str:
        """For notebooks."""
        return importlib.import_module("salmc.report.notebook").draws_html(self)
