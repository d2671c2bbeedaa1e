"""The command line: what it writes, what it prints, and one sentence for every bad input."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

import salmc.movers
import salmc.sampling.folder
import salmc.sampling.run
from salmc.cli import app
from salmc.sampling.folder import open_run

# A given start saves the search for one; the tests of pictures and of bad targets search.
START = ["--start", "normal:4"]
MOVER = ["--method", "sgld"]
QUICK = [*MOVER, "--particles", "30", "--steps", "20", "--no-plots", *START]
COMMAND = [sys.executable, "-c", "from salmc.cli import main; main()"]


def call(*arguments):
    """Run in this process; wide, so that no sentence is broken into lines."""
    environment = {"COLUMNS": "300", "TERM": "dumb"}
    return CliRunner().invoke(app, [str(word) for word in arguments], env=environment)


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


# What works


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


# Bad input: exit code 2, one sentence on standard error, nothing written


def refused(result, *words):
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    message = result.stderr.strip()
    assert "\n" not in message, message
    for word in words:
        assert word in message, message
    leftovers = [name for name in os.listdir() if name not in ("file", "precious")]
    assert leftovers in ([], ["runs"]), leftovers
    assert not Path("runs").exists() or os.listdir("runs") == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "mog7"], ["no built-in target `mog7`", "mog6"]),
        (["run", "mog6", "--method", "sgdl"], ["no method `sgdl`", "sgld"]),
        (["run", "mog6", "--method", "zzz"], ["no method `zzz`", "There are"]),
        (["run", "mog2", *QUICK, "--set", "stepsize=1"], ["no setting `stepsize`", "step_size"]),
        (["run", "mog2", *QUICK, "--set", "step_size"], ["NAME=VALUE"]),
        (["run", "mog2", *QUICK, "--set", "step_size="], ["NAME=VALUE"]),
        (["run", "mog2", *QUICK, "--set", "decay=1", "--set", "decay=2"], ["given twice"]),
        (["run", "mog2", *QUICK, "--set", "step_size=-0.1"], ["`step_size`", "above 0", "-0.1"]),
        (["run", "mog2", *QUICK, "--set", "step_size=nan"], ["`step_size`", "finite", "nan"]),
        (["run", "mog2", *QUICK, "--set", "step_size=fast"], ["`step_size`", "'fast'"]),
        (["run", "mog2", *MOVER, "--particles", "0"], ["`particles`", "Got 0"]),
        (["run", "mog2", *QUICK, "--particles", "0"], ["`particles`", "Got 0"]),
        (["run", "mog2", *QUICK, "--steps", "0"], ["`steps`", "Got 0"]),
        (["run", "mog2", *QUICK, "--keep", "0"], ["`keep`", "Got 0"]),
        (["run", "mog2", *QUICK, "--seed", "-1"], ["`seed`", "Got -1"]),
        (["run", "mog2", *QUICK, "--start", "normal:-1"], ["--start", "normal:2.5"]),
        (["run", "mog2", *QUICK, "--start", "normal:nan"], ["--start", "normal:2.5"]),
        (["run", "mog2", *QUICK, "--start", "cauchy"], ["--start", "normal:2.5"]),
        (["run", "nowhere.py:target"], ["nowhere.py", "does not exist"]),
        (["compare", "mog2", "--methods", "sgld,nope"], ["no method `nope`"]),
        (["compare", "mog2", "--methods", ","], ["--methods"]),
        (["compare", "mog2", "--methods", "sgld", "--particles", "0"], ["`particles`"]),
        (["compare", "mog2", "--methods", "sgld", "--steps", "0"], ["`steps`"]),
        (["show", "nowhere"], ["no run folder", "nowhere"]),
    ],
)
def test_bad_arguments(arguments, words):
    refused(call(*arguments), *words)


@pytest.mark.parametrize(
    "arguments", [["run"], ["run", "mog2", "--steps", "many"], ["run", "mog2", "--no-such"], ["x"]]
)
def test_usage_errors_exit_with_2(arguments):
    result = call(*arguments)
    assert result.exit_code == 2
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import no_such_module", ["Cannot import", "no_such_module"]),
        ("target = (", ["Cannot import", "SyntaxError"]),
        ("other = Target(lambda x: -jnp.sum(x**2), 2)", ["no `target`", "other"]),
        ("target = 3", ["must be a Target", "int 3"]),
        ("target = Target(lambda x: jnp.nan * x[0], 2)", ["NaN"]),
        ("target = Target(lambda x: jnp.inf + 0 * x[0], 2)", ["+inf"]),
        ("target = Target(lambda x: -jnp.inf + 0 * x[0], 2)", ["zero"]),
        ("target = Target(lambda x: -x**2, 2)", ["scalar", "(2,)"]),
        ("target = Target(lambda x: -x[0] @ x[1:, None], 2)", ["failed in", "my_model.py"]),
        ("target = Target(lambda x: 1 / 0, 2)", ["failed in", "ZeroDivisionError"]),
        ("target = Target(lambda x: -jnp.sum(x**2), dim=0)", ["`dim`", "Got 0"]),
    ],
)
@pytest.mark.parametrize("start", ["auto", "normal:1"])
def test_bad_targets(own_target, code, words, start):
    refused(call("run", own_target(code), *QUICK, "--start", start), *words)


def test_a_method_that_needs_a_gradient(own_target):
    spec = own_target("target = Target.from_numpy(lambda x: -(x**2).sum(1), 2)")
    refused(call("run", spec, *QUICK), "sgld needs the gradient", "gradient-free")


def test_folders_that_cannot_be_written_are_found_before_the_run(monkeypatch):
    monkeypatch.setattr(salmc.sampling.run, "run", lambda *_, **__: pytest.fail("it ran"))
    Path("file").write_text("")
    refused(call("run", "mog2", *QUICK, "--out", "file/out"), "Cannot write", "file/out")
    refused(call("compare", "mog2", "--methods", "sgld", "--out", "file/out"), "Cannot write")
    refused(call("run", "mog2", *QUICK, "--out", "file"), "exists already")
    Path("precious").mkdir()
    Path("precious/thesis.tex").write_text("years of work")
    refused(call("run", "mog2", *QUICK, "--out", "precious"), "exists already")
    refused(call("run", "mog2", *QUICK, "--out", "precious", "--overwrite"), "not written by salmc")
    refused(call("run", "mog2", *QUICK, "--out", ".", "--overwrite"), "not written by salmc")
    assert Path("precious/thesis.tex").exists()


def test_overwrite_replaces_a_run():
    for seed, options in (("1", []), ("2", ["--overwrite"])):
        result = call("run", "mog2", *QUICK, "--seed", seed, "--out", "out", *options)
        assert result.exit_code == 0, result.output
    assert open_run("out").draws.settings["seed"] == 2
    assert os.listdir() == ["out"]


def test_a_corrupt_run_folder_is_one_sentence():
    call("run", "mog2", *QUICK, "--out", "out")
    Path("out/settings.json").write_text("{")
    result = call("show", "out")
    assert result.exit_code == 2
    assert "damaged" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_debug_keeps_the_traceback():
    result = call("run", "mog7", "--debug")
    assert type(result.exception).__name__ == "TargetError"


# What was computed is never lost


def test_a_disk_that_fails_at_the_end_leads_to_another_folder(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    original = salmc.sampling.folder.write_zarr

    def full(draws, folder):
        if "here" in str(folder):
            raise OSError(28, "No space left on device")
        original(draws, folder)

    monkeypatch.setattr(salmc.sampling.folder, "write_zarr", full)
    result = call("run", "mog2", *QUICK, "--out", "out")
    assert result.exit_code == 2
    assert "No space left on device" in result.stderr
    assert not Path("out").exists()
    (saved,) = tmp_path.glob("salmc-*/out")
    assert str(saved) in result.stderr
    assert open_run(saved).draws.positions.shape == (30, 20, 2)


def test_failing_diagnostics_do_not_lose_the_draws(monkeypatch):
    def fail(draws, seed=0):
        raise RuntimeError("no idea")

    monkeypatch.setattr("salmc.diagnostics.summary.summarize", fail)
    result = call("run", "mog2", *QUICK, "--out", "out")
    assert result.exit_code == 0
    assert "The diagnostics failed: RuntimeError: no idea" in result.stdout
    assert "no idea" in open_run("out").draws.warnings[0]


MARKED = """
    import pathlib, salmc.progress
    def mark(self, steps, **figures):
        pathlib.Path("started").touch()
    salmc.progress.BarReporter.advance = mark
    target = Target(lambda x: -jnp.sum(x**2), 2)
"""


def start_a_long_run(spec):
    arguments = ["run", spec, "--method", "sgld", "--particles", "30", "--steps", "100000000"]
    process = subprocess.Popen(
        [*COMMAND, *arguments, "--keep", "100000", "--out", "out", "--no-plots", *START],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not Path("started").exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return process


def test_ctrl_c_keeps_what_was_computed(own_target):
    process = start_a_long_run(own_target(MARKED))
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    run = open_run("out")
    assert run.draws.positions.shape[0] == 30
    assert "Interrupted at step" in run.draws.warnings[0]
    assert "Interrupted at step" in output


def test_kill_leaves_nothing_under_the_final_name(own_target):
    process = start_a_long_run(own_target(MARKED))
    process.kill()
    process.communicate(timeout=60)
    assert not Path("out").exists()


def test_kill_while_writing_leaves_nothing_under_the_final_name(own_target):
    spec = own_target("""
        import os, signal, salmc.sampling.folder
        def die(*_):
            os.kill(os.getpid(), signal.SIGKILL)
        salmc.sampling.folder.write_zarr = die
        target = Target(lambda x: -jnp.sum(x**2), 2)
    """)
    finished = subprocess.run([*COMMAND, "run", spec, *QUICK, "--out", "out"], capture_output=True)
    assert finished.returncode == -9
    assert not Path("out").exists()
    again = call("run", "mog2", *QUICK, "--out", "out")
    assert again.exit_code == 0
    open_run("out")
