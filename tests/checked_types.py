"""Shapes and types are checked once for each combination of them that a function meets.

jaxtyping's hook checks every call, binds its arguments anew for that, and makes a checker for every
inner function each time that it is defined: a tenth of all tests. Types of values that have been
found right before are so again. A call is checked whenever the types of its arguments or of what it
returns are new to the function, and always where they cannot be told apart.
"""

import functools
import inspect
import types
from typing import Any

import jax
import jaxtyping
import numpy as np

_every_call = jaxtyping.jaxtyped
_BY_VALUE = (int, str, type(None), bool)  # for Literal, and for shapes that name an argument
_CONTAINERS = (list, dict, set, frozenset)
_IS_ARRAY: dict[type, bool] = {}
_KNOWN: dict[types.CodeType, set] = {}


def install() -> None:
    """Before the hook decorates anything."""
    jaxtyping.jaxtyped = _jaxtyped


def _jaxtyped(*, typechecker: Any) -> Any:
    def decorated(given: Any) -> Any:
        if not isinstance(given, types.FunctionType):
            return _every_call(given, typechecker=typechecker)
        annotations = given.__annotations__
        if not annotations:
            return given
        # Of what is inside of a tree its type tells nothing.
        if "PyTree" in str(annotations):
            return _every_call(given, typechecker=typechecker)
        return _checked_once(given, typechecker)

    return decorated


def _checked_once(function: types.FunctionType, typechecker: Any) -> Any:
    known = _KNOWN.setdefault(function.__code__, set())
    checkers: list = []

    def check(result: Any, arguments: tuple, named: dict) -> None:
        if not checkers:
            checkers.append(_checker(function, typechecker))
        checkers[0](result, arguments, named)

    @functools.wraps(function)
    def once(*arguments: Any, **named: Any) -> Any:
        __tracebackhide__ = True
        try:
            given = tuple([_mark(value) for value in arguments])
            if named:
                given += tuple([(name, _mark(value)) for name, value in named.items()])
            new = given not in known
        except TypeError:
            new, given = True, None
        if new:
            check(_NOTHING, arguments, named)
        result = function(*arguments, **named)
        try:
            both = (given, "gives", _mark(result))
            if given is not None and both in known:
                return result
        except TypeError:
            both = None
        check(result, arguments, named)
        if given is not None and both is not None:
            known.update((given, both))
        return result

    return once


_NOTHING = object()


def _checker(function: types.FunctionType, typechecker: Any) -> Any:
    """check(result, arguments, named): raises what jaxtyping does, without calling the function."""
    results: list = []
    signature = inspect.signature(function)

    def returned(*_: Any, **__: Any) -> Any:
        return results[-1]

    def stand_in(as_if: inspect.Signature) -> Any:
        # With the names that annotations in quotes are looked up in.
        there = (function.__globals__, function.__name__, None, returned.__closure__)
        made: Any = types.FunctionType(returned.__code__, *there)
        functools.update_wrapper(made, function).__signature__ = as_if
        return _every_call(made, typechecker=typechecker)

    before = stand_in(signature.replace(return_annotation=inspect.Signature.empty))
    after = stand_in(signature)

    def check(result: Any, arguments: tuple, named: dict) -> None:
        __tracebackhide__ = True
        results.append(result)
        try:
            (before if result is _NOTHING else after)(*arguments, **named)
        finally:
            results.pop()

    return check


def _mark(value: Any) -> Any:
    """Hashable; what has the same mark passes the same checks. TypeError where none is known."""
    kind = type(value)
    if kind in _BY_VALUE:
        return kind, value
    if kind is tuple:
        return tuple([_mark(part) for part in value])
    if kind in _CONTAINERS:
        raise TypeError
    if kind not in _IS_ARRAY:
        _IS_ARRAY[kind] = isinstance(value, (np.ndarray, np.generic, jax.Array))
    return (kind, value.shape, value.dtype) if _IS_ARRAY[kind] else kind
