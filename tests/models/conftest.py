"""What tests of models share."""

import pytest


@pytest.fixture(scope="module")
def little_effort():
    """PyTensor's functions run a few times here: to compile them in C would take longer."""
    import pytensor

    with pytensor.config.change_flags(cxx="", mode="FAST_COMPILE"):
        yield
