"""Models that were written for other libraries, as targets: NumPyro's and PyMC's.

A model becomes a log density over the vector of its unconstrained variables, the change of
variables included, and keeps its own variables, shapes, axes, labels, data and likelihood for all
that people see. The library is imported when one of its models is.
"""

from salmc.models.numpyro_model import from_numpyro
from salmc.models.pymc_model import from_pymc

__all__ = ["from_numpyro", "from_pymc"]
