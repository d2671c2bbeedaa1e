"""`salmc run` with methods that learn: what is written, what survives, and one sentence else."""

import importlib
import os
import signal
import subprocess
import sys
import textwrap
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

from command import call
from salmc.learning.checkpoint import Checkpoint
from salmc.learning.settings import default_settings
from salmc.sampling.files.folder import open_run
from salmc.sampling.files.saved import load

SMALL = {"steps": 50, "pool_size": 1024, "batch": 256, "chunk": 10, "checkpoint_every": 1}
SETTINGS = [word for name, value in SMALL.items() for word in ("--set", f"{name}={value}")]
SIZE = ["--chains", "4", "--draws", "150"]
QUICK = [*SETTINGS, *SIZE, "--no-plots"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run that nothing interrupted, with its pictures."""
    folder = tmp_path_factory.mktemp("trained") / "whole"
    result = call("run", "mog2", *SETTINGS, *SIZE, "--out", folder)
    assert result.exit_code == 0, result.output
    return folder, result


def learned_arrays(folder):
    """Everything that was learned, bit for bit; the times of day are in the header."""
    with zipfile.ZipFile(Path(folder) / "kernel.salmc") as archive:
        return {name: archive.read(name) for name in archive.namelist() if name.endswith(".npy")}


# What works


def test_a_run_has_everything_in_its_folder(trained):
    folder, result = trained
    run = open_run(folder)
    assert run.draws.method == "sal-mc"
    assert run.draws.positions.shape == (4, 150, 2)
    assert run.draws.settings["exact"]
    assert run.draws.settings["training"]["steps"] == 50
    assert run.draws.settings["training_seconds"]["training"] >= 0
    assert run.diagnostics["missed"] is not None
    assert "training.png" in {plot.name for plot in run.plots}
    page = (folder / "report.html").read_text(encoding="utf-8")
    # Each on light and on dark paper.
    assert page.count("data:image/png;base64,") == 2 * len(run.plots)
    assert str(folder / "report.html") in result.stdout
    assert "training seconds" in result.stdout
    sampler = load(folder / "kernel.salmc")
    assert sampler.target.name == "mog2"
    assert list(sampler.history["step"]) == [10, 20, 30, 40, 50]
    assert not [name for name in os.listdir(folder.parent) if name.startswith(".")]


def test_its_kernel_can_be_drawn_from_again(trained):
    result = call("sample", trained[0], "--chains", 4, "--draws", 50, "--out", "more", "--no-plots")
    assert result.exit_code == 0, result.output
    assert open_run("more").draws.positions.shape == (4, 50, 2)
    assert Path("more/report.html").is_file()


def test_the_implicit_kernel_draws_without_metropolis():
    few = {"steps": 10, "pool_size": 256, "batch": 64, "chunk": 10, "mover_steps": 50}
    few = [word for name, value in few.items() for word in ("--set", f"{name}={value}")]
    options = [*few, *SIZE, "--no-plots", "--out", "out"]
    result = call("run", "mog2", "--kernel", "mlp", "--mover", "de-mc", *options)
    assert result.exit_code == 0, result.output
    run = open_run("out")
    assert run.draws.settings["kernel"] == "mlp"
    assert run.draws.settings["training"]["mover"] == "de-mc"
    assert not run.draws.settings["metropolis"]
    assert "not exact" in Path("out/report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", ["npy", "csv"])
def test_samples_from_a_file(kind):
    samples = np.random.default_rng(0).normal(size=(400, 2))
    if kind == "npy":
        np.save("samples.npy", samples)
    else:
        np.savetxt("samples.csv", samples, delimiter=",", header="a,b", comments="")
    small = ["--set", "steps=20", "--set", "batch=64", "--set", "chunk=10", *SIZE, "--no-plots"]
    result = call("run", f"samples.{kind}", "--method", "al-mc", *small, "--out", "out")
    assert result.exit_code == 0, result.output
    draws = open_run("out").draws
    assert draws.method == "al-mc"
    assert np.all(np.isfinite(draws.positions))
    assert load("out/kernel.salmc").target is None


def test_compare_with_movers(monkeypatch):
    def small(plan, dim):
        return default_settings(plan.kernel or "flow", dim).replace(**SMALL)

    monkeypatch.setattr(importlib.import_module("salmc.cli.compare"), "learning_settings", small)
    options = ["--particles", 40, "--steps", 20, "--start", "normal:4", "--no-plots"]
    methods = "sal-mc:flow,sgld"
    result = call("compare", "mog2", "--methods", methods, *options, "--out", "out")
    assert result.exit_code == 0, result.output
    assert sorted(os.listdir("out/draws")) == ["sal-mc-flow.zarr", "sgld.zarr"]
    for text in (result.stdout, call("show", "out").stdout):
        assert "sal-mc:flow" in text
        assert "(+" in text


def test_methods_lists_what_learns_and_the_kernels():
    listed = call("methods", "--settings").stdout
    for word in ("sal-mc", "al-mc", "flow", "mlp", "pool_size"):
        assert word in listed


# Interruptions


def test_kill_and_resume_end_with_the_same_kernel(trained):
    script = """
        import pathlib, time
        from salmc.learning.checkpoint import Checkpoint
        write, count = Checkpoint.write, 0
        def write_and_wait(self, *arguments):
            global count
            write(self, *arguments)
            count += 1
            if count == 2:
                pathlib.Path("waiting").touch()
                time.sleep(600)
        Checkpoint.write = write_and_wait
        from salmc.cli import main
        main()
    """
    command = [sys.executable, "-c", textwrap.dedent(script), "run", "mog2", *QUICK, "--out", "out"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 300
    while not Path("waiting").exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.1)
    process.kill()
    process.communicate(timeout=60)
    assert not Path("out").exists()
    assert Path(".out.checkpoint").is_file()

    again = call("run", "mog2", *QUICK, "--out", "out")
    assert again.exit_code == 2
    assert "--resume to go on" in again.stderr
    assert "--overwrite to begin anew" in again.stderr
    other = call("run", "mog2", *QUICK, "--seed", 1, "--out", "out", "--resume")
    assert other.exit_code == 2
    assert "another run: seed differ" in other.stderr
    more = call("run", "mog2", *QUICK, "--set", "huber=2", "--out", "out", "--resume")
    assert more.exit_code == 2
    assert "another run: settings differ" in more.stderr
    assert Path(".out.checkpoint").is_file()

    resumed = call("run", "mog2", *QUICK, "--out", "out", "--resume")
    assert resumed.exit_code == 0, resumed.output
    assert learned_arrays("out") == learned_arrays(trained[0])
    whole, pieced = open_run(trained[0]).draws, open_run("out").draws
    assert whole.positions.tobytes() == pieced.positions.tobytes()
    assert sorted(os.listdir()) == ["out", "waiting"]

    complete = call("run", "mog2", *QUICK, "--out", "out", "--resume")
    assert complete.exit_code == 2
    assert "nothing to resume" in complete.stderr


def press_ctrl_c(monkeypatch, at):
    """At the checkpoint of that number."""
    write, count = Checkpoint.write, 0

    def write_and_press(self, *arguments):
        nonlocal count
        write(self, *arguments)
        count += 1
        if count == at:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Checkpoint, "write", write_and_press)


def test_ctrl_c_in_training_uses_what_was_learned(trained, monkeypatch):
    press_ctrl_c(monkeypatch, at=3)
    result = call("run", "mog2", *QUICK, "--out", "out")
    assert result.exit_code == 130, result.output
    assert "Traceback" not in result.output
    assert "--resume --out out" in result.stderr
    run = open_run("out")
    assert run.draws.positions.shape == (4, 150, 2)
    assert any("Interrupted at step" in warning for warning in run.draws.warnings)
    assert len(load("out/kernel.salmc").history["step"]) == 3

    resumed = call("run", "mog2", *QUICK, "--out", "out", "--resume")
    assert resumed.exit_code == 0, resumed.output
    assert learned_arrays("out") == learned_arrays(trained[0])
    assert os.listdir() == ["out"]


def test_ctrl_c_before_there_are_draws_keeps_the_checkpoint(trained, monkeypatch):
    def interrupted(self, **_):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("salmc.sampling.sampler.Sampler.sample", interrupted)
    result = call("run", "mog2", *QUICK, "--out", "out")
    assert result.exit_code == 130
    assert "--resume --out out" in result.stderr
    assert os.listdir() == [".out.checkpoint"]


def test_overwrite_gives_up_a_checkpoint(trained):
    Path(".out.checkpoint").write_text("of a run long ago")
    result = call("run", "mog2", *QUICK, "--out", "out", "--overwrite")
    assert result.exit_code == 0, result.output
    assert os.listdir() == ["out"]


def test_a_damaged_checkpoint_is_one_sentence():
    Path(".out.checkpoint").write_text("nonsense")
    result = call("run", "mog2", *QUICK, "--out", "out", "--resume")
    assert result.exit_code == 2
    assert "damaged" in result.stderr
    assert Path(".out.checkpoint").read_text() == "nonsense"


def test_a_page_that_fails_does_not_cost_the_run(trained, monkeypatch):
    def fail(folder):
        raise RuntimeError("no paper")

    monkeypatch.setattr("salmc.report.html.write_html", fail)
    result = call("sample", trained[0], "--chains", 4, "--draws", 50, "--out", "out", "--no-plots")
    assert result.exit_code == 0
    assert "report.html could not be written: RuntimeError: no paper" in result.stderr
    open_run("out")
