"""pocoMC: preconditioned Monte Carlo with a normalising flow, its defaults."""

import time

from benchmarks.peers.problem import Answer, Problem


def run(problem: Problem) -> Answer:
    """Tempering to the posterior, then so many effective draws of it."""
    import pocomc

    prior = pocomc.Prior([one.scipy() for one in problem.density.reference])
    sampler = pocomc.Sampler(
        prior, problem.log_likelihood, vectorize=True, random_state=problem.seed
    )
    ready = time.process_time()
    sampler.run(n_total=problem.effective, n_evidence=0, progress=False)
    points, weights, _, _ = sampler.posterior()
    return Answer(points[None], weights, ready, problem.evaluations, 0)
