"""Jobs on the posteriors of logistic regressions: NUTS, and test accuracy."""

import importlib.util
from typing import Any

import numpy as np

from salmc.diagnostics.prediction import predictive_accuracy
from salmc.errors import DataError
from salmc.sampling.draws import Draws
from salmc.target import AbstractTarget
from salmc_paper.experiments.training import label, trained, training_seconds
from salmc_paper.harness.jobs import Context, Job, NotAvailableError, Product, not_interrupted
from salmc_paper.measures.judging import judge_chains
from salmc_paper.measures.problems import find_split, find_target
from salmc_paper.measures.references import reference

VERSION = 1
_STREAM = 300
"""Added to seeds, so that no stream here is that of a training or of the references."""


def nuts_chains(target: str, *, chains: int, draws: int, warmup: int) -> Job:
    """NUTS on all data, judged against the long reference."""
    arguments = {
        "target": target,
        "method": "nuts",
        "chains": chains,
        "draws": draws,
        "warmup": warmup,
    }
    return Job("nuts", f"NUTS on {target}", arguments, _nuts_chains, VERSION, seconds=40.0)


def nuts_split(target: str, split: int, *, chains: int, draws: int, warmup: int) -> Job:
    """NUTS on a random 80 % of the data: its accuracy on the rest, and the moments."""
    arguments = {
        "target": target,
        "split": split,
        "method": "nuts",
        "chains": chains,
        "draws": draws,
        "warmup": warmup,
    }
    name = f"NUTS on {target} split {split}"
    return Job("split", name, arguments, _nuts_split, VERSION, seconds=25.0)


def kernel_split(
    train: Job, nuts: Job, metropolis: bool, *, chains: int, draws: int, point: int | None = None
) -> Job:
    """A kernel trained on a split: accuracy on the rest, ESS and bias by the moments of NUTS.

    Args:
        train: on the split.
        nuts: on the same split.
        metropolis: whether proposals may be rejected.
        chains, draws: how many.
        point: the number of steps that a figure shows the training at, if it does.
    """
    told = train.arguments
    arguments = {**told, "metropolis": metropolis, "chains": chains, "draws": draws}
    if point is not None:
        arguments["point"] = point
    name = f"{label(told['method'], told['kernel'])}{' + MH' if metropolis else ''}"
    name += f" on {told['target']} split {told['split']}"
    if told["steps"] is not None:
        name += f", {told['steps']} steps"
    return Job("split", name, arguments, _kernel_split, VERSION, (train, nuts), seconds=8.0)


def reference_moments(target: str) -> tuple[np.ndarray, np.ndarray]:
    """Mean and sd by the long run of NUTS.

    Raises:
        NotAvailableError: if it is not part of this installation.
    """
    try:
        found = reference(target)
    except DataError as error:
        raise NotAvailableError(str(error)) from error
    return found.mean, found.std


def run_nuts(
    target: AbstractTarget,
    *,
    chains: int,
    draws: int,
    warmup: int,
    seed: int,
    mass_matrix: str = "diagonal",
    threads: int = 1,
) -> Draws:
    """Chains of NUTS from a stream of their own.

    Raises:
        NotAvailableError: if BlackJAX is not installed.
    """
    if importlib.util.find_spec("blackjax") is None:
        raise NotAvailableError("NUTS needs BlackJAX: install salmc[bench].")
    from salmc_paper.measures.nuts import nuts

    made = nuts(
        target,
        chains=chains,
        draws=draws,
        warmup=warmup,
        seed=_STREAM + seed,
        mass_matrix=mass_matrix,
        threads=threads,
    )
    not_interrupted(made.warnings)
    return made


def _nuts(target: AbstractTarget, context: Context, seed: int) -> Draws:
    return run_nuts(
        target,
        chains=context["chains"],
        draws=context["draws"],
        warmup=context["warmup"],
        seed=seed,
    )


def _nuts_chains(context: Context) -> dict[str, Any]:
    moments = reference_moments(context["target"])
    target = find_target(context["target"])
    draws = _nuts(target, context, 0)
    told = ("warmup_seconds", "leapfrogs", "divergences", "step_size")
    return {
        **judge_chains(target, draws, *moments),
        **{name: draws.settings.get(name) for name in told},
    }


def _nuts_split(context: Context) -> Product:
    found = find_split(context["target"], context["split"])
    draws = _nuts(found.target, context, 10 + context["split"])
    accuracy = predictive_accuracy(
        found.target.predict, draws.positions, found.features, found.labels
    )
    flat = draws.positions.reshape(-1, found.target.dim).astype(np.float64)
    figures = {
        "accuracy": accuracy.mean,
        "pooled_accuracy": accuracy.pooled,
        "mean": flat.mean(axis=0),
        "std": flat.std(axis=0),
        "seconds": draws.seconds,
    }
    return Product(figures)


def _kernel_split(context: Context) -> dict[str, Any]:
    train, nuts = context.needed
    found = find_split(context["target"], context["split"])
    sampler = trained(train)
    draws = sampler.sample(
        context["chains"],
        context["draws"],
        _STREAM + context["split"],
        metropolis=context["metropolis"],
        progress=False,
    )
    not_interrupted(draws.warnings)
    accuracy = predictive_accuracy(
        found.target.predict, draws.positions, found.features, found.labels
    )
    moments = np.array(nuts.figures["mean"]), np.array(nuts.figures["std"])
    seconds, compiling = training_seconds(train)
    return {
        **judge_chains(found.target, draws, *moments),
        "accuracy": accuracy.mean,
        "pooled_accuracy": accuracy.pooled,
        "nuts_accuracy": nuts.figures["accuracy"],
        "train_seconds": seconds,
        "train_compile_seconds": compiling,
        "train_steps": train.figures["steps"],
    }
