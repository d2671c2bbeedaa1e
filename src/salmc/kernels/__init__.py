"""Stage 3: kernels, learned Markov transitions x' = G(x, ξ). One file each.

`KERNELS` has them by name; `base` has the contract. `spline` and `layers` are what they are made
of, `whitening` the coordinates that they live in.
"""

from salmc.kernels.base import AbstractKernel, AbstractTractableKernel
from salmc.kernels.flow import FlowKernel
from salmc.kernels.mlp import MLPKernel
from salmc.kernels.whitening import Whitening

KERNELS: dict[str, type[AbstractKernel]] = {
    kernel.name: kernel for kernel in (FlowKernel, MLPKernel)
}
"""Every kernel by its name, tractable ones first. Add your own to save and load it."""

__all__ = [
    "KERNELS",
    "AbstractKernel",
    "AbstractTractableKernel",
    "FlowKernel",
    "MLPKernel",
    "Whitening",
]
