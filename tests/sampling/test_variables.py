"""Draws in the user's variables: names, shapes, labels, and folders that were read again."""

import jax.numpy as jnp
import numpy as np
import pytest

import salmc
from salmc.report import scatter, trace

POSITIONS = np.random.default_rng(0).normal(size=(30, 8, 2)).astype("f4")


def target():
    found = salmc.Target(
        lambda x: -0.5 * jnp.sum(x**2),
        2,
        constrain=lambda x: {"tau": jnp.exp(x[0]), "pair": jnp.stack([x[1], -x[1]])},
    )
    return found.labelled(dims={"pair": ["side"]}, coords={"side": ["left", "right"]})


@pytest.mark.parametrize("kind", ["chains", "particles"])
def test_draws_read_without_their_target_speak_as_before(tmp_path, kind):
    burn_in = 0.5 if kind == "chains" else 0.0
    draws = salmc.Draws(POSITIONS, None, 1.0, kind, target=target(), burn_in=burn_in).evaluated()
    draws.save(tmp_path / "draws.zarr")
    again = salmc.Draws.load(tmp_path / "draws.zarr")
    assert again.target is None
    names = ("tau", "pair[left]", "pair[right]")
    assert draws.shown.names == again.shown.names == names
    first, second = (d.summary(hunt=False).evidence.coordinates for d in (draws, again))
    assert [row.name for row in second] == list(names)
    for one, other in zip(first, second, strict=True):
        assert one.mean == pytest.approx(other.mean, rel=1e-6)
    trees = [d.to_arviz() for d in (draws, again)]
    np.testing.assert_array_equal(trees[0].posterior.pair, trees[1].posterior.pair)
    assert list(trees[1].posterior.side.values) == ["left", "right"]
    assert scatter.numbers(again)[0] == names
    assert trace.figure(again) is not None


def test_coordinates_keep_their_names(tmp_path):
    plain = salmc.Target(lambda x: -0.5 * jnp.sum(x**2), 2, names=["rate", "skew"])
    draws = salmc.Draws(POSITIONS, None, 1.0, target=plain).evaluated()
    draws.save(tmp_path / "draws.zarr")
    again = salmc.Draws.load(tmp_path / "draws.zarr")
    assert draws.shown.own
    assert again.names == again.shown.names == ("rate", "skew")


def test_labels_of_the_wrong_number_are_left_out():
    wrong = target().labelled(coords={"side": ["left"]})
    draws = salmc.Draws(POSITIONS, None, 1.0, target=wrong)
    assert draws.shown.names == ("tau", "pair[0]", "pair[1]")
    assert draws.to_arviz().posterior.pair.dims == ("chain", "draw", "side")


def test_axes_without_a_name_are_called_as_each_arviz_calls_them():
    """ArviZ before 1.0 numbers an axis by its place, later ones count those without a name."""
    az = pytest.importorskip("arviz")
    if not az.__version__.startswith("0."):
        pytest.skip("ArviZ 1 takes the tree as it is")
    shape = (2, 3)
    found = salmc.Target(
        lambda x: -0.5 * jnp.sum(x**2),
        2,
        constrain=lambda x: {"table": jnp.full(shape, x[0]), "one": x, "tau": x[1]},
    ).labelled(dims={"table": ["row"]}, coords={"row": ["a", "b"]})
    posterior = salmc.Draws(POSITIONS, None, 1.0, target=found).to_inference_data().posterior
    data = {"table": np.zeros((30, 8, *shape)), "one": np.zeros((30, 8, 2))}
    own = az.from_dict(data, dims={"table": ["row"]}, coords={"row": ["a", "b"]}).posterior
    for name in data:
        assert posterior[name].dims == own[name].dims
        for axis in own[name].dims[2:]:
            assert list(posterior[axis].values) == list(own[axis].values)


def test_what_never_changes_is_not_stuck():
    fixed = salmc.Target(
        lambda x: -0.5 * jnp.sum(x**2), 2, constrain=lambda x: {"x": x, "one": jnp.ones(())}
    )
    draws = salmc.Draws(POSITIONS, None, 1.0, target=fixed).evaluated()
    assert list(draws.shown.fixed) == [False, False, True]
    assert draws.shown.moving().names == ("x[0]", "x[1]")
    rows = draws.summary(hunt=False).evidence.coordinates
    assert rows[2].rhat is None
    assert rows[0].rhat is not None
