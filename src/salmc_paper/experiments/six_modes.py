"""Chains on Mog6 from N(0, I), which the figures of draws and of convergence both show."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from salmc.diagnostics import autocorrelation
from salmc.report import style
from salmc.sampling.draws import Draws
from salmc.target import AbstractTarget
from salmc.targets import GaussianMixture
from salmc_paper.experiments import rows
from salmc_paper.experiments.training import trained
from salmc_paper.harness.jobs import Context, Job, Plan, Product, Record, Results, not_interrupted
from salmc_paper.measures.judging import (
    ExactSet,
    between_modes,
    exact_draws,
    judge_chains,
    mmd_path,
)
from salmc_paper.measures.problems import find_target

VERSION = 2
TARGET = "mog6"
LAGS = 60
_SHOWN_DRAWS = 3000
_START_STREAM, _SEED = 7000, 11


class Line(NamedTuple):
    """A sampler that the figures show.

    Attributes:
        title: how it is called.
        method, kernel, metropolis: what it is; a method without a kernel is a mover, or exact.
        colour: of its lines.
    """

    title: str
    method: str
    kernel: str | None
    metropolis: bool
    colour: str

    @property
    def arguments(self) -> dict[str, Any]:
        """By which its job is found."""
        return {"method": self.method, "kernel": self.kernel, "metropolis": self.metropolis}


LINES = (
    Line("SAL-MC, MLP", "sal-mc", "mlp", False, style.SERIES[1]),
    Line("SAL-MC, MLP, p(x′)/p(x)", "sal-mc", "mlp", True, style.SERIES[4]),
    Line("SAL-MC, flow, exact MH", "sal-mc", "flow", True, style.SERIES[0]),
    Line("A-NICE-MC, exact MH", rows.RIVAL, "nice", True, style.SERIES[3]),
    Line("SGLD", "sgld", None, False, style.SERIES[2]),
    Line("exact draws", "exact", None, False, style.INK),
)


def shown(results: Results, lines: Sequence[Line] = LINES) -> list[tuple[Line, Record]]:
    """The samplers of which there are results, in their order."""
    found = [(line, results.first(**line.arguments)) for line in lines]
    return [(line, record) for line, record in found if record is not None]


def chains_jobs(plan: Plan) -> list[Job]:
    """One job for each sampler; the trainings are those of Table 1, first seed."""
    shape = {"chains": 8, "draws": 500} if plan.quick else {"chains": 32, "draws": 2000}
    found = []
    for line in LINES:
        needs: tuple[Job, ...] = ()
        if line.kernel is not None:
            needs = (rows.trainings(plan, TARGET, line.kernel, line.method)[0],)
        told = {"steps": rows.quick_steps(plan, line.kernel)} if line.kernel is not None else {}
        arguments = {**line.arguments, **told, **shape}
        name = f"{line.title} on Mog6 from N(0, I)"
        found.append(Job("six-modes", name, arguments, _run, VERSION, needs, seconds=15.0))
    return found


def _run(context: Context) -> Product:
    target = find_target(TARGET)
    draws = _draws(context, target).evaluated()
    positions = np.asarray(draws.positions, dtype=float)
    exact = ExactSet.of(target, seed=1)
    count = positions.shape[1]
    moments = np.asarray(target.mean), np.asarray(target.std)
    flat = positions.reshape(-1, target.dim)
    chosen = np.random.default_rng(0).permutation(len(flat))[:_SHOWN_DRAWS]
    log_density = np.asarray(draws.log_density, dtype=float)
    ratios = np.exp(np.minimum(np.diff(log_density, axis=1), 0.0))
    figures = judge_chains(target, draws)
    assert isinstance(target, GaussianMixture)
    figures["between_modes"] = between_modes(target, flat)
    times = np.unique(np.geomspace(1, count, 40).round().astype(int))
    paths = np.stack([mmd_path(chain, *exact) for chain in positions])
    arrays = {
        "cloud": flat[chosen],
        "times": times,
        "mmd": paths.mean(axis=0)[times - 1],
        "autocorrelation": autocorrelation(positions, *moments)[: LAGS + 1],
        "ratio": ratios.mean(axis=0),
    }
    return Product(figures, arrays)


def _draws(context: Context, target: AbstractTarget) -> Draws:
    chains, count = context["chains"], context["draws"]
    start = np.asarray(jax.random.normal(jax.random.key(_START_STREAM), (chains, target.dim)))
    if context["method"] == "exact":
        exact = exact_draws(target, chains * count, 2)
        values = np.asarray(target.log_densities(jax.numpy.asarray(exact, dtype=float)))
        shape = (chains, count)
        return Draws(exact.reshape(*shape, -1), values.reshape(shape), seconds=1.0, target=target)
    if context["kernel"] is None:
        from salmc.movers import MOVERS
        from salmc.sampling.move import move

        mover = MOVERS[context["method"]](target)
        draws = move(mover, start, count, _SEED, keep=count, progress=False)
        # All steps are shown, the first ones too, as for the kernels.
        draws = Draws(draws.positions, draws.log_density, draws.seconds, target=target)
    else:
        sampler = trained(context.needed[0])
        draws = sampler.sample(
            chains, count, _SEED, metropolis=context["metropolis"], start=start, progress=False
        )
    not_interrupted(draws.warnings)
    return draws
