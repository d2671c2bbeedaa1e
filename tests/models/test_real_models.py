"""Models that people have: densities and variables are the library's own, in every one of them.

`test_against_nuts` samples the same models, for minutes each; this takes seconds for each of them.
"""

import jax.numpy as jnp
import numpy as np
import pytest

import salmc

numpyro = pytest.importorskip("numpyro")
pymc = pytest.importorskip("pymc")

import numpyro_models  # noqa: E402
import pymc_models  # noqa: E402
from numpyro.infer.util import constrain_fn, potential_energy, unconstrain_fn  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
NAMES = ("schools", "regression", "simplex_and_correlation", "mixture", "gaussian_process")
POINTS = 3


@pytest.mark.parametrize("name", NAMES)
def test_of_pymc(name):
    import pytensor

    model = getattr(pymc_models, name)()
    with pytensor.config.change_flags(cxx="", mode="FAST_COMPILE"):
        target = salmc.from_pymc(model)
        logp, initial = model.compile_logp(), model.initial_point()
        assert not any("__" in coordinate for coordinate in target.names)
        for x in 0.5 * np.random.default_rng(0).normal(size=(POINTS, target.dim)).astype("f4"):
            point, done = {}, 0
            for key in sorted(initial):
                part = x[done : done + np.size(initial[key])]
                point[key] = part.reshape(np.shape(initial[key])).astype(float)
                done += len(part)
            found = float(target.log_density(jnp.asarray(x)))
            assert found == pytest.approx(float(logp(point)), rel=1e-4)
        values = target.constrain(jnp.asarray(x))
        assert {variable.name for variable in model.free_RVs} <= set(values)
        assert np.all(np.isfinite(target.gradients(jnp.asarray(x)[None])))


@pytest.mark.parametrize("name", NAMES)
def test_of_numpyro(name):
    model = getattr(numpyro_models, name)
    target = salmc.from_numpyro(model)
    for x in 0.5 * np.random.default_rng(0).normal(size=(POINTS, target.dim)).astype("f4"):
        values = target.constrain(jnp.asarray(x))
        free = unconstrain_fn(model, (), {}, values)
        expected = -float(potential_energy(model, (), {}, free))
        assert float(target.log_density(jnp.asarray(x))) == pytest.approx(expected, rel=1e-4)
        again = constrain_fn(model, (), {}, free)
        for site in again:
            np.testing.assert_allclose(values[site], again[site], rtol=1e-4, atol=1e-5)
    assert np.all(np.isfinite(target.gradients(jnp.asarray(x)[None])))
