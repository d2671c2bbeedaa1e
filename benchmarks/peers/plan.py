"""Which peer runs on which target: the jobs, and what each of them does."""

import functools
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from benchmarks.peers.densities import DATA_VARIABLE
from salmc_paper.harness.jobs import Context, Job, NotAvailableError


class Peer(NamedTuple):
    """A sampler.

    Attributes:
        title: in tables.
        module: its file in `samplers`.
        environment: the name of its requirements; None for the environment of the benchmark.
        gradient: whether it needs one.
        jax: whether it runs on JAX, whose compilations can be told apart.
        options: of its `run`.
    """

    title: str
    module: str
    environment: str | None
    gradient: bool = False
    jax: bool = False
    options: Mapping[str, Any] = MappingProxyType({})


PEERS: dict[str, Peer] = {
    "salmc": Peer("salmc", "salmc_sample", None, jax=True),
    "numpyro": Peer("NumPyro NUTS", "numpyro_nuts", "numpyro", gradient=True, jax=True),
    "blackjax": Peer("BlackJAX NUTS", "blackjax_nuts", "blackjax", gradient=True, jax=True),
    "nutpie": Peer("nutpie", "nutpie_nuts", "nutpie", gradient=True, jax=True),
    "nutpie-flow": Peer(
        "nutpie, flow", "nutpie_nuts", "nutpie", gradient=True, jax=True, options={"flow": True}
    ),
    "smc": Peer("tempered SMC", "blackjax_smc", "blackjax", jax=True),
    "nautilus": Peer("nautilus", "nautilus_nested", "nautilus"),
    "dynesty": Peer("dynesty", "dynesty_nested", "dynesty"),
    "emcee": Peer("emcee", "emcee_ensemble", "emcee"),
    "pocomc": Peer("pocoMC", "pocomc_preconditioned", "pocomc"),
    "flowmc": Peer("flowMC", "flowmc_flow", "flowmc", gradient=True, jax=True),
}

TARGETS: dict[str, str] = {
    "gaussian2": "Gaussian, 2-d",
    "mog6": "Mog6",
    "german": "German, 25-d",
    "schools": "eight schools, non-centred",
    "funnel": "funnel, 10-d",
    "switching2": "label switching, 5-d",
    "black-box3": "black box of 5 ms, 3-d",
    "ring": "Ring",
    "mog2": "Mog2",
    "ring5": "Ring5",
    "heart": "Heart, 14-d",
    "australian": "Australian, 15-d",
    "switching3": "label switching, 8-d",
    "centred-schools": "eight schools, centred",
    "cauchy5": "Cauchy, 5-d",
    "t3": "Student t3, 5-d",
    "box20": "box, 20-d",
    "two-widths": "two widths",
    "stretched100": "Gaussian 100-d, condition 1e6",
}
REGRESSIONS = ("heart", "australian", "german")

EFFECTIVE = (10_000, 1_000)
"""The larger one first: it says more."""

CPU_LIMIT, QUICK_LIMIT = 300.0, 60.0
"""CPU seconds of a run; no part of its key, so that another limit leaves what is done as it is."""
QUICK_PEERS, QUICK_TARGETS = ("salmc", "numpyro", "emcee"), ("gaussian2", "mog6", "schools")
SEEDS = (0,)


def jobs(quick: bool = False) -> list[Job]:
    """All, so ordered that a run that is stopped has something of every peer; or a quick few."""
    peers, targets = (QUICK_PEERS, QUICK_TARGETS) if quick else (PEERS, TARGETS)
    return [
        _job(target, peer, effective, seed, QUICK_LIMIT if quick else CPU_LIMIT)
        for seed in SEEDS
        for effective in ((1_000,) if quick else EFFECTIVE)
        for target in targets
        for peer in peers
        if not (target == "black-box3" and PEERS[peer].gradient)
    ]


def _job(target: str, peer: str, effective: int, seed: int, limit: float) -> Job:
    arguments = {"target": target, "peer": peer, "effective": effective, "seed": seed}
    name = f"{target}, {peer}, {effective}"
    entry = (target, peer, f"{effective}, seed {seed}")
    run = functools.partial(_run, limit=limit)
    return Job("peers", name, arguments, run, entry=entry, seconds=60.0)


def _run(context: Context, limit: float) -> dict[str, Any]:
    from benchmarks.peers.environments import python_of
    from benchmarks.peers.processes import run_worker

    peer = PEERS[context["peer"]]
    python = python_of(peer.environment)
    with tempfile.TemporaryDirectory() as name:
        data = Path(name)
        _provide(context["target"], data)
        request = {
            "module": peer.module,
            "options": dict(peer.options),
            "jax": peer.jax,
            "cpu_limit": limit,
            **{key: context[key] for key in ("target", "effective", "seed")},
        }
        ended = run_worker(python, request, data)
        figures = {"cpu_limit": limit, **ended.figures}
        if ended.outcome != "done":
            return {"outcome": ended.outcome, "sentence": ended.sentence, **figures}
        return {**_judged(context["target"], ended.draws, context["effective"], data), **figures}


def _provide(target: str, folder: Path) -> None:
    """The table of a regression, checked, in a folder where the worker looks."""
    if target not in REGRESSIONS:
        return
    from salmc.datasets.fetch import find
    from salmc.errors import DataError

    try:
        source = find(f"{target}.csv").read_text(encoding="utf-8")
    except DataError as error:
        raise NotAvailableError(str(error)) from error
    (folder / f"{target}.csv").write_text(source, encoding="utf-8")


def _judged(target: str, draws: dict[str, Any], effective: int, data: Path) -> dict[str, Any]:
    import os

    from benchmarks.peers.judging import judged
    from benchmarks.peers.truths import truth

    os.environ[DATA_VARIABLE] = str(data)
    return judged(truth(target), draws, effective)
