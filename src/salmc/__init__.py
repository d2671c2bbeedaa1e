"""salmc: learned Markov kernels for Bayesian sampling, and honest diagnostics.

The folders are the way of the data:

    target, targets/   an unnormalised log density, and ready-made ones
    movers/            rules that move particles toward a target: AG-SVGD, SVGD, SGLD, …
    sampling/          `run` a mover, keep `Draws`, write and read them
    diagnostics/       ESS, R-hat, MMD, Stein discrepancies; a summary with a verdict
    report/            pictures
    cli/               the `salmc` command
"""

from importlib.metadata import version

from salmc import diagnostics, movers, targets
from salmc.errors import (
    ArgumentError,
    NotDifferentiableError,
    OutputError,
    SalmcError,
    TargetError,
)
from salmc.sampling.draws import Draws
from salmc.sampling.folder import RunFolder, open_run
from salmc.sampling.run import run
from salmc.target import AbstractTarget, Target

__version__ = version("salmc")

__all__ = [
    "AbstractTarget",
    "ArgumentError",
    "Draws",
    "NotDifferentiableError",
    "OutputError",
    "RunFolder",
    "SalmcError",
    "Target",
    "TargetError",
    "diagnostics",
    "movers",
    "open_run",
    "run",
    "targets",
]
