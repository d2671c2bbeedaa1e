"""Targets: synthetic ones with known truth, posteriors of data, and those in users' own files."""

from salmc.targets.banana import Banana
from salmc.targets.eight_schools import EightSchools
from salmc.targets.funnel import Funnel
from salmc.targets.gaussian import Gaussian
from salmc.targets.loading import load_target
from salmc.targets.logistic_regression import (
    Australian,
    German,
    Heart,
    LogisticRegression,
)
from salmc.targets.mixtures import GaussianMixture, Mog2, Mog4, Mog6, Mog10
from salmc.targets.posterior import Posterior
from salmc.targets.registry import TARGETS, TargetEntry
from salmc.targets.rings import Ring, Ring5, Rings
from salmc.targets.transformed import Affine

__all__ = [
    "TARGETS",
    "Affine",
    "Australian",
    "Banana",
    "EightSchools",
    "Funnel",
    "Gaussian",
    "GaussianMixture",
    "German",
    "Heart",
    "LogisticRegression",
    "Mog2",
    "Mog4",
    "Mog6",
    "Mog10",
    "Posterior",
    "Ring",
    "Ring5",
    "Rings",
    "TargetEntry",
    "load_target",
]
