"""Compiled programs: room for more of them, and what it means when one fails.

Every program that JAX compiles takes a few memory mappings, of which Linux gives a process 65,530.
After some fifty trainings in one process the next compilation would fail, or end the process.
"""

import gc
from pathlib import Path

import jax

_USUAL_LIMIT = 65_530

RUNTIME_ERRORS = (jax.errors.JaxRuntimeError, ValueError)
"""What a compiled program raises when a callback into the user's code fails: from the second call
on a plain ValueError, which `failure` tells from others."""


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


def failure(error: Exception) -> str:
    """Why a compiled program failed: the user's own message, without the traceback.

    Raises:
        The error itself, if it is not one of a compiled program.
    """
    if not isinstance(error, jax.errors.JaxRuntimeError) and not str(error).startswith("INTERNAL"):
        raise error
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


def _limit() -> int:
    try:
        return int(Path("/proc/sys/vm/max_map_count").read_text())
    except (OSError, ValueError):
        return _USUAL_LIMIT
