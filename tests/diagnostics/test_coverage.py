"""Coverage sees what R-hat cannot: a mode that the warm-up found and no draw visits."""

import jax
import numpy as np
import pytest

from salmc.diagnostics import missed_share
from salmc.targets import Mog2, Mog6, Mog10, Ring


@pytest.mark.parametrize("target", [Mog6(), Ring(), Mog10()], ids=lambda target: target.name)
def test_exact_draws_miss_nothing(target):
    seen, draws = (np.asarray(target.sample(jax.random.key(i), 2000)) for i in range(2))
    assert missed_share(seen, draws) < 0.005


def test_a_missing_mode_is_seen_at_its_weight():
    """Half of Mog2, with a binomial error of √(¼/1000) = 0.016; a sixth of Mog6, 0.012."""
    seen, draws = (np.asarray(Mog2().sample(jax.random.key(i), 4000)) for i in range(2))
    assert missed_share(seen, draws[draws[:, 0] > 0]) == pytest.approx(0.5, abs=0.06)
    seen, draws = (np.asarray(Mog6().sample(jax.random.key(i), 4000)) for i in range(2))
    kept = np.asarray(Mog6().component(jax.numpy.asarray(draws))) != 2
    assert missed_share(seen, draws[kept]) == pytest.approx(1 / 6, abs=0.05)


def test_a_collapsed_sample_misses_almost_everything():
    seen = np.asarray(Ring().sample(jax.random.key(0), 2000))
    draws = np.tile(seen[:1], (2000, 1)) + 1e-3 * np.random.default_rng(0).normal(size=(2000, 2))
    assert missed_share(seen, draws) > 0.9


def test_too_few_points_say_nothing():
    assert missed_share(np.zeros((6, 2)), np.ones((6, 2))) == 0.0
