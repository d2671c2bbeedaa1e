"""BlackJAX's tempered SMC: random-walk moves, scaled by the spread of the particles."""

import time

import numpy as np

from benchmarks.peers.problem import Answer, Problem
from benchmarks.peers.references import log_prior

MOVES, KEPT, SPARE = 20, 0.5, 2
"""Moves at each temperature; the share of effective particles that sets the next; particles for
each effective draw, so that enough are left after the last weighting."""


def run(problem: Problem) -> Answer:
    """All of the run grows with the particles; the last of them are weighted."""
    import blackjax
    import jax
    import jax.numpy as jnp
    from blackjax.smc import extend_params, resampling

    density, dim = problem.density, problem.dim

    def prior(x):  # type: ignore[no-untyped-def]
        return log_prior(density.reference, x, jnp)

    def likelihood(x):  # type: ignore[no-untyped-def]
        # Where π vanishes p/π is of no account; without this it would be NaN.
        below = prior(x)
        return jnp.where(below > -jnp.inf, density.log_density(x, jnp) - below, -jnp.inf)

    kernel = blackjax.additive_step_random_walk.build_kernel()

    def move(key, state, log_density, factor):  # type: ignore[no-untyped-def]
        def step(key, position):  # type: ignore[no-untyped-def]
            return factor @ jax.random.normal(key, position.shape)

        return kernel(key, state, log_density, step)

    def spread(key, state, info):  # type: ignore[no-untyped-def]
        del key, info
        covariance = jnp.atleast_2d(jnp.cov(state.particles.T)) * 2.38**2 / dim
        return extend_params({"factor": jnp.linalg.cholesky(covariance + 1e-8 * jnp.eye(dim))})

    generator = np.random.default_rng([problem.seed, 1])
    count = SPARE * problem.effective
    particles = jnp.asarray(problem.prior_transform(generator.random((count, dim))))
    first = jnp.linalg.cholesky(jnp.cov(particles.T) * 2.38**2 / dim)
    smc = blackjax.inner_kernel_tuning(
        smc_algorithm=blackjax.adaptive_tempered_smc,
        logprior_fn=prior,
        loglikelihood_fn=likelihood,
        mcmc_step_fn=move,
        mcmc_init_fn=blackjax.additive_step_random_walk.init,
        resampling_fn=resampling.systematic,
        mcmc_parameter_update_fn=spread,
        initial_parameter_value=extend_params({"factor": first}),
        target_ess=KEPT,
        num_mcmc_steps=MOVES,
    )
    state = smc.init(particles)
    step = jax.jit(smc.step).lower(jax.random.key(0), state).compile()
    ready, temperatures = time.process_time(), 0
    key = jax.random.key(problem.seed)
    while float(state.sampler_state.tempering_param) < 1.0 and problem.has_room:
        key, now = jax.random.split(key)
        state, _ = step(now, state)
        temperatures += 1
    reached = float(state.sampler_state.tempering_param)
    if reached < 1.0:
        raise TimeoutError(f"Time was over at the temperature 1/{1.0 / max(reached, 1e-12):.3g}.")
    positions = np.asarray(state.sampler_state.particles)[None]
    evaluations = temperatures * (MOVES + 1) * count
    weights = np.asarray(state.sampler_state.weights, np.float64)
    return Answer(positions, weights, ready, evaluations, 0, {"temperatures": temperatures})
