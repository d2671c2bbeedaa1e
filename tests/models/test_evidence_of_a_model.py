"""Evidence of a model by what `sample` ended in, beside its integral."""

import model_data as data
import numpy as np
import pytest
from scipy.special import logsumexp

import salmc

pytest.importorskip("numpyro")
import numpyro_models


def exact():
    """log ∫ p(μ) p(τ) Π N(y_i; μ, τ² + σ_i²) dμ dτ: effects are integrated out by hand.

    μ on a grid of steps of a hundredth of its sd, τ at 4000 quantiles of its half-Cauchy prior.
    """
    mu = np.linspace(-40.0, 40.0, 1601)[:, None]
    level = (np.arange(4000) + 0.5) / 4000
    tau = 5.0 * np.tan(0.5 * np.pi * level)
    values = -0.5 * (mu / 5.0) ** 2 - np.log(5.0 * np.sqrt(2.0 * np.pi)) + np.zeros((1, len(tau)))
    for y, sigma in zip(data.EFFECT, data.SIGMA, strict=True):
        variance = tau**2 + sigma**2
        values = values - 0.5 * (y - mu) ** 2 / variance - 0.5 * np.log(2.0 * np.pi * variance)
    return logsumexp(values) + np.log(mu[1, 0] - mu[0, 0]) - np.log(len(tau))


@pytest.mark.slow
def test_centred_schools_along_the_gradient():
    """Within four of its own standard errors, which are small."""
    draws = salmc.sample(salmc.from_numpyro(numpyro_models.schools), effective=2000, progress=False)
    assert draws.method == "gradient"
    found = draws.log_evidence()
    assert found.trustworthy
    assert found.standard_error < 0.02
    assert abs(found.value - exact()) < 4 * found.standard_error
