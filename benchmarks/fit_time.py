"""Where the time of a first `salmc.fit` goes, in a fresh process, and what a second one takes."""

import json
import subprocess
import sys
import time
from typing import Any

from benchmarks.common import record

TARGET = "mog2"
KERNELS = ("flow", "mlp")


def main() -> None:
    """Each kernel in a process of its own, so that everything is compiled anew."""
    result = {}
    for kernel in KERNELS:
        command = [sys.executable, "-m", "benchmarks.fit_time", kernel]
        told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        result[kernel] = json.loads(told.splitlines()[-1])
    record("fit_time", result)


def measure(kernel: str) -> dict[str, Any]:
    """A first fit, chains, and a second fit."""
    import salmc
    from salmc.targets.loading import load_target

    target = load_target(TARGET)

    def fit(seed: int) -> tuple[float, Any]:
        began = time.perf_counter()
        sampler = salmc.fit(target, kernel=kernel, seed=seed, progress=False)
        return time.perf_counter() - began, sampler

    first, sampler = fit(0)
    draws = sampler.sample(32, 2000, metropolis=kernel == "flow", progress=False)
    again = sampler.sample(32, 2000, 1, metropolis=kernel == "flow", progress=False)
    second, _ = fit(1)
    return {
        "first_fit_seconds": first,
        "parts": sampler.seconds,
        "steps": int(sampler.history["step"][-1]),
        "second_fit_seconds": second,
        "sampling_compile_seconds": draws.compile_seconds,
        "seconds_of_64000_draws": again.seconds,
    }


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1])))
