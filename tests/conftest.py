"""Shapes and types in annotations are checked at run time in every test."""

from pathlib import Path

import pytest
from jaxtyping import install_import_hook

# Before any import of salmc: only modules loaded after this are checked.
install_import_hook("salmc", "beartype.beartype")

_MANY_MAPPINGS = 15_000
"""Compiled programs take memory mappings, of which a Linux process may have 65,530."""


@pytest.fixture(autouse=True, scope="module")
def _few_compiled_programs():
    """Forget compiled programs before a worker has so many that the next one aborts it."""
    yield
    mappings = Path("/proc/self/maps")
    if mappings.exists() and len(mappings.read_bytes().splitlines()) > _MANY_MAPPINGS:
        import gc

        import jax

        jax.clear_caches()
        gc.collect()
