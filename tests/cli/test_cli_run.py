"""The command line: what it writes and what it prints."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import salmc.movers
from command import QUICK, START, call
from salmc.sampling.files.folder import open_run


def test_run_writes_a_folder_that_opens_again():
    result = call("run", "mog2", *QUICK, "--out", "out", "--set", "step_size=0.05")
    assert result.exit_code == 0, result.output
    assert "out" in result.stdout
    run = open_run("out")
    assert run.draws.positions.shape == (30, 20, 2)
    assert run.draws.target.name == "mog2"
    assert run.settings["settings"]["step_size"] == pytest.approx(0.05)
    assert run.settings["target_spec"] == "mog2"
    shown = call("show", "out")
    assert shown.exit_code == 0
    assert "report.html" in os.listdir("out")
    opening = run.diagnostics["verdict"]["sentences"][0]
    assert opening in shown.stdout
    assert opening in result.stdout


def test_default_folders_do_not_collide_and_quiet_prints_their_names_only():
    names = [call("run", "ring", *QUICK, "--quiet").stdout.strip() for _ in range(2)]
    assert len(set(names)) == 2
    for name in names:
        assert name.startswith("runs/ring-sgld-")
        open_run(name)


def test_the_same_seed_gives_the_same_draws_and_the_start_is_recorded():
    first, second, other = (
        call("run", "mog2", *QUICK, "--start", "normal:2.5", "--seed", seed, "--out", f"{place}")
        for place, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert first.exit_code == second.exit_code == other.exit_code == 0, first.output
    a, b, c = (open_run(place).draws for place in "abc")
    assert a.positions.tobytes() == b.positions.tobytes()
    assert a.positions.tobytes() != c.positions.tobytes()
    assert a.settings["start"] == "normal:2.5"


def test_users_own_black_box_with_pictures(own_target):
    spec = own_target("target = Target.from_numpy(lambda x: -0.5 * (x**2).sum(1), 2, name='box')")
    gradient_free = next(n for n, m in salmc.movers.MOVERS.items() if not m.requires_gradient)
    result = call(
        "run", spec, "--method", gradient_free, "--particles", 40, "--steps", 10, "--out", "out"
    )
    assert result.exit_code == 0, result.output
    assert {plot.name for plot in open_run("out").plots} >= {"draws.png", "trace.png"}


def test_compare_reports_methods_that_cannot_work(own_target):
    spec = own_target("target = Target.from_numpy(lambda x: -0.5 * (x**2).sum(1), 2, name='box')")
    gradient_free = next(n for n, m in salmc.movers.MOVERS.items() if not m.requires_gradient)
    options = ["--particles", 40, "--steps", 10, "--out", "out", *START]
    result = call("compare", spec, "--methods", f"sgld,{gradient_free}", *options)
    assert result.exit_code == 0, result.output
    assert "needs the gradient" in result.stdout
    assert sorted(os.listdir("out")) == [
        "checksums.json",
        "comparison.json",
        "comparison.png",
        "draws",
        "settings.json",
    ]
    assert os.listdir("out/draws") == [f"{gradient_free}.zarr"]
    rows = json.loads(Path("out/comparison.json").read_text())["results"]
    assert [row["method"] for row in rows] == ["sgld", gradient_free]
    shown = call("show", "out")
    assert shown.exit_code == 0
    assert "needs the gradient" in shown.stdout
    nothing = call("compare", spec, "--methods", "sgld", "--steps", 10, *START)
    assert nothing.exit_code == 2
    assert "No method could run" in nothing.stderr


def test_lists():
    targets, methods = call("targets"), call("methods", "--settings")
    assert "mog6" in targets.stdout
    for name in salmc.movers.MOVERS:
        assert name in methods.stdout
    assert "not needed" in methods.stdout
    assert "step_size" in methods.stdout


def test_version_and_help_import_nothing_heavy_of_their_own():
    script = """
        import sys, salmc
        before = set(sys.modules)
        import salmc.cli
        heavy = {"jax", "equinox", "matplotlib", "xarray", "zarr", "arviz_base"}
        print(", ".join(heavy & (set(sys.modules) - before)))
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    finished = subprocess.run(command, capture_output=True, text=True)
    assert finished.stdout.strip() == "", finished.stderr
    assert finished.returncode == 0, finished.stderr
    assert call("--version").stdout.startswith("salmc ")
    assert "compare" in call("--help").stdout
