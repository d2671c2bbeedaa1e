"""What tests of answers share."""

import pytest

from salmc.progress import SilentReporter


class StepsLeft(SilentReporter):
    """How many are left to do."""

    def start(self, description, total):
        self.left = total

    def advance(self, steps, **figures):
        self.left -= steps


@pytest.fixture(scope="module")
def reporter():
    return StepsLeft()
