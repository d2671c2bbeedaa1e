"""Chains in groups: the same numbers whoever computes them, and nothing lost when a group fails."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from salmc.kernels.layers import Whitening
from salmc.sampling.executor import Block, InTurn, Threads, group_count
from salmc.sampling.sampler import Sampler
from salmc.target import Target
from simple_kernels import Autoregressive, Breaking

START = np.random.default_rng(0).standard_normal((32, 2))
NORMAL = Target(lambda x: -0.5 * jnp.sum(x**2), 2)


def ready(kernel, target=NORMAL, chains=32, draws=64, metropolis=True, executor=None, **options):
    sampler = Sampler(kernel, target, Whitening.fit(jnp.asarray(START)), START)
    return sampler.begin(chains, draws, 1, metropolis, 1, START[:chains], executor, **options)[0]


def on_threads(run):
    return isinstance(run.executor, Threads)


@pytest.mark.parametrize(
    ("chains", "groups"),
    [(1, 1), (16, 1), (31, 1), (32, 2), (33, 1), (48, 3), (50, 2), (64, 4), (1024, 8), (37, 1)],
)
def test_groups_have_one_size_and_are_not_small(chains, groups):
    assert group_count(chains) == groups


@pytest.mark.parametrize("metropolis", [True, False])
def test_chains_are_the_same_alone_in_groups_on_threads_and_in_turn(metropolis):
    kernel = Autoregressive(2, pull=0.5, scale=0.9)
    both = ready(kernel, metropolis=metropolis)
    assert on_threads(both)
    assert both.groups == 2
    together = Block.join(list(both.blocks()))
    in_turn = ready(kernel, metropolis=metropolis, executor=InTurn())
    alone = ready(kernel, metropolis=metropolis, chains=16)
    assert alone.groups == 1
    for other, chains in ((in_turn, 32), (alone, 16)):
        expected = Block.join(list(other.blocks()))
        np.testing.assert_array_equal(together.positions[:, :chains], expected.positions)
        np.testing.assert_array_equal(together.log_density[:, :chains], expected.log_density)
        np.testing.assert_array_equal(together.accepted[:, :chains], expected.accepted)
    # Two groups with one key would make the same moves from different points.
    moves = together.positions[1:] - 0.5 * together.positions[:-1]
    assert not np.any(moves[:, :16] == moves[:, 16:])


def test_proposals_that_are_not_finite_are_counted_in_all_groups():
    chains = ready(Breaking(2), metropolis=False, draws=128)
    blocks = list(chains.blocks())
    missed = sum(int(np.sum(~block.accepted)) for block in blocks)
    assert sum(block.invalid for block in blocks) == missed > 0


def called(function):
    """A density that calls Python, though its author does not say that it has no gradient."""

    def log_density(x):
        shape = jax.ShapeDtypeStruct((), x.dtype)
        return jax.pure_callback(function, shape, x, vmap_method="broadcast_all")

    return log_density


@pytest.mark.parametrize(
    "target",
    [
        Target.from_numpy(lambda points: -0.5 * np.sum(points**2, axis=1), 2),
        Target(called(lambda x: -0.5 * np.sum(x**2, axis=-1)), 2),
    ],
    ids=["a black box", "a callback of the user's own"],
)
def test_groups_take_turns_where_python_is_called(target):
    kernel = Autoregressive(2, pull=0.5, scale=0.9)
    in_turn, at_once = ready(kernel, target), ready(kernel)
    assert not on_threads(in_turn)
    assert on_threads(at_once)
    made, expected = (Block.join(list(chains.blocks())) for chains in (in_turn, at_once))
    np.testing.assert_allclose(made.positions, expected.positions, rtol=1e-5, atol=1e-6)
    # Forward passes do not call it.
    assert on_threads(ready(kernel, target, metropolis=False))


class WithNumbers(Autoregressive):
    """Has a field that is NumPy's, which JAX would read in the precision of the thread."""

    numbers: np.ndarray

    def __init__(self):
        super().__init__(2, pull=0.5, scale=0.9)
        self.numbers = np.zeros(2)

    def propose_with_density(self, points, noise):
        new, log_q = super().propose_with_density(points, noise)
        return new + self.numbers, log_q


def test_groups_compute_in_the_precision_of_whoever_asks():
    with jax.enable_x64(True):
        target = Target(lambda x: -0.5 * jnp.sum(x**2), 2)
        chains = ready(WithNumbers(), target)
        made = Block.join(list(chains.blocks()))
    assert on_threads(chains)
    assert made.positions.dtype == np.float64
    np.testing.assert_allclose(
        made.log_density, -0.5 * np.sum(made.positions**2, axis=-1), rtol=1e-12
    )


def test_settings_for_finding_errors_hold_in_groups_too():
    kernel = Autoregressive(2, pull=0.5, scale=0.9)
    with jax.debug_nans(True):
        # JAX looks for NaN on the thread that it was asked to.
        assert not on_threads(ready(kernel))
    usual = Block.join(list(ready(kernel, draws=2).blocks()))
    with jax.disable_jit():
        slow = Block.join(list(ready(kernel, draws=2).blocks()))
    np.testing.assert_allclose(slow.positions, usual.positions, rtol=1e-4, atol=1e-5)


def test_nothing_is_compiled_once_chains_are_ready(monkeypatch):
    chains = ready(Autoregressive(2, pull=0.5, scale=0.9), chains=32, draws=33)
    compiled = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda name, seconds, **more: compiled.append(name) if "compile" in name else None
    )
    try:
        list(chains.blocks())
    finally:
        jax.monitoring.clear_event_listeners()
    assert compiled == []


def test_an_error_in_one_is_raised_and_what_came_before_it_was_given():
    def fails():
        yield 1
        raise ValueError("broken")

    items = Threads().run([iter([1, 2, 3]), fails()])
    assert next(items) == [1, 1]
    with pytest.raises(ValueError, match="broken"):
        next(items)


def test_no_thread_is_left_behind_by_those_who_stop_early():
    before = set(threading.enumerate())
    items = Threads().run([iter(range(10)), iter(range(10))])
    assert next(items) == [0, 0]
    items.close()
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
    assert set(threading.enumerate()) <= before


def test_who_stops_early_does_not_wait_for_the_rest():
    go_on, ended = threading.Event(), []

    def slow():
        yield 0
        go_on.wait(30)
        ended.append(True)

    items = Threads().run([slow(), slow()])
    assert next(items) == [0, 0]
    items.close()
    assert ended == []
    go_on.set()


def test_each_iterator_keeps_to_one_thread():
    def threads():
        for _ in range(20):
            yield threading.get_ident()

    columns = zip(*Threads().run([threads(), threads(), threads()]), strict=True)
    assert len({frozenset(column) for column in columns}) == 3
