"""Functions of PyTensor that its translation to JAX lacks, or whose derivatives end in NaN.

PyTensor takes erfcx and erfc⁻¹ from TensorFlow Probability, which few people have, though JAX has
them too: without them no truncated, censored or probit model could be translated. PyMC's log Φ(z)
chooses between log(erfcx(−z/√2)/2) − z²/2 and log(1 − erfc(z/√2)/2), and a derivative passes
through the one that was not chosen as well, where 0 · ∞ would be NaN: in single precision from
z = −5.5 on. So derivatives are finite here wherever the function has run out of numbers.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.special


@jax.custom_jvp
def erfcx(x: Any) -> Any:
    """e^{x²} erfc(x), whose derivative is 2 x erfcx(x) − 2/√π."""
    return jax.scipy.special.erfcx(x)


@erfcx.defjvp
def _erfcx_derivative(primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
    (x,), (dx,) = primals, tangents
    value = erfcx(x)
    # Far out the two terms cancel; what is left of them is a series in 1/x².
    far = x > 10.0
    square = 1 / jnp.where(far, x, 10.0) ** 2
    series = -square * (1 / 2 - square * (3 / 4 - square * 15 / 8))
    slope = 2 * jnp.where(far, series / jnp.sqrt(jnp.pi), x * value - 1 / jnp.sqrt(jnp.pi))
    return value, jnp.where(jnp.isfinite(slope), slope, 0.0) * dx


@jax.custom_jvp
def log1p(x: Any) -> Any:
    """log(1 + x)."""
    return jnp.log1p(x)


@log1p.defjvp
def _log1p_derivative(primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
    (x,), (dx,) = primals, tangents
    at_zero = x == -1.0
    return log1p(x), jnp.where(at_zero, 0.0, 1 / jnp.where(at_zero, 1.0, 1 + x)) * dx


def erfcinv(x: Any) -> Any:
    """The inverse of erfc: −Φ⁻¹(x/2)/√2."""
    return -jax.scipy.special.ndtri(x / 2) / jnp.sqrt(2.0)


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """While it lasts, PyTensor translates to these; what it did before is given back."""
    from pytensor.link.jax.dispatch import jax_funcify
    from pytensor.scalar.basic import Log1p
    from pytensor.scalar.math import Erfcinv, Erfcx

    own = {Erfcinv: erfcinv, Log1p: log1p}
    if hasattr(jax.scipy.special, "erfcx"):
        own[Erfcx] = erfcx
    before = {kind: jax_funcify.dispatch(kind) for kind in own}
    for kind, function in own.items():
        jax_funcify.register(kind, _always(function))
    try:
        yield
    finally:
        for kind, known in before.items():
            jax_funcify.register(kind, known)


def _always(function: Any) -> Any:
    """What PyTensor asks for the function of any node of a kind."""
    return lambda op, **_: function
