"""Every picture is drawn for every kind of draws it applies to, and none can cost the run."""

import jax
import jax.numpy as jnp
import matplotlib
import numpy as np
import pytest
from matplotlib.image import imread

from salmc.report import (
    autocorrelation,
    comparison,
    density_grid,
    run_pictures,
    scatter,
    style,
    trace,
)
from salmc.report.discrepancy import discrepancy_path
from salmc.sampling.draws import Draws
from salmc.target import Target


def normal(dim, *, known=True, black_box=False):
    if black_box:
        return Target.from_numpy(lambda x: -0.5 * np.sum(x**2, axis=1), dim)
    truth = {
        "mean": np.zeros(dim),
        "std": np.ones(dim),
        "sample": lambda key, n: jax.random.normal(key, (n, dim)),
    }
    return Target(lambda x: -0.5 * jnp.sum(x**2), dim, **(truth if known else {}))


def make_draws(target, kind, chains=40, draws=30, dim=2):
    positions = np.random.default_rng(0).normal(size=(chains, draws, dim)).astype(np.float32)
    log_density = -0.5 * np.sum(positions**2, axis=-1)
    burn_in = 0.5 if kind == "chains" else 0.0
    return Draws(positions, log_density, 1.0, kind, target=target, burn_in=burn_in)


def names(folder):
    return sorted(file.name for file in folder.glob("*.png"))


@pytest.mark.parametrize(
    ("dim", "kind"), [(1, "particles"), (2, "chains"), (2, "particles"), (7, "chains")]
)
def test_all_that_apply_are_written(tmp_path, dim, kind):
    draws = make_draws(normal(dim), kind, dim=dim)
    assert run_pictures.write_pictures(draws, tmp_path) == ()
    expected = ["discrepancy.png", "draws.png", "trace.png"]
    expected += ["autocorrelation.png", "rank.png"] if kind == "chains" else []
    assert names(tmp_path) == sorted(expected)
    assert names(tmp_path / "dark") == names(tmp_path)
    for file in tmp_path.rglob("*.png"):
        pixels = imread(file)
        assert pixels.shape[0] > 300
        assert pixels[..., :3].std() > 0.01, "the picture is blank"


def test_without_a_target_what_needs_none_is_drawn(tmp_path):
    assert run_pictures.write_pictures(make_draws(None, "chains"), tmp_path) == ()
    assert names(tmp_path) == ["autocorrelation.png", "draws.png", "rank.png", "trace.png"]


@pytest.mark.parametrize(
    ("target", "label"),
    [
        (normal(2), "MMD²"),
        (normal(2, known=False), "KSD²"),
        (normal(2, black_box=True), "gradient-free KSD²"),
    ],
)
def test_the_discrepancy_that_the_target_allows(target, label):
    path = discrepancy_path(make_draws(target, "particles", chains=100))
    assert path.label == label
    # Exact draws at every step: nearly all within the floor, which is their 95 % quantile.
    assert np.mean(path.values <= path.floor) > 0.7


def test_a_far_cloud_scores_far_above_the_floor():
    draws = make_draws(normal(2), "particles", chains=100)
    path = discrepancy_path(
        Draws(draws.positions + 3, draws.log_density, 1.0, "particles", target=draws.target)
    )
    assert np.all(path.values > 10 * path.floor)


def test_odd_values_do_not_stop_the_pictures(tmp_path):
    draws = make_draws(normal(2), "particles")
    draws.log_density[:5] = -np.inf
    draws.positions[:, :, 1] = 2.0
    draws.positions[0, :, 0] = 1e20
    assert run_pictures.write_pictures(draws, tmp_path) == ()
    one = make_draws(normal(2), "particles", chains=2, draws=1)
    (tmp_path / "one").mkdir()
    assert run_pictures.write_pictures(one, tmp_path / "one") == ()
    assert names(tmp_path / "one") == ["draws.png"]


def put(monkeypatch, make):
    kind = run_pictures.PICTURES["trace"]._replace(figure=make)
    monkeypatch.setitem(run_pictures.PICTURES, "trace", kind)


def test_a_failing_picture_is_a_warning(tmp_path, monkeypatch):
    def fail(draws):
        raise RuntimeError("no ink\nand more")

    put(monkeypatch, fail)
    troubles = run_pictures.write_pictures(make_draws(normal(2), "particles"), tmp_path)
    assert troubles == ("The picture trace.png could not be drawn: no ink",)
    assert names(tmp_path) == ["discrepancy.png", "draws.png"]


def test_ctrl_c_leaves_out_the_rest(tmp_path, monkeypatch):
    def interrupt(draws):
        raise KeyboardInterrupt

    put(monkeypatch, interrupt)
    troubles = run_pictures.write_pictures(make_draws(normal(2), "particles"), tmp_path)
    assert troubles == ("Interrupted before the picture trace.png was written.",)
    assert names(tmp_path) == ["discrepancy.png", "draws.png"]


def test_a_half_written_picture_vanishes(tmp_path, monkeypatch):
    def fail(self, place, **_):
        place.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", fail)
    troubles = run_pictures.write_pictures(make_draws(None, "particles"), tmp_path)
    assert "No space left on device" in troubles[0]
    assert names(tmp_path) == []


def test_the_users_matplotlib_settings_stay(tmp_path):
    before = dict(matplotlib.rcParams)
    run_pictures.write_pictures(make_draws(None, "particles"), tmp_path)
    assert dict(matplotlib.rcParams) == before


def test_levels_hold_their_share_of_the_probability():
    x = np.linspace(-5, 5, 201)
    heights = density_grid.levels(density_grid.plane(normal(2), x, x))
    # For N(0, I) the region that holds m has the height 1 − m at its edge.
    np.testing.assert_allclose(heights, 1 - np.array(density_grid.MASSES), atol=0.01)


def test_a_density_that_is_too_dear_is_left_out(monkeypatch):
    monkeypatch.setattr(density_grid, "PATIENCE", 0.0)
    assert density_grid.plane(normal(2), np.linspace(-5, 5, 101), np.linspace(-5, 5, 101)) is None
    with style.look():
        scatter.figure(make_draws(normal(2), "particles"))


@pytest.mark.parametrize("dim", [1, 2, 4])
def test_comparison_with_a_method_that_could_not_run(tmp_path, dim):
    draws = make_draws(normal(dim), "particles", dim=dim)

    def reached(value, trustworthy):
        judged = {"mmd": {"value": value, "floor": 1e-3}, "verdict": {"trustworthy": trustworthy}}
        return comparison.Result(str(trustworthy), draws, judged)

    cannot = comparison.Result("cannot", trouble="needs a gradient")
    results = [reached(-1e-4, True), reached(0.3, False), cannot]
    with style.look():
        style.save(comparison.figure(results), tmp_path / "comparison.png")
    assert imread(tmp_path / "comparison.png").shape[1] > 600
    assert comparison.figure([cannot]) is None


def test_pictures_are_of_the_users_variables():
    """tau and its square in place of log tau; what never changes is left out."""
    target = Target(
        lambda x: -0.5 * jnp.sum(x**2),
        2,
        sample=lambda key, n: jax.random.normal(key, (n, 2)),
        constrain=lambda x: {
            "tau": jnp.exp(x[0]),
            "one": jnp.ones(()),
            "pair": jnp.stack([x[1], x[0] ** 2]),
        },
    )
    positions = np.random.default_rng(0).normal(size=(30, 40, 2)).astype("f4")
    draws = Draws(positions, None, 1.0, target=target).evaluated()
    names, sample, exact = scatter.numbers(draws)
    assert names == ("tau", "pair[0]", "pair[1]")
    assert sample.min(axis=0)[0] > 0
    assert exact.min(axis=0)[0] > 0
    for picture in (scatter.figure(draws), trace.figure(draws), autocorrelation.figure(draws)):
        labels = {axes.get_xlabel() for axes in picture.axes}
        labels |= {axes.get_ylabel() for axes in picture.axes}
        legends = [*picture.legends, *(axes.get_legend() for axes in picture.axes)]
        labels |= {text.get_text() for legend in legends if legend for text in legend.get_texts()}
        assert "tau" in labels
        assert not any(label.startswith("x0") for label in labels)
    compared = comparison.figure([comparison.Result("one", draws), comparison.Result("two", draws)])
    assert "tau" in {axes.get_xlabel() for figure in compared.subfigs for axes in figure.axes}
