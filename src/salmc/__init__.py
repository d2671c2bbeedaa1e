"""salmc: learned Markov kernels for Bayesian sampling, and honest diagnostics.

The folders are the way of the data:

    target, targets/   an unnormalised log density, and ready-made ones
    models/            models written for NumPyro and PyMC, as targets
    datasets/          data for targets and for images, checked and kept
    movers/            rules that move particles toward a target: AG-SVGD, SVGD, SGLD, …
    kernels/           learned transitions x' = G(x, ξ): flow (exact), MLP (the paper's)
    answers/           samplers without training: a mixture, chains along the gradient, replicas
    learning/          `fit`: train a kernel on a density (SAL-MC) or on samples (AL-MC)
    sampling/          `Sampler`, its chains and who runs them; `Draws`, written and read
    diagnostics/       ESS, R-hat, MMD, Stein discrepancies; a summary with a verdict
    report/            pictures, and the page that shows a run
    request/           `sample`: effective draws of a target, by one call
    images/            chains over images, learned from images alone
    cli/               the `salmc` command

Names are imported when they are first used: `import salmc` and `salmc --help` wait for nothing.
"""

import importlib
import warnings
from typing import TYPE_CHECKING, Any

from salmc.errors import (
    ArgumentError,
    DataError,
    MissingPackageError,
    NotDifferentiableError,
    OutputError,
    SalmcError,
    TargetError,
)

if TYPE_CHECKING:
    from salmc import diagnostics, images, kernels, learning, movers, targets
    from salmc.learning.fit import fit
    from salmc.learning.improve import improve
    from salmc.models import from_numpyro, from_pymc
    from salmc.programs_on_disk import remember_programs
    from salmc.request.sample import sample
    from salmc.sampling.draws import Draws
    from salmc.sampling.files.folder import RunFolder, open_run
    from salmc.sampling.files.saved import load
    from salmc.sampling.move import move
    from salmc.sampling.sampler import Sampler
    from salmc.target import AbstractTarget, Target

    __version__: str

__all__ = [
    "AbstractTarget",
    "ArgumentError",
    "DataError",
    "Draws",
    "MissingPackageError",
    "NotDifferentiableError",
    "OutputError",
    "RunFolder",
    "SalmcError",
    "Sampler",
    "Target",
    "TargetError",
    "diagnostics",
    "fit",
    "from_numpyro",
    "from_pymc",
    "images",
    "improve",
    "kernels",
    "learning",
    "load",
    "move",
    "movers",
    "open_run",
    "remember_programs",
    "sample",
    "targets",
]

_HOMES = {
    "AbstractTarget": "salmc.target",
    "Draws": "salmc.sampling.draws",
    "RunFolder": "salmc.sampling.files.folder",
    "Sampler": "salmc.sampling.sampler",
    "Target": "salmc.target",
    "fit": "salmc.learning.fit",
    "improve": "salmc.learning.improve",
    "from_numpyro": "salmc.models",
    "from_pymc": "salmc.models",
    "load": "salmc.sampling.files.saved",
    "move": "salmc.sampling.move",
    "open_run": "salmc.sampling.files.folder",
    "remember_programs": "salmc.programs_on_disk",
    "sample": "salmc.request.sample",
}
_FOLDERS = ("diagnostics", "images", "kernels", "learning", "movers", "targets")


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
    elif name in _FOLDERS:
        value = importlib.import_module(f"salmc.{name}")
    elif name == "__version__":
        from importlib.metadata import version

        value = version("salmc")
    elif name == "run":
        # Its old name, which `salmc run`, the command, has for more than movers.
        message = "salmc.run is now salmc.move: it moves particles."
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return importlib.import_module("salmc.sampling.move").move
    else:
        raise AttributeError(f"module 'salmc' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
