"""Whatever is given, no traceback reaches a user: arguments of the command and of Python.

Types in annotations are checked in tests, so that values here are of the types that are asked for;
where anything is allowed, anything is given.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

import salmc
from command import call
from salmc.errors import SalmcError

FEW = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
ANYTHING = some.one_of(
    some.none(),
    some.booleans(),
    some.integers(-3, 3),
    some.integers(),
    some.floats(),
    some.text(max_size=5),
    some.lists(some.integers(-1, 1), max_size=3),
    some.dictionaries(some.text(max_size=3), some.integers(), max_size=2),
)
WORD = some.one_of(some.text(max_size=12), some.integers().map(str), some.floats().map(str))
OPTIONS = [
    *("--method", "--steps", "--seed", "--set", "--kernel", "--mover", "--chains", "--draws"),
    *(
        "--particles",
        "--start",
        "--keep",
        "--tries",
        "--target",
        "--out",
        "--methods",
        "--nonsense",
    ),
]


def is_told(result):
    """An exit code that means something, and sentences in place of a traceback."""
    told = result.stdout + result.stderr
    assert result.exit_code in (0, 2), told
    assert "Traceback" not in told
    assert "Unexpected" not in told
    if result.exception is not None:
        assert isinstance(result.exception, SystemExit)


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@FEW
@given(
    some.sampled_from(["run", "sample", "compare", "show", "images", "targets", "methods"]),
    WORD,
    some.lists(some.tuples(some.sampled_from(OPTIONS), WORD), min_size=1, max_size=3),
)
def test_words_on_the_command_line(command, first, pairs):
    # A target of any other name cannot be found, so that nothing long is ever begun.
    is_told(call(command, f"no-{first}", *(word for pair in pairs for word in pair)))


@FEW
@given(some.text(max_size=20))
def test_settings_on_the_command_line(text):
    is_told(call("run", "mog2", "--method", "sgld", "--steps", "0", "--set", text))


@pytest.fixture(scope="module")
def sampler():
    kernel = salmc.kernels.FlowKernel(
        jax.random.key(0), 2, layers=1, width=4, knots=4, radial_knots=4
    )
    target = salmc.Target(lambda x: -0.5 * jnp.sum(x**2), dim=2)
    return salmc.Sampler(kernel, target, salmc.kernels.Whitening.identity(2), np.zeros((4, 2)))


@FEW
@given(
    some.sampled_from(["chains", "draws", "seed", "tries"]),
    some.integers(-5, 3),
    ANYTHING,
)
def test_arguments_of_sample(sampler, name, value, start):
    options = {"chains": 2, "draws": 2, "start": start, name: value}
    try:
        draws = sampler.sample(progress=False, **options)
    except SalmcError:
        return  # a sentence
    else:
        assert np.all(np.isfinite(draws.positions))


@FEW
@given(some.text(max_size=8), some.text(max_size=8), some.integers(), some.integers(), ANYTHING)
def test_arguments_of_fit(method, kernel, steps, seed, samples):
    """With no target nothing can be learned: whatever else is given, the answer is a sentence."""
    with pytest.raises(SalmcError):
        salmc.fit(None, method=method, kernel=kernel, steps=steps, seed=seed, samples=samples)
    with pytest.raises(SalmcError):
        salmc.fit(None, method="al-mc", samples=samples, steps=steps, seed=seed)


@FEW
@given(some.sampled_from(["mean", "std", "bounds", "start"]), ANYTHING)
def test_arguments_of_target(name, value):
    try:
        salmc.Target(lambda x: -jnp.sum(x**2), **{"dim": 2, name: value})
    except SalmcError:
        return  # a sentence
