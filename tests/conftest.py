"""Shapes and types in annotations are checked at run time in every test."""

import pytest
from jaxtyping import install_import_hook

# Before any import of salmc: only modules loaded after this are checked.
install_import_hook("salmc", "beartype.beartype")


@pytest.fixture(autouse=True, scope="module")
def _few_compiled_programs():
    """Forget compiled programs before a worker has so many that the next one aborts it."""
    yield
    from salmc.compiled import make_room

    make_room(share=0.25)
