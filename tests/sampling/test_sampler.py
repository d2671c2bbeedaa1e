"""What `Sampler.sample` returns, and one sentence for everything that cannot work."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from salmc.errors import ArgumentError, TargetError
from salmc.kernels.layers import Whitening
from salmc.progress import AbstractReporter
from salmc.sampling.sampler import Sampler
from salmc.target import Target
from salmc.targets import Gaussian
from simple_kernels import Autoregressive, Breaking, Implicit, Independent

TARGET = Gaussian([1.0, -2.0], [[1.0, 0.8], [0.8, 2.0]])
POOL = np.asarray(TARGET.sample(jax.random.key(0), 500))
WHITENING = Whitening.fit(jnp.asarray(POOL))
QUICK = {"chains": 8, "draws": 64, "progress": False}


def make(kernel=None, target=TARGET, **fields):
    kernel = Independent(2, scale=1.2) if kernel is None else kernel
    return Sampler(kernel, target, WHITENING, POOL, settings={"steps": 3}, **fields)


class Interrupting(AbstractReporter):
    """Presses Ctrl-C when so many draws are done."""

    def __init__(self, after):
        self.after, self.done, self.figures = after, 0, {}

    def start(self, description, total):
        pass

    def advance(self, steps, **figures):
        self.done, self.figures = self.done + steps, figures
        if self.done >= self.after:
            raise KeyboardInterrupt

    def stop(self):
        pass


def test_exact_draws_and_their_record():
    draws = make().sample(chains=16, draws=1000, seed=3, progress=False)
    assert draws.positions.shape == (16, 1000, 2)
    assert draws.kind == "chains"
    assert draws.burn_in == 0.0
    assert draws.target is TARGET
    assert draws.warnings == ()
    assert draws.seconds > 0
    assert draws.compile_seconds > 0
    assert draws.settings == {
        "chains": 16,
        "draws": 1000,
        "seed": 3,
        "metropolis": True,
        "tries": 1,
        "local": 0,
        "start": "pool",
        "kernel": "independent",
        "exact": True,
        "training": {"steps": 3},
    }
    # 16,000 draws at acceptance 0.7 are worth about 8,000: the mean is good to 0.011 sd.
    error = (draws.sample().mean(axis=0) - np.asarray(TARGET.mean)) / np.asarray(TARGET.std)
    assert np.max(np.abs(error)) < 0.05
    moved = np.any(np.diff(draws.positions, axis=1) != 0, axis=-1)
    np.testing.assert_array_equal(moved, draws.accepted[:, 1:])


def test_forward_passes_have_no_flags_and_take_every_proposal():
    draws = make(Autoregressive(2, pull=0.3)).sample(metropolis=False, **QUICK)
    assert draws.accepted is None
    assert not draws.settings["exact"]
    assert np.all(np.diff(draws.positions, axis=1) != 0)
    assert draws.log_density is None
    assert np.all(np.isfinite(draws.evaluated().log_density))


def test_exact_where_the_kernel_can_unless_asked_otherwise():
    assert make().sample(**QUICK).settings["exact"]
    assert not make().sample(metropolis=False, **QUICK).settings["metropolis"]
    for other in (make(Implicit(2)), make(target=None)):
        assert not other.sample(**QUICK).settings["metropolis"]


def test_fewer_chains_are_the_first_of_more():
    """Also where the number of groups differs: randomness belongs to a chain."""
    for kernel in (Independent(2, scale=1.2), Autoregressive(2, pull=0.5)):
        few, many = (make(kernel).sample(n, 64, progress=False) for n in (16, 64))
        np.testing.assert_array_equal(few.positions, many.positions[:16])
        some = make(kernel).sample(20, 64, progress=False)
        # Groups of another size may round in another way.
        np.testing.assert_allclose(some.positions, many.positions[:20], rtol=1e-4, atol=1e-4)


def test_seeds():
    quick = {**QUICK, "metropolis": False}
    first, again, other = (make().sample(seed=s, **quick).positions for s in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.any(first == other)


def test_starts():
    sampler = make(Autoregressive(2, pull=1.0, scale=1e-6))
    options = {"chains": 100, "draws": 1, "metropolis": False, "progress": False}
    pool = sampler.sample(**options).positions[:, 0]
    distance = np.min(np.linalg.norm(pool[:, None] - POOL[None], axis=-1), axis=1)
    assert np.max(distance) < 1e-4
    assert len(np.unique(pool, axis=0)) == 100
    given = np.linspace(-1, 1, 200).reshape(100, 2)
    np.testing.assert_allclose(
        sampler.sample(start=given, **options).positions[:, 0], given, atol=1e-4
    )
    normal = sampler.sample(start="normal", **options)
    assert normal.settings["start"] == "normal"
    spread = np.std(normal.positions[:, 0], axis=0) / POOL.std(axis=0)
    assert np.all((spread > 0.7) & (spread < 1.4))  # 4 standard errors of 100 chains


def test_more_chains_than_the_pool_has_points():
    assert make().sample(chains=700, draws=1, progress=False).positions.shape == (700, 1, 2)


def test_a_kernel_without_density_warns_that_it_is_not_exact():
    draws = make(Implicit(2)).sample(metropolis=True, **QUICK)
    assert [warning[:9] for warning in draws.warnings] == ["not exact"]
    assert not draws.settings["exact"]
    assert draws.accepted is not None


def test_proposals_that_are_not_finite_warn():
    draws = make(Breaking(2)).sample(**QUICK)
    assert len(draws.warnings) == 1
    assert "NaN or infinite" in draws.warnings[0]


def test_chains_that_never_move_warn():
    far = make(Independent(2, centre=1e4, scale=1e-3))
    draws = far.sample(chains=4, draws=128, progress=False)
    assert "4 of 4 chains never moved" in draws.warnings[0]


def test_without_a_target_there_are_draws_but_no_metropolis_step():
    sampler = make(target=None)
    draws = sampler.sample(**QUICK)
    assert np.all(np.isnan(draws.evaluated().log_density))
    assert draws.warnings == ()
    with pytest.raises(TargetError, match="pass target="):
        sampler.sample(metropolis=True, **QUICK)


def test_a_target_that_is_zero_at_the_start():
    nowhere = Target(lambda x: jnp.where(x[0] > 1e6, 0.0, -jnp.inf), 2, name="nowhere")
    with pytest.raises(TargetError, match="zero or NaN at all 8 starting points"):
        make(target=nowhere).sample(**QUICK)


def test_a_target_that_raises():
    def fail(points):
        raise RuntimeError("the telescope is closed")

    target = Target.from_numpy(fail, 2)
    with pytest.raises(TargetError, match="the telescope is closed"):
        make(target=target).sample(**QUICK)


def test_a_target_that_fails_on_the_way_costs_no_draws():
    calls = []

    def fail_later(points):
        calls.append(None)
        if len(calls) > 5:
            raise RuntimeError("the telescope is closed")
        return -0.5 * np.sum(points**2, axis=1)

    target = Target.from_numpy(fail_later, 2)
    options = {"chains": 32, "draws": 4096, "progress": False}
    draws = make(target=target).sample(**options)
    done = draws.positions.shape[1]
    assert 0 < done < 4096
    (told,) = draws.warnings
    assert told == f"The target failed after {done} draws: RuntimeError: the telescope is closed"


def test_a_black_box_is_sampled_exactly():
    target = Target.from_numpy(lambda x: -0.5 * np.sum(x**2, axis=1), 2)
    draws = make(target=target).sample(**QUICK)
    expected = -0.5 * np.sum(draws.positions**2, axis=-1)
    np.testing.assert_allclose(draws.log_density, expected, rtol=1e-4, atol=1e-4)


def test_an_interruption_keeps_what_was_done():
    report = Interrupting(after=600)
    draws = make().sample(chains=32, draws=4096, progress=report)
    assert report.done == draws.positions.shape[1] == 1024
    assert draws.warnings == ("Interrupted after 1024 of 4096 draws.",)
    assert report.figures["acceptance"] == pytest.approx(np.mean(draws.accepted))
    whole = make().sample(chains=32, draws=4096, progress=False)
    np.testing.assert_array_equal(whole.positions[:, :1024], draws.positions)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"chains": 0}, "The `chains` argument must be a whole number of at least 1"),
        ({"draws": 0}, "The `draws` argument"),
        ({"seed": -1}, "The `seed` argument"),
        ({"tries": 0}, "The `tries` argument"),
        ({"tries": 2, "metropolis": False}, "1 without a Metropolis step"),
        ({"start": "anywhere"}, "The `start` argument must be one of 'pool', 'normal'"),
        ({"start": np.zeros((3, 2))}, r"an array of shape \(8, 2\)"),
        ({"start": np.full((8, 2), np.nan)}, "finite everywhere"),
    ],
)
def test_bad_arguments(options, sentence):
    with pytest.raises(ArgumentError, match=sentence):
        make().sample(**{**QUICK, **options})


@pytest.mark.parametrize("kernel", [Autoregressive(2), Implicit(2)], ids=["state", "implicit"])
def test_several_tries_need_independent_proposals(kernel):
    with pytest.raises(ArgumentError, match="The `tries` argument must be 1 for the kernel"):
        make(kernel).sample(metropolis=True, tries=2, **QUICK)


def test_parts_that_do_not_fit():
    with pytest.raises(ArgumentError, match="of dimension 2"):
        make(target=Target(lambda x: -jnp.sum(x**2), 3))
    with pytest.raises(ArgumentError, match="The `pool` argument"):
        Sampler(Independent(3), None, WHITENING, POOL)
