"""Targets of trees: parameters by name, bounds by name, variables of the user's own."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import salmc
from salmc.errors import ArgumentError
from salmc.target import Target

EXAMPLE = {"bias": 0, "weights": np.zeros((2, 2))}


class TestFromPytree:
    @staticmethod
    def log_density(tree):
        return -(tree["bias"] ** 2) - jnp.sum(tree["weights"] @ jnp.array([1.0, 10.0]))

    def test_order_names_and_values(self):
        target = Target.from_pytree(self.log_density, EXAMPLE, name="tree")
        assert target.dim == 5
        assert target.names[0] == "bias"
        assert target.names[2] == "weights[0, 1]"
        x = jnp.arange(1.0, 6.0)
        tree = target.constrain(x)
        assert tree["weights"].tolist() == [[2.0, 3.0], [4.0, 5.0]]
        assert float(target.log_density(x)) == -(1 + 32 + 54)

    def test_under_jit_vmap_and_grad(self):
        target = Target.from_pytree(self.log_density, EXAMPLE)
        points = jnp.stack([jnp.arange(1.0, 6.0), jnp.zeros(5)])
        values = jax.jit(target.log_densities)(points)
        assert values.tolist() == [-87.0, 0.0]
        gradient = jax.jit(target.gradients)(points)[0]
        assert gradient.tolist() == [-2.0, -1.0, -10.0, -1.0, -10.0]
        trees = jax.vmap(target.constrain)(points)
        assert trees["weights"].shape == (2, 2, 2)

    def test_a_bare_array_and_nesting(self):
        assert Target.from_pytree(jnp.sum, jnp.zeros(2)).names == ("x[0]", "x[1]")
        nested = Target.from_pytree(lambda t: t["a"]["b"][0], {"a": {"b": [1.0, 2.0]}})
        assert nested.names == ("a.b.0", "a.b.1")

    @pytest.mark.parametrize("taken", ["dim", "names"])
    def test_what_follows_from_the_example_cannot_be_given(self, taken):
        with pytest.raises(ArgumentError, match=f"`{taken}` argument must be left out"):
            Target.from_pytree(self.log_density, EXAMPLE, **{taken: None})

    @pytest.mark.parametrize("example", [{}, {"a": np.zeros((0, 2))}, {"a": "text"}])
    def test_examples_without_numbers(self, example):
        with pytest.raises(ArgumentError, match="`example` argument must be a tree"):
            Target.from_pytree(self.log_density, example)


class TestVariablesOfTrees:
    """`from_pytree` with bounds by name and variables of the user's own."""

    def _target(self, **options):
        return Target.from_pytree(
            lambda tree: -0.5 * jnp.sum(tree["mu"] ** 2) - tree["tau"],
            {"mu": np.zeros(2), "tau": 1.0},
            **options,
        )

    def test_bounds_by_name(self):
        target = self._target(bounds={"tau": (0, None)})
        assert target.names == ("mu[0]", "mu[1]", "tau")
        assert target.log_density(jnp.array([0.0, 0.0, -1.0])) == -jnp.inf
        inner = target.unbounded
        # x = eʸ at y = 0: log p = −1, and the Jacobian of the map is 1.
        assert float(inner.log_density(jnp.zeros(3))) == pytest.approx(-1.0)

    def test_bounds_of_no_leaf(self):
        with pytest.raises(ArgumentError, match=r"of leaves of `example`: mu, tau"):
            self._target(bounds={"sigma": (0, 1)})

    def test_variables_of_the_users_own(self):
        target = self._target(
            bounds={"tau": (0, None)},
            constrain=lambda tree: {"tau": tree["tau"], "theta": tree["mu"] * tree["tau"]},
        )
        positions = np.random.default_rng(0).uniform(1, 2, size=(2, 6, 3))
        draws = salmc.Draws(positions, None, 1.0, target=target)
        assert draws.shown.names == ("tau", "theta[0]", "theta[1]")
        assert not draws.shown.own
        np.testing.assert_allclose(
            draws.variables.values["theta"], positions[..., :2] * positions[..., 2:], rtol=1e-6
        )

    def test_a_tree_as_it_is_shows_the_coordinates(self):
        positions = np.random.default_rng(0).uniform(1, 2, size=(2, 6, 3)).astype("f4")
        draws = salmc.Draws(positions, None, 1.0, target=self._target())
        assert draws.shown.own
        assert draws.shown.names == ("mu[0]", "mu[1]", "tau")

    def test_variables_that_are_no_function(self):
        with pytest.raises(ArgumentError, match="`constrain` argument must be a function"):
            self._target(constrain=3)
