"""Shapes and types in annotations are checked at run time in every test.

Compiled programs are kept from run to run, in the same folder as those of the `salmc` command:
tests are mostly compilation.
"""

import pytest
from jaxtyping import install_import_hook

# Before any import of salmc: only modules loaded after this are checked.
install_import_hook(["salmc", "salmc_paper"], "beartype.beartype")

from salmc.programs_on_disk import remember_programs  # noqa: E402

remember_programs()


@pytest.fixture(autouse=True, scope="module")
def _few_compiled_programs():
    """Forget compiled programs before a worker has so many that the next one aborts it."""
    yield
    from salmc.programs import make_room

    make_room(share=0.25)
