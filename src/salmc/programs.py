"""Compiled programs of this process: salmc's own, room for more, and what it means when one fails.
And how many threads the linear algebra beside them may have.

Every program that JAX compiles takes a few memory mappings, of which Linux gives a process 65,530.
After some fifty trainings in one process the next compilation would fail, or end the process. So
salmc forgets its own old programs in time, and never those of the user.
"""

import contextlib
import gc
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from threadpoolctl import threadpool_limits

from salmc.errors import TargetError

_USUAL_LIMIT = 65_530
_OURS: list[Any] = []
"""Every compiled function of the library."""

Function = TypeVar("Function", bound=Callable[..., Any])

RUNTIME_ERRORS = (jax.errors.JaxRuntimeError, ValueError)
"""What a compiled program raises when a callback into the user's code fails: from the second call
on a plain ValueError, which `failure` tells from others."""

one_thread = threadpool_limits.wrap(limits=1, user_api="blas")
"""Decorates what searches, learns and judges: NumPy's and SciPy's linear algebra has one thread as
long as it runs. Here matrices have tens of rows and are many. Threads that wait for the next one
spin, and where other work wants the processor each product waits for a turn of all of them: 24
climbs in 26 dimensions took 23.7 CPU seconds on a busy machine of two cores, and 3.9 on one."""


def on_device(values: Any) -> jax.Array:
    """Numbers as an array of JAX, of the precision that it computes in.

    Of NumPy's double precision `jnp.asarray(values, dtype=float)` makes the same, by a program that
    it compiles for each shape.
    """
    if not isinstance(values, jax.Array):
        with np.errstate(over="ignore"):  # what is too large for single precision is infinite
            values = np.asarray(values, dtype=jax.dtypes.canonicalize_dtype(float))
    return jnp.asarray(values, dtype=float)


def compiled(function: Function) -> Function:
    """`eqx.filter_jit`, for functions whose programs `make_room` may forget."""
    program: Any = eqx.filter_jit(function)
    _OURS.append(program)
    return program


def make_room(share: float = 0.6) -> bool:
    """Forget salmc's compiled programs if all programs have taken this share of the mappings.

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
    for program in _OURS:
        program._cached.clear_cache()
    gc.collect()
    return True


def failure(error: Exception) -> str:
    """Why a compiled program failed: the user's own message, without the traceback.

    Raises:
        The error itself, if it is not one of a compiled program.
    """
    if not isinstance(error, jax.errors.JaxRuntimeError) and not str(error).startswith("INTERNAL"):
        raise error
    if _is_interruption(error):
        return "interrupted in the middle of an evaluation."
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    return re.sub(r"^(salmc\.errors\.)?(Target|Output)Error: ", "", lines[-1])


def nothing_left(sentence: str, error: Exception) -> BaseException:
    """What to raise where a program failed before there was anything to keep: Ctrl-C inside the
    user's own code is Ctrl-C, and no fault of the target."""
    return KeyboardInterrupt() if _is_interruption(error) else TargetError(sentence)


@contextlib.contextmanager
def target_failures() -> Iterator[None]:
    """The user's own code fails in one sentence, from the very first call.

    Raises:
        TargetError: in place of what a compiled program raises.
    """
    try:
        yield
    except RUNTIME_ERRORS as error:
        raise nothing_left(f"The target failed: {failure(error)}", error) from error


def _is_interruption(error: Exception) -> bool:
    """A compiled program passes on what its callbacks raise as text alone."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return bool(lines) and lines[-1].partition(":")[0] == "KeyboardInterrupt"


def _limit() -> int:
    try:
        return int(Path("/proc/sys/vm/max_map_count").read_text())
    except (OSError, ValueError):
        return _USUAL_LIMIT
