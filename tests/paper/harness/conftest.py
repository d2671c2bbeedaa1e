"""An empty place for results."""

import pytest

from salmc_paper.harness.store import Store


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "jobs")
