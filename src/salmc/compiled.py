"""Compiled programs, and room for more of them.

Every program that JAX compiles takes a few memory mappings, of which Linux gives a process 65,530.
After some fifty trainings in one process the next compilation would fail, or end the process.
"""

import gc
from pathlib import Path

import jax

_USUAL_LIMIT = 65_530


def make_room(share: float = 0.6) -> bool:
    """Forget all compiled programs if they have taken this share of the mappings.

    What is needed again is compiled again. Does nothing on systems that do not tell.

    Returns:
        Whether programs were forgotten.
    """
    try:
        taken = Path("/proc/self/maps").read_bytes().count(b"\n")
    except OSError:
        return False
    if taken < share * _limit():
        return False
    jax.clear_caches()
    gc.collect()
    return True


def _limit() -> int:
    try:
        return int(Path("/proc/sys/vm/max_map_count").read_text())
    except (OSError, ValueError):
        return _USUAL_LIMIT
