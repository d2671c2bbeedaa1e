"""NumPyro's NUTS on the log density: 4 chains, vectorised, a warm-up of 1000, one run.

Every further run would be compiled anew, so there is one, of more draws than are wanted.
"""

import time

import numpy as np

from benchmarks.peers.problem import Answer, Problem

CHAINS, WARMUP, SPARE = 4, 1000, 2.0


def run(problem: Problem) -> Answer:
    """A warm-up, then a run."""
    import jax
    import jax.numpy as jnp
    from numpyro.infer import MCMC, NUTS

    log_density = problem.unconstrained(jnp)
    chains = MCMC(
        NUTS(potential_fn=lambda x: -log_density(x)),
        num_warmup=WARMUP,
        num_samples=int(SPARE * problem.effective / CHAINS),
        num_chains=CHAINS,
        chain_method="vectorized",
        progress_bar=False,
    )
    wanted = ("num_steps", "diverging")
    start = jnp.asarray(problem.start(CHAINS))
    key = jax.random.key(problem.seed)
    chains.warmup(key, init_params=start, extra_fields=wanted, collect_warmup=True)
    warmup = int(np.sum(chains.get_extra_fields()["num_steps"]))
    ready, compiled = time.process_time(), problem.compiled()
    chains.run(chains.post_warmup_state.rng_key, extra_fields=wanted)
    positions = np.asarray(problem.constrain(chains.get_samples(group_by_chain=True), jnp))
    extra = chains.get_extra_fields()
    count = warmup + int(np.sum(extra["num_steps"]))
    notes = {"divergent": int(np.sum(extra["diverging"]))}
    ready += problem.compiled() - compiled
    return Answer(positions, None, ready, count, count, notes)
