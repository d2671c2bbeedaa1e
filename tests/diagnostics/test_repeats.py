"""Draws that come again are counted, and stays of chains are not."""

import numpy as np
import pytest

from salmc.diagnostics.trial.repeats import atom, repeated_share


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


def test_numbers_that_were_clipped_are_seen():
    """Three in a thousand beyond π, set to π."""
    chains = np.random.default_rng(8).normal(size=(8, 750, 3)).astype(np.float32)
    chains[..., 1] = np.minimum(chains[..., 1], 2.6)
    found = atom(chains)
    assert found.coordinate == 1
    assert found.value == pytest.approx(2.6)
    assert 0.002 < found.share < 0.01
    assert "exactly 2.6" in found.sentences()[0]


def test_no_atoms_are_made_of_stays_grids_and_copies():
    generator = np.random.default_rng(9)
    chains = generator.normal(size=(8, 750, 3)).astype(np.float32)
    assert atom(chains) is None
    for places in (1, 2, 3):
        assert atom(np.round(chains, places)) is None
    # One coordinate is moved at a time, and seldom.
    gibbs = chains.copy()
    for t in range(1, 750):
        kept = generator.random((8, 3)) < 0.9
        gibbs[:, t] = np.where(kept, gibbs[:, t - 1], gibbs[:, t])
    assert atom(gibbs) is None
    # Whole draws that come again are told as copies.
    assert atom(generator.normal(size=(50, 3))[generator.integers(50, size=(8, 750))]) is None
    assert atom(np.zeros((8, 750, 1))) is None
