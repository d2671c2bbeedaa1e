"""Where the time of a first `salmc.fit` goes, in a fresh process, and what a second one takes.

Then the same in another process that finds the programs of the first on disk.
"""

import functools
import json
import sys
import tempfile
from typing import Any

from salmc_paper.harness.jobs import Context, Job
from salmc_paper.harness.processes import measured_apart

TARGET = "mog2"


def jobs() -> list[Job]:
    """All processes in one: the second of each kernel needs the programs of the first."""
    arguments = {"target": TARGET, "kernels": ["flow", "mlp"]}
    return [Job("fit_time", "first and second fit", arguments, _run, entry=(), seconds=300.0)]


def _run(context: Context) -> dict[str, Any]:
    figures = {}
    for kernel in context["kernels"]:
        with tempfile.TemporaryDirectory() as folder:
            for programs in ("compiled", "on disk"):
                figures[f"{kernel}, programs {programs}"] = measured_apart(
                    __name__, context["target"], kernel, folder
                )
    return figures


def measure(name: str, kernel: str, folder: str) -> dict[str, Any]:
    """A first fit, chains, and a second fit."""
    import salmc
    from benchmarks.trained_kernels import CHAINS, DRAWS, train
    from salmc.targets.loading import load_target

    salmc.remember_programs(folder)
    target = load_target(name)
    first = train(target, kernel=kernel, seed=0)
    sample = functools.partial(
        first.sampler.sample, CHAINS, DRAWS, metropolis=kernel == "flow", progress=False
    )
    draws, again = sample(), sample(1)
    second = train(target, kernel=kernel, seed=1)
    share = critic_share(target) if kernel == "mlp" else 0.0  # the flow has no critic by default
    return {
        "critic_share_of_training": share,
        "first_fit_seconds": first.seconds,
        "parts": first.sampler.seconds,
        "steps": int(first.sampler.history["step"][-1]),
        "second_fit_seconds": second.seconds,
        "sampling_compile_seconds": draws.compile_seconds,
        "seconds_of_64000_draws": again.seconds,
    }


def critic_share(target: Any, turns: int = 3, steps: int = 1000) -> float:
    """The part of a step of the MLP kernel that is the critic's, by steps with three of them."""
    import salmc
    from salmc_paper.harness.timing import take_turns

    def fit(critic_steps: int) -> salmc.Sampler:
        settings = {"critic_steps": critic_steps, "steps": steps, "patience": 0}
        return salmc.fit(target, kernel="mlp", settings=settings, progress=False)

    contenders = {str(count): functools.partial(fit, count) for count in (1, 3)}
    timed = take_turns(contenders, turns=turns, clock=lambda sampler: sampler.seconds["training"])
    one, three = timed["1"].median, timed["3"].median
    return (three - one) / 2 / one


if __name__ == "__main__":
    print(json.dumps(measure(*sys.argv[1:])))
