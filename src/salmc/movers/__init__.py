"""Movers: rules that move a cloud of particles toward a target. One file each.

`MOVERS` has them by name; `base` has the contract.
"""

from salmc.movers.ag_svgd import AGSVGD
from salmc.movers.annealed_svgd import AnnealedSVGD, GradientFreeAnnealedSVGD
from salmc.movers.base import AbstractMover
from salmc.movers.evolution import DifferentialEvolution
from salmc.movers.sghmc import SGHMC
from salmc.movers.sgld import SGLD
from salmc.movers.sgnht import SGNHT
from salmc.movers.spos import SPOS
from salmc.movers.svgd import SVGD
from salmc.movers.tempered_smc import TemperedSMC
from salmc.movers.tune import Trial, Tuning, tune
from salmc.movers.w_sgld import WSGLD

MOVERS: dict[str, type[AbstractMover]] = {
    mover.name: mover
    for mover in (
        AGSVGD,
        TemperedSMC,
        DifferentialEvolution,
        GradientFreeAnnealedSVGD,
        AnnealedSVGD,
        SVGD,
        SPOS,
        WSGLD,
        SGLD,
        SGHMC,
        SGNHT,
    )
}
"""Every mover by its name, particle methods first."""

__all__ = [
    "AGSVGD",
    "MOVERS",
    "SGHMC",
    "SGLD",
    "SGNHT",
    "SPOS",
    "SVGD",
    "WSGLD",
    "AbstractMover",
    "AnnealedSVGD",
    "DifferentialEvolution",
    "GradientFreeAnnealedSVGD",
    "TemperedSMC",
    "Trial",
    "Tuning",
    "tune",
]
