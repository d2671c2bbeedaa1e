"""nautilus: importance nested sampling with neural networks, its defaults."""

import time

import numpy as np

from benchmarks.peers.problem import Answer, Problem


def run(problem: Problem) -> Answer:
    """Exploration, whose draws are discarded as its authors advise, then draws."""
    import nautilus

    prior = nautilus.Prior()
    for one in problem.density.reference:
        prior.add_parameter(dist=one.scipy())
    sampler = nautilus.Sampler(
        prior, problem.log_likelihood, vectorized=True, pass_dict=False, seed=problem.seed
    )
    sampler.run(n_eff=1, n_shell=1, discard_exploration=True)
    ready = time.process_time()
    sampler.run(n_eff=problem.effective, n_shell=1, discard_exploration=True)
    points, log_weights, _ = sampler.posterior()
    weights = np.exp(log_weights - np.max(log_weights))
    return Answer(points[None], weights, ready, problem.evaluations, 0)
