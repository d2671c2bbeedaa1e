"""Checks of arguments, met once at the door.

Every message has the same form: "The `chains` argument must be … . Got … instead."
Inside `jit` a value may be a tracer, which has no value to check: those pass.
"""

import math
from typing import Any, NoReturn

import jax
import numpy as np

from salmc.errors import ArgumentError


def fail(name: str, expectation: str, given: Any) -> NoReturn:
    """Raise the one form of message for a bad argument."""
    raise ArgumentError(f"The `{name}` argument must be {expectation}. Got {given!r} instead.")


def integer(name: str, value: Any, minimum: int) -> int:
    """A whole number of at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < minimum:
        fail(name, f"a whole number of at least {minimum}", value)
    return int(value)


def real(
    name: str,
    value: Any,
    *,
    above: float = -math.inf,
    at_least: float = -math.inf,
    at_most: float = math.inf,
) -> Any:
    """A finite number in a range; arrays pass if all their entries do, tracers always."""
    if isinstance(value, jax.core.Tracer):
        return value
    bounds = [f"above {above:g}"] if above > -math.inf else []
    bounds += [f"at least {at_least:g}"] if at_least > -math.inf else []
    bounds += [f"at most {at_most:g}"] if at_most < math.inf else []
    expectation = "a finite number" + (f" {' and '.join(bounds)}" if bounds else "")
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        fail(name, expectation, value)
    inside = np.isfinite(array) & (array > above) & (array >= at_least) & (array <= at_most)
    if isinstance(value, (bool, str)) or array.size == 0 or not np.all(inside):
        fail(name, expectation, value)
    return value


def choice(name: str, value: Any, options: tuple[str, ...]) -> str:
    """One of a few words."""
    if value not in options:
        fail(name, "one of " + ", ".join(repr(option) for option in options), value)
    return str(value)


def array(name: str, value: Any) -> Any:
    """Anything that is an array of numbers; tracers pass."""
    if isinstance(value, jax.core.Tracer):
        return value
    try:
        return np.asarray(value, dtype=float) if not hasattr(value, "dtype") else value
    except (TypeError, ValueError, OverflowError):
        fail(name, "an array of numbers", value)
