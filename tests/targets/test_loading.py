import sys
import textwrap

import pytest

from salmc.errors import DataError, TargetError
from salmc.target import AbstractTarget
from salmc.targets import TARGETS, GaussianMixture, load_target
from salmc.targets.loading import built_in

MODEL = """
import jax.numpy as jnp
from salmc.target import Target

def log_density(x):
    return -0.5 * jnp.sum(x**2)

target = Target(log_density, dim=2, name="mine")

def make():
    return Target(log_density, dim=3)

def make_wrong():
    return 7

def make_broken():
    raise ValueError("no data\\nhere")

class Own(Target):
    def __init__(self):
        super().__init__(log_density, 4)

number = 3
"""


@pytest.fixture
def write(tmp_path):
    def write(text: str, name: str = "my_model.py") -> str:
        path = tmp_path / name
        path.write_text(textwrap.dedent(text))
        return str(path)

    return write


def failure(text: str) -> str:
    with pytest.raises(TargetError) as caught:
        load_target(text)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith((".", "?"))
    return message


def test_built_in():
    assert isinstance(load_target("mog6"), GaussianMixture)
    assert load_target("mog6").name == "mog6"


@pytest.mark.parametrize(
    ("text", "near"), [("mog5", "mog6"), ("Ring5", "ring5"), ("gausian", "gaussian")]
)
def test_unknown_built_in_names_the_nearest(text, near):
    message = failure(text)
    assert f"no built-in target `{text}`" in message
    assert near in message


def test_nothing_near_lists_them_all():
    message = failure("xyz")
    assert all(name in message for name in TARGETS)
    assert "file.py:name" in message
    assert "no built-in target ``" in failure("")


def test_a_target_in_a_file(write):
    path = write(MODEL)
    assert load_target(f"{path}:target").name == "mine"
    assert load_target(f"{path}:make").dim == 3
    own = load_target(f"{path}:Own")
    assert isinstance(own, AbstractTarget)
    assert own.dim == 4


def test_each_load_reads_the_file_anew(write):
    path = write(MODEL)
    assert load_target(f"{path}:target").dim == 2
    path = write(MODEL.replace("dim=2", "dim=25"))
    assert load_target(f"{path}:target").dim == 25


def test_a_file_may_import_its_neighbours_and_leaves_the_path_alone(write):
    write("SIZE = 6", "salmc_test_neighbour.py")
    path = write(
        """
        from salmc_test_neighbour import SIZE
        from salmc.target import Target
        target = Target(lambda x: 0.0, dim=SIZE)
        """
    )
    before = list(sys.path)
    assert load_target(f"{path}:target").dim == 6
    assert sys.path == before


def test_a_file_without_a_name(write):
    path = write(MODEL)
    assert f"Write {path}:NAME" in failure(path)
    assert "no `` in" in failure(f"{path}:")


def test_missing_files(tmp_path):
    assert "does not exist" in failure(f"{tmp_path}/absent.py:target")
    (tmp_path / "folder.py").mkdir()
    assert "is a folder, not a file" in failure(f"{tmp_path}/folder.py:target")


def test_a_file_that_is_not_python(write):
    path = write("target = 1", "model.txt")
    assert "its name must end in .py" in failure(f"{path}:target")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "x = 1\n\nimport absent_module_of_mine\n",
            "No module named 'absent_module_of_mine' (line 3)",
        ),
        ("x = 1\ny = (\n", "SyntaxError: '(' was never closed (line 2)"),
        ("def f():\n    return 1 / 0\n\nf()\n", "ZeroDivisionError: division by zero (line 2)"),
        ("import sys\nsys.exit(3)\n", "SystemExit: 3 (line 2)"),
    ],
)
def test_files_that_do_not_import(write, text, expected):
    path = write(text)
    message = failure(f"{path}:target")
    assert message.startswith(f"Cannot import {path}: ")
    assert expected in message


def test_no_such_name_lists_what_is_there(write):
    path = write(MODEL)
    assert failure(f"{path}:tarrget").endswith("It has the targets target.")
    path = write("import math\nfrom os import path\nnumber = 1\ndef f(): pass\n", "other.py")
    assert failure(f"{path}:target").endswith("It has f, number.")
    path = write("import math\n", "empty.py")
    assert failure(f"{path}:target").endswith("It defines nothing.")


def test_values_that_are_not_targets(write):
    path = write(MODEL)
    assert "Got int 3 instead" in failure(f"{path}:number")
    assert "must return a Target. Got int 7 instead" in failure(f"{path}:make_wrong")
    assert "failed: ValueError: no data here (line 17)" in failure(f"{path}:make_broken")
    message = failure(f"{path}:log_density")
    assert "a function of x instead" in message
    assert "salmc.Target(log_density, dim=...)" in message


def test_a_built_in_target_without_its_data_is_none(monkeypatch):
    def missing():
        raise DataError("The data are not here.")

    entry = TARGETS["australian"]
    monkeypatch.setitem(TARGETS, "australian", entry._replace(factory=missing))
    assert built_in("australian") is None
    assert built_in("no such target") is None
    assert built_in(None) is None
    assert built_in("mog6").name == "mog6"
