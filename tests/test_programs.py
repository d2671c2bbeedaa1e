"""Programs are forgotten when they take too much, only then, and only ours."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from salmc import programs
from salmc.programs import RUNTIME_ERRORS, compiled, failure, make_room, on_device


def test_programs_are_forgotten_only_when_they_take_too_much():
    ours, users = [], []

    @compiled
    def program(x):
        ours.append(None)
        return x + 1

    @jax.jit
    def of_the_user(x):
        users.append(None)
        return x + 1

    def run():
        program(jnp.ones(()))
        of_the_user(jnp.ones(()))
        return len(ours), len(users)

    assert run() == (1, 1)
    assert not make_room(share=1.0)
    assert run() == (1, 1)
    assert make_room(share=0.0)
    assert run() == (2, 1)


def test_a_system_that_does_not_tell(monkeypatch):
    def missing(path):
        raise FileNotFoundError(path)

    monkeypatch.setattr("pathlib.Path.read_bytes", missing)
    assert not make_room(share=0.0)


def test_failures_of_callbacks_are_told_in_their_own_words():
    calls = []

    def fail(x):
        calls.append(None)
        if len(calls) > 1:
            raise RuntimeError("the telescope is closed")
        return x

    program = jax.jit(lambda x: jax.pure_callback(fail, jax.ShapeDtypeStruct((), x.dtype), x))
    # What works once and fails later raises an error of another kind than what fails at once.
    jax.block_until_ready(program(jnp.ones(())))
    for _ in range(2):
        with pytest.raises(RUNTIME_ERRORS) as caught:
            jax.block_until_ready(program(jnp.ones(())))
        assert failure(caught.value) == "RuntimeError: the telescope is closed"


def test_other_errors_stay_what_they_are():
    with pytest.raises(ValueError, match="bad shape"):
        failure(ValueError("bad shape"))


def test_numbers_beyond_single_precision_are_infinite_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isinf(on_device(np.array([1e300]))[0])


def test_a_program_is_a_part_of_another_one(monkeypatch):
    """Options of the compiler are for whole programs: JAX refuses them inside of others."""
    monkeypatch.setenv("XLA_FLAGS", "")
    programs._known_options.cache_clear()
    options = {"xla_backend_optimization_level": 1, "xla_of_a_later_version": True}
    square = programs.Program(lambda x: x**2, options)
    x = jnp.arange(3.0)
    np.testing.assert_array_equal(square(x), x**2)
    assert programs._known_options(tuple(options.items())) == {"xla_backend_optimization_level": 1}
    assert square.kinds == 1
    np.testing.assert_array_equal(jax.jit(lambda x: square(x) + 1)(x), x**2 + 1)
    np.testing.assert_array_equal(jax.vmap(square)(x), x**2)
    np.testing.assert_array_equal(jax.grad(lambda x: jnp.sum(square(x)))(x), 2 * x)
    assert square.kinds == 1
    square.forget()
    assert square.kinds == 0
    programs._known_options.cache_clear()


def test_flags_that_the_user_set_hold(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=3")
    programs._known_options.cache_clear()
    assert programs._known_options((("xla_backend_optimization_level", 1),)) == {}
    programs._known_options.cache_clear()
