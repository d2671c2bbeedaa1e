"""Work is what one evaluation computes: loops by their length, products by their terms."""

import jax
import jax.numpy as jnp
import pytest

from salmc.answers.work import work
from salmc.target import Target

MATRIX = jnp.ones((100, 4))


def scanned(length):
    def log_density(x):
        return jax.lax.scan(lambda y, _: (y + jnp.sum(x), None), 0.0, None, length=length)[0]

    return log_density


def chosen(x):
    return jax.lax.cond(x[0] > 0, lambda: jnp.sum(jnp.exp(x)), lambda: x[0])


@pytest.mark.parametrize(
    ("log_density", "least", "most"),
    [
        (lambda x: -0.5 * jnp.sum(x**2), 5, 15),
        (lambda x: jnp.sum(MATRIX @ x), 401, 420),
        (chosen, 5, 20),
    ],
)
def test_numbers_are_counted(log_density, least, most):
    assert least <= work(Target(log_density, 4)) <= most


def test_loops_count_by_their_length():
    assert work(Target(scanned(500), 4)) == 10 * work(Target(scanned(50), 4)) >= 1000
    assert work(Target(jax.jit(scanned(50)), 4)) == work(Target(scanned(50), 4))


def test_a_loop_of_unknown_length_is_long():
    def until(x):
        return jax.lax.while_loop(lambda y: y > 1.0, lambda y: 0.5 * y, jnp.sum(x))

    assert work(Target(until, 4)) > 100
