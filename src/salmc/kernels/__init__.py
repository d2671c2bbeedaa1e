"""Kernels: learned Markov transitions x' = G(x, ξ). One file each.

`KERNELS` has them by name; `base` has the contract. `spline` and `layers` are what they are made
of, `whitening` the coordinates that they live in.
"""

from salmc.kernels.base import (
    AbstractKernel,
    AbstractTractableKernel,
    Proposal,
)
from salmc.kernels.conv import ConvKernel
from salmc.kernels.flow import FlowKernel
from salmc.kernels.image import AbstractImageKernel
from salmc.kernels.image_mlp import ImageMLPKernel
from salmc.kernels.layers import Whitening
from salmc.kernels.mixture import MixtureKernel
from salmc.kernels.mlp import MLPKernel
from salmc.kernels.nice import NICEKernel

KERNELS: dict[str, type[AbstractKernel]] = {
    kernel.name: kernel for kernel in (FlowKernel, MixtureKernel, NICEKernel, MLPKernel)
}
"""Every kernel by its name, exact ones first. Add your own to save and load it."""

IMAGE_KERNELS: dict[str, type[AbstractImageKernel]] = {
    kernel.name: kernel for kernel in (ConvKernel, ImageMLPKernel)
}
"""Kernels over images by their names; they are made from an image's shape."""

__all__ = [
    "IMAGE_KERNELS",
    "KERNELS",
    "AbstractImageKernel",
    "AbstractKernel",
    "AbstractTractableKernel",
    "ConvKernel",
    "FlowKernel",
    "ImageMLPKernel",
    "MLPKernel",
    "MixtureKernel",
    "NICEKernel",
    "Proposal",
    "Whitening",
]
