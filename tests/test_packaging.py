"""What is installed is what users need: files in the wheel, and one extra that has all others."""

import email
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from trove_classifiers import classifiers as known_classifiers

ROOT = Path(__file__).parents[1]
FOR_DEVELOPERS = {"dev", "bench", "docs"}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    (file,) = folder.glob("*.whl")
    return zipfile.ZipFile(file)


def test_the_wheel_has_types_templates_and_data(wheel):
    names = set(wheel.namelist())
    for name in (
        "py.typed",
        "report/page.html.jinja",
        "report/salmc.mplstyle",
        "datasets/files/digits.npz",
        "datasets/files/digests.txt",
    ):
        assert f"salmc/{name}" in names
    assert not any(name.startswith("tests") for name in names)


def test_what_pypi_shows(wheel):
    (place,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    told = email.message_from_bytes(wheel.read(place))
    assert told["Version"] == PROJECT["version"]
    assert told["License-Expression"] == "Apache-2.0"
    assert set(told.get_all("Classifier")) <= set(known_classifiers)
    addresses = [line.partition(", ")[2] for line in told.get_all("Project-URL")]
    assert len(addresses) >= 4
    assert all(address.startswith("https://") for address in addresses)
    assert told["Description-Content-Type"] == "text/markdown"
    assert told.get_payload().lstrip().startswith("# salmc\n\n    pip install salmc\n")


def test_the_version_is_one():
    """In the metadata, which the code reads, in the citation, and on top of the changelog."""
    version = PROJECT["version"]
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.search(r"^version: (.*)$", citation, re.MULTILINE)[1] == version
    assert re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[1] == version
    for address in (PROJECT["urls"]["Source"], PROJECT["urls"]["Documentation"]):
        assert address in citation


def test_versions_of_python_are_those_that_are_told():
    told = re.findall(r"Python :: 3\.(\d+)", " ".join(PROJECT["classifiers"]))
    assert PROJECT["requires-python"] == f">=3.{min(map(int, told))}"


def test_all_has_every_extra_of_users():
    extras = PROJECT["optional-dependencies"]
    named = {
        extra
        for requirement in extras["all"]
        for extra in re.findall(r"[\w-]+", requirement.partition("[")[2])
    }
    assert named == set(extras) - FOR_DEVELOPERS - {"all"}
