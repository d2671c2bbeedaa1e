"""Linear algebra on the host has one thread while salmc searches, and the user's own after it."""

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

import salmc


def threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_a_search_has_one_and_gives_the_others_back():
    seen = []

    def log_density(points):
        seen.extend(threads())
        return -0.5 * np.sum(points**2, axis=1)

    target = salmc.Target.from_numpy(log_density, dim=2)
    with threadpool_limits(2, user_api="blas"):
        before = threads()
        salmc.sample(target, effective=100, evaluations=3000, progress=False)
        assert threads() == before
    assert seen
    assert set(seen) == {1}
