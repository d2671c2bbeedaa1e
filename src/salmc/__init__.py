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
"""

from importlib.metadata import version

from salmc import diagnostics, kernels, learning, movers, targets
from salmc.errors import (
    ArgumentError,
    NotDifferentiableError,
    OutputError,
    SalmcError,
    TargetError,
)
from salmc.learning.fit import fit
from salmc.sampling.draws import Draws
from salmc.sampling.folder import RunFolder, open_run
from salmc.sampling.run import run
from salmc.sampling.sampler import Sampler, load
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
    "run",
    "targets",
]
