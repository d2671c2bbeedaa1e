"""Shapes and types in annotations are checked at run time in every test.

Tests are mostly compilation, of programs that then run for milliseconds. So programs are compiled
with little effort, in a fifth of the time, unless XLA_FLAGS says how; `make test-all` compiles as
users do. And they are kept from run to run, in the same folder as those of the `salmc` command.
"""

import importlib.metadata
import os

import pytest
from jaxtyping import install_import_hook

collect_ignore_glob = ["conftest.py", "*/conftest.py", "*/*/conftest.py"]
"""Of doctests, for which each of these would be a module of one and the same name."""

LITTLE_EFFORT = "--xla_backend_optimization_level=0"
# XLA ends the process at a flag that it does not know; this one it may drop.
if importlib.metadata.version("jaxlib").startswith("0.10."):
    LITTLE_EFFORT += " --xla_cpu_use_fusion_emitters=false"
os.environ.setdefault("XLA_FLAGS", LITTLE_EFFORT)

# Before any import of salmc: only modules loaded after this are checked.
install_import_hook("salmc", "beartype.beartype")

from salmc.programs_on_disk import remember_programs  # noqa: E402

remember_programs()


@pytest.fixture(autouse=True, scope="session")
def _pools_filled_once():
    """Tests of training that share target, seed and sizes share the pool that they begin from.

    A pool is a pure function of these (`tests/learning/test_pool.py` asks `fill_pool` itself), and
    filling it takes longer than the few steps that most tests train for.
    """
    import jax
    import numpy as np

    import salmc.learning.learner as learner

    filled, fill = {}, learner.fill_pool

    def remembered(target, key, size, mover, **options):
        leaves, tree = jax.tree.flatten((target, mover))
        values = tuple(np.asarray(leaf).tobytes() for leaf in leaves)
        which = (tree, values, jax.random.key_data(key).tobytes(), size, *options.values())
        if which not in filled:
            filled[which] = fill(target, key, size, mover, **options)
        return filled[which]

    learner.fill_pool = remembered
    yield
    learner.fill_pool = fill


@pytest.fixture(autouse=True, scope="module")
def _few_compiled_programs():
    """Forget compiled programs before a worker has so many that the next one aborts it."""
    yield
    import jax

    from salmc.programs import make_room

    if make_room(share=0.4):
        jax.clear_caches()  # the tests' own programs, too
