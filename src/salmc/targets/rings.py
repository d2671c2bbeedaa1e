"""Densities on the plane that live on one ring or several.

    p(x) ∝ exp(−U(r)),   r = |x|,   U(r) = minᵢ ((r − aᵢ) / w)²

with radii a₁ < … < a_k and width w. The radius has density ∝ r exp(−U(r)), and the angle is
uniform. Half way between two radii the nearest ring changes, at bᵢ = (aᵢ + aᵢ₊₁)/2, b₀ = 0,
b_k = ∞. On the cell of ring i, with t = (r − aᵢ)/w, all integrals are closed:

    ∫ rᵐ exp(−U) dr = w ∫ (aᵢ + w t)ᵐ e^(−t²) dt,
    J₀ = ∫ e^(−t²) dt = √π/2 · [erf t],   J₁ = −½ [e^(−t²)],
    Jₙ = (n − 1)/2 · Jₙ₋₂ − ½ [tⁿ⁻¹ e^(−t²)].

Exact draws: a ring by its weight, then the radius by bisection of its distribution function,
which ends at the precision of the numbers themselves, then an angle.

Ring (a = 2, w² = 0.16) and Ring5 (a = 1…5, w² = 0.04) are those of Song, Zhao and Ermon,
"A-NICE-MC: Adversarial Training for MCMC", 2017.
"""

import math
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from salmc import checks
from salmc.target import AbstractTarget, Moments, Point, Points, Scalar

# e^(−5.5²) ≈ 7e-14: what lies beyond weighs less than the rounding of single precision.
_REACH = 5.5
# Each bisection halves a bracket of at most 11 widths; 32 of them pass single precision.
_BISECTIONS = 32


class Rings(AbstractTarget):
    """Rings of one width around the origin of the plane.

    With several rings the judged quantity is the radius: a chain can run around one ring quickly
    and still never cross to the next, which its coordinates would hide.

    Args:
        radii: radius of each ring, increasing.
        width: w in U(r) = minᵢ ((r − aᵢ)/w)².
        name: what tables and folders call it.
    """

    radii: Float[Array, " rings"]
    width: Float[Array, ""]
    dim: int = eqx.field(static=True)
    name: str = eqx.field(static=True)

    can_sample = True

    def __init__(self, radii: Sequence[float], width: float, *, name: str = "rings"):
        array = np.asarray(checks.real("radii", radii, above=0.0), dtype=float)
        if array.ndim != 1 or np.any(np.diff(array) <= 0):
            checks.fail("radii", "a list of increasing radii", radii)
        self.radii = jnp.asarray(array)
        self.width = jnp.asarray(checks.real("width", width, above=0.0), dtype=float)
        self.dim = 2
        self.name = name

    def log_density(self, x: Point) -> Scalar:
        # The gradient of |x| is not defined at 0; the floor makes it zero there, not NaN.
        radius = jnp.sqrt(jnp.maximum(jnp.sum(x**2), 1e-30))
        return -jnp.min(((radius - self.radii) / self.width) ** 2)

    def sample(self, key: PRNGKeyArray, n: int) -> Points:
        ring_key, radius_key, angle_key = jax.random.split(key, 3)
        ring = jax.random.categorical(ring_key, jnp.log(self._masses()), shape=(n,))
        radius = self._radius_at(jax.random.uniform(radius_key, (n,)), ring)
        angle = jax.random.uniform(angle_key, (n,), maxval=2 * math.pi)
        return radius[:, None] * jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=1)

    @property
    def mean(self) -> Point:
        return jnp.zeros(2)

    @property
    def std(self) -> Point:
        """E[x₁²] = E[x₂²] = E[r²]/2."""
        variance = jnp.sum(self._cell_integrals(3)) / jnp.sum(self._masses()) / 2
        return jnp.full((2,), jnp.sqrt(variance))

    def statistic(self, points: Points) -> Float[Array, "n k"]:
        return points if self._is_one_ring else _radius(points)[:, None]

    @property
    def statistic_moments(self) -> Moments:
        if self._is_one_ring:
            return Moments(self.mean, self.std)
        total = jnp.sum(self._masses())
        mean = jnp.sum(self._cell_integrals(2)) / total
        variance = jnp.sum(self._cell_integrals(3)) / total - mean**2
        return Moments(mean[None], jnp.sqrt(variance)[None])

    @property
    def component_weights(self) -> Float[Array, " modes"] | None:
        if self._is_one_ring:
            return None
        return self._masses() / jnp.sum(self._masses())

    def component(self, points: Points) -> Int[Array, " n"]:
        if self._is_one_ring:
            return super().component(points)
        distances = jnp.abs(_radius(points)[:, None] - self.radii)
        return jnp.argmin(distances, axis=1)

    @property
    def _is_one_ring(self) -> bool:
        return self.radii.shape[0] == 1

    def _cell(self) -> tuple[Float[Array, " rings"], Float[Array, " rings"]]:
        """Each ring's range of t; beyond `_REACH` widths there is nothing."""
        between = (self.radii[:-1] + self.radii[1:]) / 2
        inner = jnp.concatenate([jnp.zeros(1), between])
        low = jnp.maximum((inner - self.radii) / self.width, -_REACH)
        high = jnp.append((between - self.radii[:-1]) / self.width, _REACH)
        return low, jnp.minimum(high, _REACH)

    def _cell_integrals(self, power: int) -> Float[Array, " rings"]:
        """∫ rᵐ exp(−U) dr over the cell of each ring, by the binomial theorem."""
        low, high = self._cell()
        basis = _gaussian_integrals(low, high, power)
        terms = [
            math.comb(power, n) * self.radii ** (power - n) * self.width**n * basis[n]
            for n in range(power + 1)
        ]
        return self.width * sum(terms[1:], start=terms[0])

    def _masses(self) -> Float[Array, " rings"]:
        """Unnormalised probability of each ring: the radius has density ∝ r exp(−U)."""
        return self._cell_integrals(1)

    def _radius_at(self, level: Float[Array, " n"], ring: Int[Array, " n"]) -> Float[Array, " n"]:
        """The radius below which a share `level` of the mass of `ring` lies."""
        low, high = (bound[ring] for bound in self._cell())
        radii = self.radii[ring]

        def mass_below(t: Float[Array, " n"]) -> Float[Array, " n"]:
            basis = _gaussian_integrals(low, t, 1)
            return radii * basis[0] + self.width * basis[1]

        wanted = level * mass_below(high)

        def halve(_: Array, bracket: tuple[Array, Array]) -> tuple[Array, Array]:
            left, right = bracket
            middle = (left + right) / 2
            is_below = mass_below(middle) < wanted
            return jnp.where(is_below, middle, left), jnp.where(is_below, right, middle)

        left, right = jax.lax.fori_loop(0, _BISECTIONS, halve, (low, high))
        return radii + self.width * (left + right) / 2


def Ring() -> Rings:  # noqa: N802, named as the target it makes
    """One ring of radius 2: U = (r − 2)²/0.16."""
    return Rings([2.0], 0.4, name="ring")


def Ring5() -> Rings:  # noqa: N802, named as the target it makes
    """Five rings of radii 1 to 5: U = minᵢ (r − i)²/0.04."""
    return Rings([1.0, 2.0, 3.0, 4.0, 5.0], 0.2, name="ring5")


def _radius(points: Points) -> Float[Array, " n"]:
    return jnp.linalg.norm(points, axis=1)


def _gaussian_integrals(
    low: Float[Array, " n"], high: Float[Array, " n"], power: int
) -> list[Float[Array, " n"]]:
    """Jₙ = ∫ tⁿ e^(−t²) dt from `low` to `high`, for n = 0 … `power`."""
    at_low, at_high = jnp.exp(-(low**2)), jnp.exp(-(high**2))
    integrals = [
        math.sqrt(math.pi) / 2 * (jax.lax.erf(high) - jax.lax.erf(low)),
        (at_low - at_high) / 2,
    ]
    for n in range(2, power + 1):
        edge = low ** (n - 1) * at_low - high ** (n - 1) * at_high
        integrals.append((n - 1) / 2 * integrals[n - 2] + edge / 2)
    return integrals[: power + 1]
