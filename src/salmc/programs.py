"""Compiled programs of this process: salmc's own, room for more, and what it means when one fails.
And how many threads the linear algebra beside them may have.

Every program that JAX compiles takes a few memory mappings, of which Linux gives a process 65,530.
After some fifty trainings in one process the next compilation would fail, or end the process. So
salmc forgets its own old programs in time, and never those of the user.

Most of a first answer is compilation (decision 0030). So on a CPU salmc's programs are compiled
with less effort than XLA's own, which takes half the time and costs next to nothing when they run;
but for chains, which run for long. What `XLA_FLAGS` says of it holds.
"""

import contextlib
import functools
import gc
import os
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
_LESS_EFFORT = {"xla_backend_optimization_level": 1, "xla_cpu_use_fusion_emitters": False}
"""On a CPU, for what is compiled once and does not run for long."""

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


class Program:
    """A function that is compiled for each kind of arguments when it meets them first.

    `eqx.filter_jit`, but what to compile it for is asked when it is called: not when it is defined,
    as importing salmc must not choose JAX's devices.

    Args:
        function: what to compile.
        options: of the compiler, on a CPU.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.function, self.options = function, options
        functools.update_wrapper(self, function)

    @functools.cached_property
    def jitted(self) -> Any:
        options = _known_options(tuple(self.options.items()))
        jit: Any = eqx.filter_jit  # its type does not tell that it hands options on
        return jit(self.function, **({"compiler_options": options} if options else {}))

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        # Inside of another program it is part of that one, which was told how to be compiled.
        leaves = jax.tree.leaves((arguments, named))
        if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
            return self.function(*arguments, **named)
        return self.jitted(*arguments, **named)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def lower(self, *arguments: Any, **named: Any) -> Any:
        return self.jitted.lower(*arguments, **named)

    def forget(self) -> None:
        """What was compiled so far."""
        if "jitted" in self.__dict__:
            self.jitted._cached.clear_cache()

    @property
    def kinds(self) -> int:
        """Of arguments, that it is compiled for at present."""
        return self.jitted._cached._cache_size()


_OURS: list[Program] = []
"""Every compiled function of the library."""


def compiled(function: Function) -> Function:
    """A function of the library as a `Program`, which `make_room` may forget."""
    return _registered(function, _LESS_EFFORT)


def compiled_to_run_long(function: Function) -> Function:
    """The same, with all the effort that XLA can make."""
    return _registered(function, {})


def _registered(function: Function, options: dict[str, Any]) -> Function:
    program: Any = Program(function, options)
    _OURS.append(program)
    return program


@functools.cache
def _known_options(options: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    """Those of some options that suit the devices, that `XLA_FLAGS` leaves open and that this
    version of XLA knows."""
    if not options or jax.default_backend() != "cpu":
        return {}
    told, known = os.environ.get("XLA_FLAGS", ""), {}
    for name, value in options:
        if name in told:
            continue
        with contextlib.suppress(jax.errors.JaxRuntimeError):
            jax.jit(lambda x: x, compiler_options={name: value}).lower(0.0).compile()
            known[name] = value
    return known


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
        program.forget()
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
