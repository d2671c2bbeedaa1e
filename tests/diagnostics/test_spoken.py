"""What the verdict says of models is said in their own variables, whatever space was sampled."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import salmc
from salmc.diagnostics.spoken import Spoken
from salmc.diagnostics.trial.brinks import Brink

GENERATOR = np.random.default_rng(0)


def draws_of(target, points):
    positions = np.asarray(points, "f4").reshape(4, -1, target.dim)
    return salmc.Draws(positions, None, 1.0, target=target).evaluated()


def spoken_of(draws):
    sample, shown = draws.sample().astype(float), draws.shown
    values = shown.flat(draws.positions.shape[1], False)
    target = draws.target.unbounded
    return Spoken.of(target, sample, draws.names, shown, values, draws.numbers_at)


@pytest.fixture(scope="module")
def two_scales():
    """log τ is near log 2 or near log 50; five numbers are shown for three coordinates."""

    def log_density(x):
        far = jnp.array([0.0, jnp.log(50.0), 0.0])
        near = jnp.array([0.0, jnp.log(2.0), 0.0])
        hills = jnp.stack([-0.5 * jnp.sum(((x - c) / 0.2) ** 2) for c in (near, far)])
        return jax.nn.logsumexp(hills)

    def constrain(x):
        share = jax.nn.softmax(jnp.array([x[0], x[2], 0.0]))
        return {"tau": jnp.exp(x[1]), "share": share, "twice": 2.0 * jnp.exp(x[1])}

    target = salmc.Target(
        log_density, 3, names=["share[0]", "tau", "share[1]"], constrain=constrain
    )
    return target.labelled(dims={"share": ["party"]}, coords={"party": ["red", "blue", "green"]})


def test_a_missing_mode_is_told_in_the_users_units(two_scales):
    points = GENERATOR.normal(size=(2000, 3)) * 0.2 + [0.0, np.log(2.0), 0.0]
    summary = draws_of(two_scales, points).summary()
    (told,) = [s for s in summary.verdict.sentences if s.startswith("A mode is missing")]
    place = dict(part.split(" = ") for part in told.split("(")[1].split(")")[0].split(", ")[:4])
    # The centre of a mode by a climb: within a tenth of its own width, e^±0.02.
    assert float(place["tau"]) == pytest.approx(50.0, rel=0.05)
    assert float(place["twice"]) == pytest.approx(100.0, rel=0.05)
    assert "x1" not in told
    kept = json.loads(json.dumps(summary.to_json()))["trial"]["hunt"]["missed"][0]["place"]
    assert list(kept) == ["tau", "share[red]", "share[blue]", "share[green]", "twice"]
    assert kept["tau"] == pytest.approx(50.0, rel=0.05)
    assert sum(kept[f"share[{name}]"] for name in ("red", "blue", "green")) == pytest.approx(1.0)


def test_coordinates_are_called_by_what_follows_them(two_scales):
    spoken = spoken_of(draws_of(two_scales, GENERATOR.normal(size=(400, 3))))
    assert spoken.coordinates == ("unconstrained share[0]", "tau", "unconstrained share[1]")
    end = spoken.end(Brink("tau", True, float(np.log(0.3)), 0, 9.0, 1e-6))
    assert (end.name, end.low) == ("tau", True)
    assert end.at == pytest.approx(0.3, rel=1e-5)
    unknown = Brink("unconstrained share[0]", True, -2.0, 0, 9.0, 1e-6)
    assert spoken.end(unknown) == unknown


def test_numbers_that_fall_as_their_coordinate_rises():
    """x < 3 is sampled as y = log(3 − x): the lower end of y is the upper one of x."""
    target = salmc.Target(lambda x: x[0], 1, bounds=[(None, 3.0)], names=["age"])
    spoken = spoken_of(draws_of(target, 3.0 - GENERATOR.exponential(size=(400, 1))))
    assert spoken.coordinates == ("−age",)
    end = spoken.end(Brink("−age", True, float(np.log(0.5)), 0, 9.0, 1e-6))
    assert (end.name, end.low) == ("age", False)
    assert end.at == pytest.approx(2.5, rel=1e-5)


def test_an_end_that_comes_too_early_is_told_in_the_users_units():
    """τ ~ half-normal, by its logarithm; draws below 0.5 are left out."""
    target = salmc.Target(
        lambda x: -0.5 * jnp.exp(2 * x[0]) + x[0] - 0.5 * x[1] ** 2,
        2,
        names=["tau", "mu"],
        constrain=lambda x: {"mu": x[1], "tau": jnp.exp(x[0])},
    )
    tau = np.abs(GENERATOR.normal(size=(8000,)))
    tau = tau[tau > 0.5][:4000]
    points = np.stack([np.log(tau), GENERATOR.normal(size=4000)], axis=1)
    (told,) = [
        sentence
        for sentence in draws_of(target, points).summary(hunt=False).verdict.sentences
        if "end too early" in sentence
    ]
    assert told.startswith("Draws of tau end too early: of those near its lower end")
    assert float(told.split(" belong below ")[1].split(",")[0]) == pytest.approx(0.5, abs=0.01)


def test_of_many_numbers_those_are_told_that_differ():
    target = salmc.Target(lambda x: -0.5 * jnp.sum(x**2), 7)
    spoken = spoken_of(draws_of(target, GENERATOR.normal(size=(400, 7))))
    told = spoken.place(np.array([0.1, 0, 0, 9, 0, 8, 7.0]))
    assert told == "(x0 = 0.1, x3 = 9, x5 = 8, x6 = 7, …)"
