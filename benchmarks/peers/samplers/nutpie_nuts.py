"""nutpie on a JAX density, with its diagonal mass matrix or its normalising flow."""

import time
from typing import Any

import numpy as np

from benchmarks.peers.problem import Answer, Problem

CHAINS = 4
_SPARE = 2.0
"""Draws for each effective one: nutpie's runs cannot go on, so more cannot be added."""


def run(problem: Problem, flow: bool = False) -> Answer:
    """One run; the share of the warm-up in its time is that of its leapfrog steps."""
    import jax
    import jax.numpy as jnp
    import nutpie

    jax.config.update("jax_enable_x64", True)  # nutpie's own chains are in double precision
    dim, log_density = problem.dim, problem.unconstrained(jnp)
    value_and_gradient = jax.jit(jax.value_and_grad(log_density))
    value_and_gradient(jnp.zeros(dim))[0].block_until_ready()

    def make_log_density() -> Any:
        def at(x: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = value_and_gradient(x)
            return float(value), np.asarray(gradient, np.float64)

        return at

    def make_expand(*_: Any) -> Any:
        return lambda x: {"x": np.asarray(x, np.float64)}

    model = nutpie.compiled_pyfunc.from_pyfunc(
        dim,
        make_log_density,
        make_expand,
        [np.dtype("float64")],
        [(dim,)],
        ["x"],
        make_initial_point_fn=lambda seed: np.random.default_rng(seed).uniform(-2, 2, dim),
        raw_logp_fn=(lambda x: (log_density(x),)) if flow else None,
    )
    options: dict[str, Any] = {"tune": 1000} if not flow else {"tune": 1500}
    if flow:
        model = model.with_transform_adapt(verbose=False)
        options |= {"transform_adapt": True, "cores": 1}
    compiled = time.process_time()
    trace = nutpie.sample(
        model,
        draws=int(_SPARE * problem.effective / CHAINS),
        chains=CHAINS,
        seed=problem.seed,
        progress_bar=False,
        **options,
    )
    used = time.process_time() - compiled
    steps = int(np.sum(trace["sample_stats"]["n_steps"].values))
    warmup = int(np.sum(trace["warmup_sample_stats"]["n_steps"].values))
    positions = problem.constrain(np.asarray(trace["posterior"]["x"].values), np)
    notes = {"divergent": int(np.sum(trace["sample_stats"]["diverging"].values))}
    ready = compiled + used * warmup / (warmup + steps)
    return Answer(positions, None, ready, warmup + steps, warmup + steps, notes)
