"""flowMC: MALA and a spline flow that learns from the chains, the bundle its quick start shows."""

import tempfile
import time
from typing import Any

import numpy as np

from benchmarks.peers.problem import Answer, Problem

CHAINS, LOCAL, GLOBAL, TRAINING, EPOCHS = 100, 50, 50, 20, 20
_SPARE = 4
"""Draws for each effective one: a run cannot go on, so more cannot be added."""


def run(problem: Problem) -> Answer:
    """Loops that train, then loops that draw."""
    import jax
    import jax.numpy as jnp
    from flowMC.resource_strategy_bundle.RQSpline_MALA import RQSpline_MALA_Bundle
    from flowMC.Sampler import Sampler
    from flowMC.strategy.lambda_function import Lambda

    log_density = problem.unconstrained(jnp)
    loops = max(1, -(-_SPARE * problem.effective // (CHAINS * (LOCAL + GLOBAL))))
    key, bundle_key = jax.random.split(jax.random.PRNGKey(problem.seed))
    bundle = RQSpline_MALA_Bundle(
        bundle_key,
        CHAINS,
        problem.dim,
        lambda x, data: log_density(x),
        LOCAL,
        GLOBAL,
        TRAINING,
        loops,
        EPOCHS,
    )
    reset, trained = bundle.strategies["reset_steppers"], []

    def between(*arguments: Any) -> Any:
        """What ends training and begins drawing: the moment to look at the clock."""
        trained.append(time.process_time())
        return reset(*arguments)

    bundle.strategies["reset_steppers"] = Lambda(between)
    with tempfile.TemporaryDirectory() as folder:
        sampler = Sampler(
            n_dim=problem.dim,
            n_chains=CHAINS,
            rng_key=key,
            resource_strategy_bundles=bundle,
            outdir=folder,
            checkpoint_interval=0.0,
        )
        sampler.sample(jnp.asarray(problem.start(CHAINS)), {})
    positions = np.asarray(sampler.resources["positions_production"].data)
    count = CHAINS * (LOCAL + GLOBAL) * (TRAINING + loops)
    return Answer(
        np.asarray(problem.constrain(positions, np)),
        None,
        trained[-1],
        count,
        count // 2,
        {"loops": loops},
    )
