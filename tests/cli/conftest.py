"""A target of the user's own, and an empty folder to work in."""

import textwrap

import pytest


@pytest.fixture
def own_target(tmp_path):
    """Writes a target file, returns how to name it."""

    def write(code, name="target"):
        file = tmp_path / "my_model.py"
        heading = (
            "import jax.numpy as jnp, numpy as np, salmc.target\nTarget = salmc.target.Target\n"
        )
        file.write_text(heading + textwrap.dedent(code))
        return f"{file}:{name}"

    return write


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
