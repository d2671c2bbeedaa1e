"""The direction in which particles come to represent weighted draws evenly.

The energy distance of particles x_i and draws y_a of weights w_a, Σ_a w_a = 1,

    D² = (2/M) Σ_i Σ_a w_a |x_i − y_a| − (1/M²) Σ_ij |x_i − x_j| − Σ_ab w_a w_b |y_a − y_b|,

is zero only where both have the same distribution. It is MMD² with the kernel κ(x, y) = −|x − y|,
which has no bandwidth and reaches from mode to mode. Particle i descends along

    φ_i = (1/M) Σ_j (x_i − x_j)/|x_i − x_j| − Σ_a w_a (x_i − y_a)/|x_i − y_a|
        = (1/M) Σ_j ∇_{x_j} κ(x_i, x_j) − Σ_a w_a ∇_{y_a} κ(x_i, y_a).

The first sum is the push of SVGD. The second is its pull: where the w_a stand for p, integration
by parts turns E_p[κ ∇log p], which needs a gradient, into −E_p[∇κ], which needs none.

M particles that minimise D² integrate smooth functions with a smaller error than M independent
draws (Mak and Joseph, "Support points", 2018).
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from salmc.movers.stein import map_rows, squared_distances

_SOFT = 1e-6
"""Added to squared distances, so that coinciding points have the direction 0."""


def energy_direction(
    points: Float[Array, "m dim"], draws: Float[Array, "n dim"], weights: Float[Array, " n"]
) -> Float[Array, "m dim"]:
    """φ, at points and draws that are centred near 0 and of spread about 1."""
    evenly = jnp.full(len(points), 1.0 / len(points))
    return _mean_direction(points, points, evenly) - _mean_direction(points, draws, weights)


def _mean_direction(
    points: Float[Array, "m dim"], others: Float[Array, "n dim"], weights: Float[Array, " n"]
) -> Float[Array, "m dim"]:
    """Σ_a w_a (x_i − y_a)/|x_i − y_a|, by matrix products."""
    columns = weights[:, None] * jnp.concatenate([others, jnp.ones((len(others), 1))], axis=1)

    def directions(rows: Array) -> Array:
        products = jax.lax.rsqrt(squared_distances(rows, others) + _SOFT) @ columns
        return rows * products[:, -1:] - products[:, :-1]

    return map_rows(directions, (points,), len(others))
