"""salmc: learned Markov kernels for Bayesian sampling, and honest diagnostics.

The folders are the way of the data:

    target, targets/   an unnormalised log density, and ready-made ones
    movers/            rules that move particles toward a target: AG-SVGD, SVGD, SGLD, …
    kernels/           learned transitions x' = G(x, ξ): flow (exact), MLP (the paper's)
    sampling/          `run` a mover, sample a kernel, keep `Draws`, write and read them
    learning/          `fit`: train a kernel on a density (SAL-MC) or on samples (AL-MC)
    diagnostics/       ESS, R-hat, MMD, Stein discrepancies; a summary with a verdict
    report/            pictures
    cli/               the `salmc` command

Names are imported when they are first used: `import salmc` and `salmc --help` wait for nothing.
"""

import importlib
from typing import TYPE_CHECKING, Any

from salmc.errors import (
    ArgumentError,
    NotDifferentiableError,
    OutputError,
    SalmcError,
    TargetError,
)

if TYPE_CHECKING:
    from salmc import diagnostics, kernels, learning, movers, targets
    from salmc.learning.fit import fit
    from salmc.remember import remember_programs
    from salmc.sampling.draws import Draws
    from salmc.sampling.folder import RunFolder, open_run
    from salmc.sampling.run import run
    from salmc.sampling.sampler import Sampler, load
    from salmc.target import AbstractTarget, Target

    __version__: str

__all__ = [
    "AbstractTarget",
    "ArgumentError",
    "Draws",
    "NotDifferentiableError",
    "OutputError",
    "RunFolder",
    "SalmcError",
    "Sampler",
    "Target",
    "TargetError",
    "diagnostics",
    "fit",
    "kernels",
    "learning",
    "load",
    "movers",
    "open_run",
    "remember_programs",
    "run",
    "targets",
]

_HOMES = {
    "AbstractTarget": "salmc.target",
    "Draws": "salmc.sampling.draws",
    "RunFolder": "salmc.sampling.folder",
    "Sampler": "salmc.sampling.sampler",
    "Target": "salmc.target",
    "fit": "salmc.learning.fit",
    "load": "salmc.sampling.sampler",
    "open_run": "salmc.sampling.folder",
    "remember_programs": "salmc.remember",
    "run": "salmc.sampling.run",
}
_FOLDERS = ("diagnostics", "kernels", "learning", "movers", "targets")


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
    elif name in _FOLDERS:
        value = importlib.import_module(f"salmc.{name}")
    elif name == "__version__":
        from importlib.metadata import version

        value = version("salmc")
    else:
        raise AttributeError(f"module 'salmc' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
