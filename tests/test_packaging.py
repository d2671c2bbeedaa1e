"""What is installed is what users need: files in the wheel, and one extra that has all others."""

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOR_DEVELOPERS = {"dev", "bench", "docs"}


def test_the_wheel_has_types_templates_and_data(tmp_path):
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    for name in (
        "py.typed",
        "report/page.html.jinja",
        "report/salmc.mplstyle",
        "datasets/files/digits.npz",
        "datasets/files/digests.txt",
    ):
        assert f"salmc/{name}" in names
    assert not any(name.startswith("tests") for name in names)


def test_all_has_every_extra_of_users():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    named = {
        extra
        for requirement in extras["all"]
        for extra in re.findall(r"[\w-]+", requirement.partition("[")[2])
    }
    assert named == set(extras) - FOR_DEVELOPERS - {"all"}
