"""emcee's ensemble of walkers, vectorised in NumPy, after 1000 steps that are thrown away."""

import time

import numpy as np

from benchmarks.peers.problem import Answer, Problem

BURN_IN, BLOCK = 1000, 500


def run(problem: Problem) -> Answer:
    """Blocks of steps until there are enough effective draws."""
    import emcee

    np.random.seed(problem.seed)  # emcee draws from NumPy's global stream
    walkers = max(32, 4 * problem.dim)
    start = problem.constrain(problem.start(walkers), np)
    ensemble = emcee.EnsembleSampler(walkers, problem.dim, problem.log_density, vectorize=True)
    state = ensemble.run_mcmc(start, BURN_IN)
    ready = time.process_time()

    def advance() -> np.ndarray:
        nonlocal state
        ensemble.reset()
        state = ensemble.run_mcmc(state, BLOCK)
        return np.swapaxes(ensemble.get_chain(), 0, 1)

    draws, _ = problem.until_effective(advance, most=300)
    return Answer(draws, None, ready, problem.evaluations, 0)
