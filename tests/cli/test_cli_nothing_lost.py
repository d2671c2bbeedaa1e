"""What was computed is never lost: full disks, failing diagnostics, Ctrl-C and `kill -9`."""

import signal
import subprocess
import time
from pathlib import Path

import salmc.sampling.files.folder
from command import COMMAND, QUICK, START, call
from salmc.sampling.files.folder import open_run


def test_a_disk_that_fails_at_the_end_leads_to_another_folder(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    original = salmc.sampling.files.folder.write_zarr

    def full(draws, folder):
        if "here" in str(folder):
            raise OSError(28, "No space left on device")
        original(draws, folder)

    monkeypatch.setattr(salmc.sampling.files.folder, "write_zarr", full)
    result = call("run", "mog2", *QUICK, "--out", "out")
    assert result.exit_code == 2
    assert "No space left on device" in result.stderr
    assert not Path("out").exists()
    (saved,) = tmp_path.glob("salmc-*/out")
    assert str(saved) in result.stderr
    assert open_run(saved).draws.positions.shape == (30, 20, 2)


def test_failing_diagnostics_do_not_lose_the_draws(monkeypatch):
    def fail(draws, **_):
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
        import os, signal, salmc.sampling.files.folder
        def die(*_):
            os.kill(os.getpid(), signal.SIGKILL)
        salmc.sampling.files.folder.write_zarr = die
        target = Target(lambda x: -jnp.sum(x**2), 2)
    """)
    finished = subprocess.run([*COMMAND, "run", spec, *QUICK, "--out", "out"], capture_output=True)
    assert finished.returncode == -9
    assert not Path("out").exists()
    again = call("run", "mog2", *QUICK, "--out", "out")
    assert again.exit_code == 0
    open_run("out")
