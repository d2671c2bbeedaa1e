"""Points through black boxes: pools change speed, and never values or counts."""

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing.pool import ThreadPool

import jax.numpy as jnp
import numpy as np
import pytest

from black_boxes import deadly, failing, of_many, of_one, slow
from salmc.errors import ArgumentError, TargetError
from salmc.evaluation import PART_SECONDS, Evaluation
from salmc.target import Target
from salmc.worker_pools import workers_of

POINTS = np.random.default_rng(0).normal(size=(40, 2))
VALUES = -0.5 * np.sum(POINTS**2, axis=1)


@pytest.mark.parametrize(("function", "vectorized"), [(of_one, False), (of_many, True)])
@pytest.mark.parametrize("pool", [None, ThreadPoolExecutor, ThreadPool])
def test_values_and_counts_are_the_same_everywhere(function, vectorized, pool):
    executor = None if pool is None else pool(2)
    evaluate = Evaluation(function, vectorized=vectorized, executor=executor)
    for _ in range(2):
        np.testing.assert_allclose(evaluate(POINTS), VALUES)
    assert evaluate.count == 80
    assert evaluate(POINTS[:0]).shape == (0,)


def test_a_target_of_one_point():
    target = Target.from_numpy(of_one, 2, vectorized=False, bounds=[(-9, 9), (-9, 9)])
    np.testing.assert_allclose(target.log_densities(jnp.asarray(POINTS)), VALUES, rtol=1e-5)


def test_parts_follow_what_points_cost():
    with ThreadPoolExecutor(2) as pool:
        evaluate = Evaluation(of_one, vectorized=False, executor=pool)
        assert len(evaluate.parts(80)) == 8
        for cost, parts in ((1.0, 80), (PART_SECONDS / 10, 8), (1e-6, 2)):
            evaluate._cost = cost
            cut = evaluate.parts(80)
            assert len(cut) == parts
            assert sorted(i for part in cut for i in range(80)[part]) == list(range(80))


def test_a_killed_worker_changes_nothing():
    """By its id, in the middle: values and the count are those of an undisturbed run."""
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        evaluate = Evaluation(slow, vectorized=False, executor=pool)
        evaluate(POINTS[:2])  # the workers are there now
        victim = next(iter(pool._processes))
        timer = threading.Timer(0.15, os.kill, (victim, signal.SIGKILL))
        timer.start()
        np.testing.assert_allclose(evaluate(POINTS), VALUES)
        timer.join()
        assert evaluate.executor is not pool
        assert evaluate.count == 42
        evaluate.executor.shutdown()


def test_a_killed_worker_of_multiprocessing_changes_nothing():
    """Such a pool replaces the worker and never answers for what it had: no hang, no miscount."""
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        evaluate = Evaluation(slow, vectorized=False, executor=pool)
        evaluate(POINTS[:2])
        timer = threading.Timer(0.15, os.kill, (pool._pool[0].pid, signal.SIGKILL))
        timer.start()
        np.testing.assert_allclose(evaluate(POINTS), VALUES)
        timer.join()
        assert evaluate.count == 42


def test_points_that_kill_their_workers_end_in_a_sentence():
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        evaluate = Evaluation(deadly, vectorized=False, executor=pool)
        with pytest.raises(TargetError, match="died, and again with every new pool"):
            evaluate(POINTS[:1])
        evaluate.executor.shutdown()
    assert evaluate.count == 0


class TestTroubles:
    @pytest.mark.parametrize("pool", [None, ThreadPoolExecutor])
    def test_an_exception_names_its_point(self, pool):
        executor = None if pool is None else pool(2)
        evaluate = Evaluation(failing, vectorized=False, executor=executor)
        expected = r"failed at x = \[2.5, 0.\s*\]: ValueError: the solver did not converge"
        with pytest.raises(TargetError, match=expected):
            evaluate(np.array([[0.0, 0.0], [2.5, 0.0]]))

    def test_a_function_of_one_point_given_as_one_of_many(self):
        with pytest.raises(TargetError, match="pass vectorized=False"):
            Evaluation(lambda x: -0.5 * np.sum(x**2))(POINTS)

    def test_a_function_of_many_points_given_as_one_of_one(self):
        with pytest.raises(TargetError, match="pass vectorized=True"):
            Evaluation(lambda x: np.zeros(3), vectorized=False)(POINTS)

    def test_a_function_that_cannot_be_sent(self):
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            evaluate = Evaluation(lambda x: 0.0, vectorized=False, executor=pool)
            with pytest.raises(TargetError, match="and no lambda"):
                evaluate(POINTS)

    def test_bad_arguments(self):
        with pytest.raises(ArgumentError, match="`log_prob` argument"):
            Target.from_numpy(3, 2)
        with pytest.raises(ArgumentError, match="`executor` argument must be a pool"):
            Target.from_numpy(of_one, 2, executor="dask")

    def test_an_unknown_pool_has_as_many_workers_as_there_are_cores(self):
        assert workers_of(object()) == (os.cpu_count() or 1)


@pytest.mark.slow
def test_dask_with_two_workers_and_one_of_them_killed():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        evaluate = Evaluation(slow, vectorized=False, executor=client.get_executor())
        assert workers_of(evaluate.executor) == 2
        np.testing.assert_allclose(evaluate(POINTS), VALUES)
        victim = next(iter(client.run(os.getpid).values()))
        timer = threading.Timer(0.1, os.kill, (victim, signal.SIGKILL))
        timer.start()
        np.testing.assert_allclose(evaluate(POINTS), VALUES)
        timer.join()
        assert evaluate.count == 80


@pytest.mark.slow
def test_ray_with_two_workers_and_one_of_them_killed():
    ray = pytest.importorskip("ray")
    from ray.util.multiprocessing import Pool

    def waits(x):  # Ray sends functions that its workers cannot import, too
        time.sleep(0.02)
        return -0.5 * float(x @ x)

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        pool = Pool(2)
        evaluate = Evaluation(waits, vectorized=False, executor=pool)
        assert workers_of(evaluate.executor) == 2
        np.testing.assert_allclose(evaluate(POINTS), VALUES)
        victim = pool.apply(os.getpid)
        timer = threading.Timer(0.1, os.kill, (victim, signal.SIGKILL))
        timer.start()
        np.testing.assert_allclose(evaluate(POINTS), VALUES)
        timer.join()
        assert evaluate.executor is not pool
        assert evaluate.count == 80
    finally:
        ray.shutdown()


@contextlib.contextmanager
def _processes():
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        pool.submit(of_one, POINTS[0]).result()
        yield pool, next(iter(pool._processes))


@contextlib.contextmanager
def _dask():
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with (
        distributed.LocalCluster(processes=True, **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client.get_executor(), next(iter(client.run(os.getpid).values()))


@contextlib.contextmanager
def _ray():
    ray = pytest.importorskip("ray")
    from ray.util.multiprocessing import Pool

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        pool = Pool(2)
        yield pool, pool.apply(os.getpid)
    finally:
        ray.shutdown()


@pytest.mark.slow
@pytest.mark.parametrize("made_pool", [_processes, _dask, _ray])
def test_a_fit_on_a_pool_is_the_fit_without_one(made_pool, monkeypatch):
    """A worker is killed by its id in the middle: draws and the count are the same all the same."""
    import salmc
    from salmc import target_sources

    made, draws = [], []

    def noted(*arguments, **options):
        made.append(Evaluation(*arguments, **options))
        return made[-1]

    def log_prob(x):  # Dask and Ray send functions that their workers cannot import, too
        return -0.5 * float(x @ x)

    monkeypatch.setattr(target_sources, "Evaluation", noted)
    with made_pool() as (pool, victim):
        function = of_one if made_pool is _processes else log_prob
        for executor in (None, pool):
            target = Target.from_numpy(function, 2, vectorized=False, executor=executor)
            if executor is not None:
                killer = threading.Timer(1.0, os.kill, (victim, signal.SIGKILL))
                killer.start()
            small = {"steps": 30, "batch": 32, "pool_size": 128}
            sampler = salmc.fit(target, settings=small, seed=0, progress=False)
            draws.append(sampler.sample(chains=4, draws=50, progress=False))
        killer.join()
        if made_pool is not _dask:  # which replaces the worker by itself
            assert made[1].executor is not pool  # it was noticed
        if made_pool is _processes:
            made[1].executor.shutdown()
    assert made[0].count == made[1].count > 1000
    np.testing.assert_array_equal(draws[0].positions, draws[1].positions)
