"""Shapes and types in annotations are checked at run time in every test.

Tests are mostly compilation, of programs that then run for milliseconds. So programs are compiled
with little effort, in a fifth of the time, unless XLA_FLAGS says how; `make test-all` compiles as
users do. And they are kept from run to run, in the same folder as those of the `salmc` command.

Files that take long are begun first, so that no worker ends with one of them while others idle:
`LONGEST_FIRST`, tests and examples, by CPU seconds, which need not be exact.
"""

import gc
import importlib
import importlib.metadata
import os

# NumPy and JAX look at these when they are loaded.
# Which line of ours each operation came from: nobody reads it here, and it takes time to write.
os.environ.setdefault("JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "0")
# Threads of linear algebra spin while they wait, and workers have a processor each.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from jaxtyping import install_import_hook

import checked_types

collect_ignore_glob = ["conftest.py", "*/conftest.py", "*/*/conftest.py"]
"""Of doctests, for which each of these would be a module of one and the same name."""

LONGEST_FIRST = (
    "honesty/test_made_results",
    "learning/test_training",
    "contracts/test_mover_contract",
    "cli/test_cli_train",
    "movers/test_ag_svgd",
    "kernels/test_flow",
    "learning/test_fit",
    "test_architecture",
    "sampling/test_transitions",
    "images/test_train",
    "diagnostics/test_summary",
    "learning/test_a_nice_mc",
    "answers/test_adaptive_mixture",
    "test_programs_on_disk",
    "sampling/test_local_steps",
    "learning/fit",
    "learning/sal_mc",
    "learning/a_nice_mc",
    "report/test_pictures",
    "contracts/test_target_contract",
    "contracts/test_kernel_contract",
    "request/test_sample",
    "test_bounds",
    "learning/test_engine",
    "cli/test_cli_run",
    "sampling/test_no_hang",
    "learning/test_checkpoint",
    "cli/test_cli_nothing_lost",
)

LITTLE_EFFORT = "--xla_backend_optimization_level=0"
# XLA ends the process at a flag that it does not know; this one it may drop.
if importlib.metadata.version("jaxlib").startswith("0.10."):
    LITTLE_EFFORT += " --xla_cpu_use_fusion_emitters=false"
    # Parts of a program that threads compile side by side; workers have a processor each.
    LITTLE_EFFORT += " --xla_cpu_parallel_codegen_split_count=1"
os.environ.setdefault("XLA_FLAGS", LITTLE_EFFORT)

# While one of our modules is loaded, jaxtyping's hook looks for another kind of bytecode, also of
# what that module imports: all of SciPy would be compiled in every worker. So they come first.
for other in ("jax", "equinox", "optax", "scipy.stats", "blackjax", "matplotlib.pyplot", "typer"):
    importlib.import_module(other)

# Before any import of salmc: only modules loaded after this are checked.
checked_types.install()
install_import_hook("salmc", "beartype.beartype")

from salmc.programs_on_disk import remember_programs  # noqa: E402

if folder := remember_programs():  # processes that tests start share them, too
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(folder))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")

# Tracing makes objects by the million, few of them garbage: with Python's own 700 a look after
# them would be a twentieth of the time.
gc.set_threshold(50_000, 20, 20)


def pytest_collection_modifyitems(items):
    order = {
        f"{folder}/{name}.py": number
        for number, name in enumerate(LONGEST_FIRST)
        for folder in ("tests", "src/salmc")
    }
    items.sort(key=lambda item: order.get(item.nodeid.partition("::")[0], len(order)))


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


@pytest.fixture
def given_pool(monkeypatch):
    """given_pool(points): a training that this test begins has a pool of these points, in the
    coordinates that it learns in. For tests that ask nothing of how pools are filled."""

    def give(points):
        import jax.numpy as jnp

        from salmc.learning.pool import Pool

        def given(target, key, size, mover, **options):
            chosen = jnp.asarray(points[:size], dtype=float)
            assert len(chosen) == size
            return Pool(chosen, target.log_densities(chosen), chosen, {}, ())

        monkeypatch.setattr("salmc.learning.learner.fill_pool", given)

    return give


@pytest.fixture(autouse=True, scope="module")
def _little_to_look_after():
    """What a file leaves behind is taken out of the garbage collector's sight, and compiled
    programs are forgotten before a worker has so many that the next one aborts it.

    JAX keeps what was traced: millions of objects, and a look through all of them takes seconds.
    """
    yield
    import jax

    from salmc.programs import make_room

    if make_room(share=0.55):  # before the library itself would, at 0.6
        gc.unfreeze()
        jax.clear_caches()  # the tests' own programs, too
    gc.collect()
    gc.freeze()
