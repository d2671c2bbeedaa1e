"""Chains over images, learned from real images alone: the paper's last experiment.

    sampler = salmc.images.train("mnist", out="mnist.salmc")
    images = sampler.sample(chains=10, draws=50, noise=0.5)     # bytes (10, 50, 28, 28, 1)
    sampler = salmc.images.load("mnist.salmc")

`train` says what is learned from what, `adversarial` has the objective and one step of it,
`sampler` runs the chains, `pictures` shows them.
"""

from salmc.images.sampler import ImageBlock, ImageSampler, load
from salmc.images.settings import ImageSettings
from salmc.images.train import train

__all__ = ["ImageBlock", "ImageSampler", "ImageSettings", "load", "train"]
