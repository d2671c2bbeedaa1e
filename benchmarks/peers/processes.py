"""Run the worker in a fresh process with limits of CPU and wall time, and say how it ended."""

import json
import os
import re
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.peers.densities import DATA_VARIABLE

_ROOT = Path(__file__).parents[2]
_WAITS = 4.0
"""Wall seconds for each CPU second of the limit: the machine may be busy with other work."""


class Ended(NamedTuple):
    """How a worker ended.

    Attributes:
        outcome: "done", "limit" or "failed".
        sentence: why, if not well.
        figures: what it printed, and what the system says of it.
        draws: arrays that it wrote; empty unless it is done.
    """

    outcome: str
    sentence: str
    figures: dict[str, Any]
    draws: dict[str, np.ndarray]


def run_worker(python: str, request: dict[str, Any], data: Path) -> Ended:
    """One worker, from its start to its end.

    Args:
        python: the interpreter of its environment.
        request: for the worker; its "cpu_limit" is in seconds.
        data: the folder of the tables of the regressions.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        asked, output = folder / "request.json", folder / "draws.npz"
        asked.write_text(json.dumps(request), encoding="utf-8")
        source = [
            str(_ROOT),
            *([str(_ROOT / "src")] if request["module"] == "salmc_sample" else []),
        ]
        environment = {
            **os.environ,
            DATA_VARIABLE: str(data),
            "PYTHONPATH": os.pathsep.join(source),
        }
        words = [python, "-m", "benchmarks.peers.worker", str(asked), str(output)]
        with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
            began = time.perf_counter()
            process = subprocess.Popen(
                words, cwd=folder, env=environment, stdout=out, stderr=err, start_new_session=True
            )
            code, cpu = _wait(process, _WAITS * request["cpu_limit"])
            wall = time.perf_counter() - began
        # How busy the machine was: CPU seconds grow with that, too, if less than wall seconds do.
        load = os.getloadavg()[0]
        measured = {"wall_seconds": wall, "process_cpu_seconds": cpu, "load_average": load}
        if code == 0:
            told = (folder / "out").read_text(encoding="utf-8").splitlines()[-1]
            with np.load(output, allow_pickle=False) as arrays:
                draws = {key: arrays[key] for key in arrays.files}
            return Ended("done", "", {**json.loads(told), **measured}, draws)
        outcome, sentence = explained(code, (folder / "err").read_text(errors="replace"), request)
        return Ended(outcome, sentence, measured, {})


def explained(code: int, complaint: str, request: dict[str, Any]) -> tuple[str, str]:
    """Outcome and sentence of a worker that did not end well."""
    limit = f"{request['cpu_limit']:g} s of CPU time"
    lines = [line for line in complaint.strip().splitlines() if line.strip()]
    # The exception itself: some peers print more below it, such as another language's stack.
    named = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b", line)]
    last = (named or lines or [f"it ended with {code} and said nothing"])[-1].strip()
    if code == -signal.SIGXCPU or last.startswith("TimeoutError"):
        return "limit", f"Not done within {limit}."
    if code == -signal.SIGKILL:
        # Ours after too much wall time, the system's after too much CPU time or memory.
        return "limit", f"Ended: more than {limit}, {_WAITS:g} times as long, or out of memory."
    return "failed", last[:300]


def _wait(process: subprocess.Popen[bytes], longest: float) -> tuple[int, float]:
    """The return code and the CPU seconds of all of it; the process group is ended if it must."""
    deadline = time.perf_counter() + longest
    try:
        while True:
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
            if ended:
                break
            if time.perf_counter() > deadline:
                os.killpg(process.pid, signal.SIGKILL)
                _, status, usage = os.wait4(process.pid, 0)
                break
            time.sleep(0.05)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_utime + usage.ru_stime
