"""What runs in the fresh process, in the peer's environment: one sampler, one target, one request.

    python -m benchmarks.peers.worker REQUEST.json OUTPUT.npz

The request has the sampler's module, the target, the effective draws, the seed and the limit of CPU
seconds, at which the system ends the process. Draws go to the output, figures to standard output.
"""

import importlib
import json
import resource
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.peers.compilations import Compilations
from benchmarks.peers.densities import DENSITIES
from benchmarks.peers.effective import kish, largest_rhat, smallest_ess
from benchmarks.peers.problem import Answer, Problem

MOST_KEPT = 400_000
"""Draws that are handed over for judging; more are thinned evenly."""


def main(request_path: str, output: str) -> None:
    """Run, write the draws, print the figures."""
    request = json.loads(Path(request_path).read_text(encoding="utf-8"))
    limit = int(request["cpu_limit"])
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 10))
    compiling = Compilations() if request["jax"] else None
    known = {} if compiling is None else {"compiled": compiling.cpu_seconds}
    density = DENSITIES[request["target"]]()
    problem = Problem(density, request["effective"], request["seed"], limit, **known)
    began = time.perf_counter()
    sampler = importlib.import_module(f"benchmarks.peers.samplers.{request['module']}")
    answer: Answer = sampler.run(problem, **request["options"])
    done = time.process_time()
    figures = {
        "cpu_seconds": done,
        "ready_cpu_seconds": answer.ready,
        "run_wall_seconds": time.perf_counter() - began,
        "compile_cpu_seconds": None if compiling is None else compiling.cpu_seconds(),
        "evaluations": answer.evaluations,
        "gradients": answer.gradients,
        "peak_memory_bytes": peak_memory(),
        "draws": int(np.prod(answer.positions.shape[:2])),
        "notes": dict(answer.notes),
    }
    _save(answer, output)
    print(json.dumps(figures))


def peak_memory() -> int:
    """Of this process alone: what Linux's `ru_maxrss` says begins with its parent's."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    except (OSError, StopIteration):
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _save(answer: Answer, output: str) -> None:
    positions, weights = np.asarray(answer.positions, np.float64), answer.weights
    count = positions.shape[0] * positions.shape[1]
    chains = weights is None and positions.shape[0] > 1
    # Of all draws, before they are thinned.
    if weights is not None:
        ess = kish(weights)
    else:
        ess = smallest_ess(positions) if chains else float(count)
    rhat = largest_rhat(positions) if chains else np.nan
    if weights is None:
        positions = positions[:, :: -(-count // MOST_KEPT)]
        weights = np.ones(positions.shape[0] * positions.shape[1])
    points = positions.reshape(-1, positions.shape[2])
    np.savez(output, points=points, weights=weights, ess=ess, rhat=rhat)


if __name__ == "__main__":
    main(*sys.argv[1:])
