"""PyMC's models with functions, options and data that PyTensor, or a copy, has no way for."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

import salmc
from salmc.models import pytensor_functions

pymc = pytest.importorskip("pymc")
pytestmark = [
    pytest.mark.usefixtures("little_effort"),
    pytest.mark.filterwarnings("ignore"),
]


@pytest.mark.parametrize("x", [-12.0, -9.0, -1.0, 0.0, 0.7, 3.0, 9.0, 11.0, 300.0, 1e4])
def test_erfcx_and_its_slope(x):
    """Against SciPy in double precision; where it is beyond single precision, the slope ends."""
    value, slope = jax.value_and_grad(pytensor_functions.erfcx)(jnp.float32(x))
    exact = scipy.special.erfcx(x)
    if exact > np.finfo(np.float32).max:
        assert (value, slope) == (np.inf, 0.0)
        return
    # The two terms of the slope cancel for large x: there by its own series.
    far = -1 / (np.sqrt(np.pi) * x**2) * (1 - 1.5 / x**2) if x > 100 else None
    expected = 2 * x * exact - 2 / np.sqrt(np.pi) if far is None else far
    assert value == pytest.approx(exact, rel=1e-5)
    assert slope == pytest.approx(expected, rel=1e-4)


def test_other_functions():
    x = jnp.array([0.01, 0.5, 1.9])
    np.testing.assert_allclose(
        pytensor_functions.erfcinv(x), scipy.special.erfcinv(np.asarray(x)), rtol=1e-5
    )
    slope = jax.vmap(jax.grad(pytensor_functions.log1p))
    np.testing.assert_allclose(slope(jnp.array([-1.0, -0.5, 1.0])), [0.0, 2.0, 0.5])


def _truncated(centre, width):
    pymc.TruncatedNormal("y", centre, width, lower=0, observed=[9.0, 10.5, 11.0])


def _censored(centre, width):
    pymc.Censored("y", pymc.Normal.dist(centre, width), lower=None, upper=11, observed=[9, 11.0])


@pytest.mark.parametrize("data", [_truncated, _censored])
@pytest.mark.parametrize("x", [(10.0, 0.0), (-3.0, 1.0), (40.0, 0.5)])
def test_truncated_and_censored_data(data, x):
    """Densities and slopes are PyMC's own, though Φ at −10 is beyond single precision."""
    with pymc.Model() as model:
        data(pymc.Normal("centre", 0, 20), pymc.HalfNormal("width", 2))
    target = salmc.from_pymc(model)
    point = dict(zip(("centre", "width_log__"), np.array(x), strict=True))
    value, slope = jax.value_and_grad(target.log_density)(jnp.array(x))
    assert float(value) == pytest.approx(float(model.compile_logp()(point)), rel=1e-5)
    np.testing.assert_allclose(slope, model.compile_dlogp()(point), rtol=1e-4, atol=1e-6)


def test_pytensors_own_translation_is_given_back():
    from pytensor.link.jax.dispatch import jax_funcify
    from pytensor.scalar.math import Erfcx

    before = jax_funcify.dispatch(Erfcx)
    with pytensor_functions.translated():
        assert jax_funcify.dispatch(Erfcx) is not before
    assert jax_funcify.dispatch(Erfcx) is before


def test_initial_values_potentials_and_missing_data(caplog, recwarn):
    with pymc.Model(coords={"day": list("abc")}) as model:
        cuts = pymc.Normal(
            "cuts",
            shape=2,
            transform=pymc.distributions.transforms.ordered,
            initval=np.array([-1.0, 1.0]),
        )
        pymc.Potential("near", -(cuts[0] ** 2))
        pymc.Normal("y", cuts[0], 1, observed=[1.0, np.nan, 2.0], dims="day")
    recwarn.clear()
    target = salmc.from_pymc(model)
    assert model.rvs_to_initial_values[model["cuts"]] is not None
    draws = salmc.Draws(np.zeros((2, 4, target.dim), "f4"), None, 1.0, target=target)
    tree = draws.to_arviz()
    assert tree.posterior.y.dims == ("chain", "draw", "day")
    assert tree.posterior.y_unobserved.shape == (2, 4, 1)
    assert tree.posterior_predictive.y_observed.shape == (2, 4, 2)
    # PyMC tells at every prediction what it samples.
    assert not caplog.records
    assert not [w for w in recwarn if "Potential" in str(w.message)]


def test_counts_that_are_missing():
    with pymc.Model() as model:
        rate = pymc.Gamma("rate", 2, 1)
        pymc.Poisson("y", rate, observed=np.ma.masked_values([1, -1, 3], -1))
    with pytest.raises(salmc.TargetError, match=r"y_unobserved.*data that are missing: leave"):
        salmc.from_pymc(model)


def test_an_operation_that_has_no_jax():
    import pytensor
    from pytensor.compile import ops

    @ops.wrap_py(itypes=[pytensor.tensor.dscalar], otypes=[pytensor.tensor.dscalar])
    def square(x):
        return x**2

    with pymc.Model() as model:
        pymc.Normal("y", square(pymc.Normal("x")), 1, observed=1.0)
    with pytest.raises(salmc.TargetError, match=r"into JAX: .*square.*Target.from_numpy"):
        salmc.from_pymc(model)
