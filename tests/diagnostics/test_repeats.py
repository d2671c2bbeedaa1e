"""Draws that come again are counted, and stays of chains are not."""

import numpy as np
import pytest

from salmc.diagnostics.trial.repeats import repeated_share


def test_repeats_are_counted_and_rejections_are_not():
    chains = np.random.default_rng(6).normal(size=(4, 200, 3)).astype(np.float32)
    assert repeated_share(chains) == 0.0
    stays = np.repeat(chains, 3, axis=1)
    assert repeated_share(stays) == 0.0
    assert repeated_share(np.concatenate([chains, chains[:1]])) == pytest.approx(0.4)
    assert repeated_share(np.tile(chains, (1, 2, 1))) == 1.0
    # Four decimals of a few thousand numbers meet by chance; eighty numbers, or halves, do not.
    many = np.random.default_rng(0).normal(size=(2, 3000, 1))
    assert repeated_share(np.round(many, 4)) == 0.0
    assert repeated_share(np.round(many, 4)[:, np.arange(3000) % 40]) > 0.3
    assert repeated_share(np.round(2.0 * many) / 2.0) > 0.9
    # Numbers this coarse meet by chance.
    assert repeated_share(np.round(chains[:, :, :1], 1).astype(np.float32) + 1e6) == 0.0


def test_a_few_returns_soon_after_are_stays_and_many_are_not():
    """Replicas that exchange their places come back to one before it has moved."""
    chains = np.random.default_rng(7).normal(size=(4, 200, 3))
    there_and_back = chains.copy()
    there_and_back[:, 12::10] = there_and_back[:, 10:-2:10]
    assert repeated_share(there_and_back) == 0.0
    to_and_fro = chains[:, np.arange(200) % 2]
    assert repeated_share(to_and_fro) == 1.0
    late = chains.copy()
    late[:, 150] = late[:, 100]
    assert repeated_share(late) == pytest.approx(2 / 200)
    in_another = chains.copy()
    in_another[1, 12] = in_another[0, 10]
    assert repeated_share(in_another) == pytest.approx(2 / 800)
