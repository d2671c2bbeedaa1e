"""The job that trains a kernel. Experiments that need the same kernel share one training."""

import contextlib
import functools
from collections.abc import Callable
from typing import Any

from salmc.errors import OutputError
from salmc.sampling.files.saved import load
from salmc.sampling.sampler import Sampler
from salmc_paper.harness.jobs import (
    Context,
    Job,
    NotAvailableError,
    Product,
    Record,
    not_interrupted,
)
from salmc_paper.measures.problems import find_target, split_words

VERSION, VERSION_MLP = 1, 2
"""The MLP kernel's components are calibrated by the density since its second."""

KERNEL = "salmc"
_CHECKPOINT = "checkpoint.npz"


def training(
    target: str,
    kernel: str,
    seed: int,
    *,
    method: str = "sal-mc",
    steps: int | None = None,
    split: int | None = None,
    seconds: float = 40.0,
) -> Job:
    """A job that trains a kernel.

    Args:
        target: the name of a built-in target.
        kernel: the name of a kernel.
        seed: of the training.
        method: "sal-mc" or "a-nice-mc", which has a kernel of its own.
        steps: fewer or more than the kernel's default.
        split: of a regression: train on that random part of the data only.
        seconds: about what it takes.
    """
    arguments: dict[str, Any] = {
        "target": target,
        "method": method,
        "kernel": kernel,
        "seed": seed,
        "steps": steps,
        "split": split,
    }
    told = f"{label(method, kernel)} on {target}{split_words(split)}, seed {seed}"
    if steps is not None:
        told += f", {steps} steps"
    settings = settings_of(target, method, kernel, steps)
    version = VERSION_MLP if kernel == "mlp" else VERSION
    return Job("train", told, arguments, _train, version, settings=settings, seconds=seconds)


def settings_of(target: str, method: str, kernel: str, steps: int | None = None) -> dict[str, Any]:
    """What a training uses by default; nothing where the method, kernel or target is not there."""
    from salmc.kernels import KERNELS
    from salmc.learning.fit import METHODS, method_settings
    from salmc.targets.registry import TARGETS

    if method not in METHODS or kernel not in KERNELS or target not in TARGETS:
        return {}
    settings = method_settings(method, kernel, _dimension(target))
    return settings.as_dictionary() | ({} if steps is None else {"steps": steps})


def label(method: str, kernel: str) -> str:
    """How tables name a learned kernel."""
    if method == "a-nice-mc":
        return "A-NICE-MC"
    return f"SAL-MC, {'MLP' if kernel == 'mlp' else 'NICE' if kernel == 'nice' else kernel}"


def trained_in_full(context: Context, train: Callable[..., Any]) -> Any:
    """The sampler of a training, which goes on from where an earlier run of the job was killed.

    Args:
        context: of the job, among whose files the sampler is saved.
        train: takes `checkpoint` and `resume`.
    """
    checkpoint = context.place(_CHECKPOINT)
    try:
        sampler = train(checkpoint=checkpoint, resume=True)
    except OutputError:
        # A checkpoint that cannot be read, of a run that was killed: begin anew.
        checkpoint.unlink(missing_ok=True)
        sampler = train(checkpoint=checkpoint, resume=True)
    not_interrupted(sampler.warnings)
    sampler.save(context.place(KERNEL))
    with contextlib.suppress(OSError):
        checkpoint.unlink(missing_ok=True)
    return sampler


def trained(record: Record) -> Sampler:
    """The sampler of a training that is done."""
    arguments = record.job.arguments
    target = find_target(arguments["target"], arguments["split"])
    return load(record.folder_files[KERNEL], target)


def training_seconds(record: Record) -> tuple[float, float]:
    """Seconds of a training without compilation, and of compilation."""
    parts = {name: float(value) for name, value in record.figures["parts"].items()}
    compiling = parts.pop("compile", 0.0)
    # Saving checkpoints serves these runs, not the method.
    parts.pop("checkpoint", None)
    return sum(parts.values()), compiling


@functools.cache
def _dimension(target: str) -> int:
    from salmc.targets.registry import TARGETS

    return TARGETS[target].dim


def _train(context: Context) -> Product:
    from salmc.learning.fit import METHODS, fit

    method, kernel = context["method"], context["kernel"]
    if method not in METHODS:
        raise NotAvailableError(f"The method {method} is not part of this version of salmc.")
    options: dict[str, Any] = {"method": method, "seed": context["seed"], "progress": False}
    if method == "sal-mc":
        from salmc.kernels import KERNELS

        if kernel not in KERNELS:
            raise NotAvailableError(f"The kernel {kernel} is not part of this version of salmc.")
        options["kernel"] = kernel
    if context["steps"] is not None:
        options["steps"] = context["steps"]
    target = find_target(context["target"], context["split"])
    sampler = trained_in_full(context, functools.partial(fit, target, **options))
    steps = sampler.history.get("step", ())
    figures = {
        "parts": sampler.seconds,
        "steps": float(steps[-1]) if len(steps) else None,
        "warnings": list(sampler.warnings),
    }
    return Product(figures, files=(KERNEL,))
