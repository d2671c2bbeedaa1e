"""Where the time of a first `salmc.fit` goes, in a fresh process, and what a second one takes.

Then the same in another process that finds the programs of the first on disk.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

from benchmarks.common import record

TARGET = "mog2"
KERNELS = ("flow", "mlp")


def main() -> None:
    """Each kernel in processes of its own, so that everything is compiled anew at first."""
    result = {}
    for kernel in KERNELS:
        with tempfile.TemporaryDirectory() as folder:
            for programs in ("compiled", "on disk"):
                command = [sys.executable, "-m", "benchmarks.fit_time", kernel, folder]
                told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                result[f"{kernel}, programs {programs}"] = json.loads(told.splitlines()[-1])
    record("fit_time", result)


def measure(kernel: str, folder: str) -> dict[str, Any]:
    """A first fit, chains, and a second fit."""
    import salmc
    from salmc.targets.loading import load_target

    salmc.remember_programs(folder)
    target = load_target(TARGET)

    def fit(seed: int) -> tuple[float, Any]:
        began = time.perf_counter()
        sampler = salmc.fit(target, kernel=kernel, seed=seed, progress=False)
        return time.perf_counter() - began, sampler

    first, sampler = fit(0)
    draws = sampler.sample(32, 2000, metropolis=kernel == "flow", progress=False)
    again = sampler.sample(32, 2000, 1, metropolis=kernel == "flow", progress=False)
    second, _ = fit(1)
    share = critic_share(target) if kernel == "mlp" else 0.0  # the flow has no critic by default
    return {
        "critic_share_of_training": share,
        "first_fit_seconds": first,
        "parts": sampler.seconds,
        "steps": int(sampler.history["step"][-1]),
        "second_fit_seconds": second,
        "sampling_compile_seconds": draws.compile_seconds,
        "seconds_of_64000_draws": again.seconds,
    }


def critic_share(target: Any, turns: int = 3, steps: int = 1000) -> float:
    """The part of a step of the MLP kernel that is the critic's, by steps with three of them."""
    import salmc

    seconds: dict[int, list[float]] = {1: [], 3: []}
    for turn in range(turns + 1):
        for critic_steps, taken in seconds.items():
            settings = {"critic_steps": critic_steps, "steps": steps, "patience": 0}
            sampler = salmc.fit(target, kernel="mlp", settings=settings, seed=turn, progress=False)
            if turn:  # the first one compiles
                taken.append(sampler.seconds["training"])
    one, three = (statistics.median(taken) for taken in seconds.values())
    return (three - one) / 2 / one


if __name__ == "__main__":
    print(json.dumps(measure(*sys.argv[1:])))
