"""The names of the package: all there, and none of them loaded before it is used."""

import subprocess
import sys

import pytest

import salmc


def test_every_name_is_there():
    for name in salmc.__all__:
        assert getattr(salmc, name) is not None
        assert name in dir(salmc)
    assert salmc.fit.__module__ == "salmc.learning.fit"
    assert salmc.kernels.__name__ == "salmc.kernels"
    assert salmc.__version__[0].isdigit()


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match="'salmc' has no attribute 'fti'"):
        _ = salmc.fti
    with pytest.raises(ImportError, match="fti"):
        from salmc import fti  # noqa: F401


def test_help_does_not_wait_for_jax():
    program = "import sys, salmc, salmc.cli; print('jax' in sys.modules)"
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == "False"
