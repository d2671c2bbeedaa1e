"""dynesty's dynamic nested sampling, its defaults, until so many effective draws."""

import time

import numpy as np

from benchmarks.peers.problem import Answer, Problem


def run(problem: Problem) -> Answer:
    """All of the run grows with the draws that are wanted."""
    import dynesty

    def log_likelihood(x: np.ndarray) -> float:
        return max(float(problem.log_likelihood(x)[0]), -1e100)

    sampler = dynesty.DynamicNestedSampler(
        log_likelihood,
        problem.prior_transform,
        problem.dim,
        rstate=np.random.default_rng(problem.seed),
    )
    ready = time.process_time()
    sampler.run_nested(n_effective=problem.effective, print_progress=False)
    found = sampler.results
    weights = np.asarray(found.importance_weights())
    return Answer(np.asarray(found.samples)[None], weights, ready, problem.evaluations, 0)
