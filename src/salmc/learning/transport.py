"""The W₂ term of eq. 8: how far the kernel's outputs are from its inputs, as optimal transport.

    closed      γ Σ_ij c_ij exp(−c_ij/λ),  c_ij = |x'_i − x̃_j|²              eq. 11 of the paper
    sinkhorn    the debiased entropic transport cost between the two clouds, by OTT-JAX

Both are per coordinate (c/d), so that one weight α serves every dimension. In the closed form
γ = 1/M² and λ is the mean of c, taken as a constant.
"""

from typing import Any

import jax
import jax.numpy as jnp

from salmc.errors import SalmcError
from salmc.target import Points, Scalar

_REGULARISATION = 0.05
"""ε of the entropic problem, in units of the mean cost."""

_ITERATIONS = 200


def wasserstein(form: str, new: Points, old: Points) -> Scalar:
    """W₂² between outputs and inputs, in the chosen form."""
    return closed_form(new, old) if form == "closed" else sinkhorn(new, old)


def closed_form(new: Points, old: Points) -> Scalar:
    """γ Σ_ij c_ij exp(−c_ij/λ), eq. 11 of the paper."""
    squares = jnp.sum(new**2, axis=1)[:, None] + jnp.sum(old**2, axis=1)
    cost = jnp.maximum(squares - 2.0 * new @ old.T, 0.0) / new.shape[1]
    scale = jax.lax.stop_gradient(jnp.mean(cost))
    # Two clouds at one and the same point have cost 0, not 0/0.
    return jnp.mean(cost * jnp.exp(-cost / jnp.where(scale > 0.0, scale, 1.0)))


def sinkhorn(new: Points, old: Points) -> Scalar:
    """The Sinkhorn divergence S_ε = OT_ε(x', x̃) − ½ OT_ε(x', x') − ½ OT_ε(x̃, x̃).

    It is 0 for equal clouds, and exactly |a|² between a cloud and itself moved by a.
    """
    pointcloud, divergence = _ott()
    mean_cost = jax.lax.stop_gradient(
        jnp.sum(jnp.var(new, axis=0) + jnp.var(old, axis=0))
        + jnp.sum((jnp.mean(new, axis=0) - jnp.mean(old, axis=0)) ** 2)
    )
    epsilon = _REGULARISATION * jnp.maximum(mean_cost, jnp.finfo(new.dtype).tiny)
    cost, _ = divergence(
        pointcloud.PointCloud,
        new,
        old,
        epsilon=epsilon,
        solve_kwargs={"max_iterations": _ITERATIONS},
    )
    return cost / new.shape[1]


def require_sinkhorn() -> None:
    """Find out before long work whether OTT-JAX is there."""
    _ott()


def _ott() -> tuple[Any, Any]:
    try:
        from ott.geometry import pointcloud
        from ott.tools.sinkhorn_divergence import sinkhorn_divergence
    except ImportError as error:
        raise SalmcError(
            "The Sinkhorn form of the W₂ term needs OTT-JAX: pip install 'salmc[sinkhorn]', or "
            'use wasserstein_form="closed".'
        ) from error
    return pointcloud, sinkhorn_divergence
