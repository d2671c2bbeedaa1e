import jax
import pytest

from salmc.errors import ArgumentError
from salmc.kernels import FlowKernel, MLPKernel
from salmc.learning import LearningSettings, default_settings, nice_settings, sal_mc


def test_unknown_names_are_errors():
    with pytest.raises(ArgumentError, match="Did you mean `learning_rate`"):
        LearningSettings().replace(learning_rat=1.0)


@pytest.mark.parametrize(
    "options",
    [
        {"adversarial": -1.0},
        {"adversarial_form": "hinge"},
        {"steps": 0},
        {"learning_rate": 0.0},
        {"refresh": 1.5},
        {"average": 1.0},
        {"batch": 2},
        {"adversarial": 0.0},
        {"penalty": float("nan")},
    ],
)
def test_bad_values_are_errors(options):
    with pytest.raises(ArgumentError):
        LearningSettings(**options)


def test_defaults():
    flow, mlp = default_settings("flow", 2), default_settings("mlp", 2)
    assert (flow.likelihood, flow.regression, flow.adversarial) == (1.0, 1.0, 0.0)
    assert (flow.batch, default_settings("flow", 5).batch) == (512, 256)
    assert (mlp.adversarial_form, mlp.decorrelation) == ("relativistic", 0.3)


def test_a_generator_that_begins_at_the_pool_trains_gently_and_others_as_long_as_they_need():
    near, far = (MLPKernel(jax.random.key(0), 2, components=count) for count in (4, 0))
    assert default_settings(near, 2) == default_settings("mlp", 2) == default_settings(MLPKernel, 2)
    assert default_settings(near, 2).learning_rate < default_settings(far, 2).learning_rate
    assert default_settings(near, 2).steps < default_settings(far, 2).steps


@pytest.mark.parametrize(
    ("defaults", "times"), [(lambda dim: default_settings("nice", dim), 2**0.5), (nice_settings, 2)]
)
def test_velocities_weigh_more_in_higher_dimensions(defaults, times):
    """The loss has the mean over coordinates, acceptance falls with their sum."""
    assert defaults(50).velocity == pytest.approx(times * defaults(25).velocity)
    assert defaults(25).velocity > defaults(2).velocity > 0


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (MLPKernel, {"likelihood": 1.0}, "known proposal density"),
        (MLPKernel, {"exact_refresh": True}, "known proposal density"),
        (FlowKernel, {"pool_size": 1000, "batch": 300}, "a multiple of `batch`"),
    ],
)
def test_settings_must_fit_the_kernel(two_modes, make, options, message):
    kernel = make(jax.random.key(0), 2)
    with pytest.raises(ArgumentError, match=message):
        sal_mc(two_modes, kernel, settings=LearningSettings(**options), progress=False)
