"""The figure that tells whether a kernel still improves. Smaller is better.

rejection     1 − mean Metropolis-Hastings acceptance, for tractable kernels on a target. It
              comes out of training itself, of weights that had not seen those points
stay          1 − E[α min{|x' − x|², 2d}] / 2d of the kernel on its pool, α the acceptance: 1 for a
              chain that stands still. 2d is the mean between independent draws; longer jumps gain
              nothing, or a chain that goes to and fro would look best
likelihood    −E log q of held-out samples, for tractable kernels on given samples
mmd           unbiased MMD² between outputs of the averaged kernel and the pool, or held-out
              samples: exp(−|x − y|²/h) with h = 2·dim·{0.05, 0.5, 5}, averaged, in whitened
              coordinates, in which the mean squared distance is 2·dim
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key, PRNGKeyArray

from salmc.kernels.base import AbstractKernel
from salmc.metropolis import normal
from salmc.programs import compiled
from salmc.target import Points, Scalar

_BANDWIDTHS = (0.05, 0.5, 5.0)
"""In units of the mean squared distance: finer than the modes of a mixture, and coarser."""

_POINTS = 1024
_TRANSITIONS = 4

TOLERANCES = {"rejection": 0.005, "stay": 0.005, "likelihood": 0.005, "mmd": 5e-4}
"""A figure must fall by more than this to count as better."""


def has_collapsed(kind: str, figure: float, best: float, dim: int) -> bool:
    """Whether a figure is so much worse than the best that training must have diverged."""
    if kind == "stay":
        # A volume-preserving kernel cannot lose the target: a worse figure is a swing of the game.
        return False
    if kind == "rejection":
        return 1.0 - figure < 0.25 * (1.0 - best)
    return figure > best + (0.3 if kind == "mmd" else 10.0 + 3.0 * dim)


@compiled
def held_out_figure(
    kernel: AbstractKernel,
    kind: str,
    inputs: Points,
    held: Float[Array, "m dim"],
    key: PRNGKeyArray,
) -> Scalar:
    """The likelihood or MMD² figure of a kernel.

    Args:
        kernel: with averaged weights.
        kind: "likelihood" or "mmd".
        inputs: where its chains are.
        held: samples that the kernel is compared with; whitened.
        key: of the kernel's noise and of the choice of points.
    """
    choose_key, noise_key = jax.random.split(key)
    # Neighbours from a random row on: no row twice, and no sorting.
    first = jax.random.randint(choose_key, (), 0, len(held))
    rows = (first + jnp.arange(min(_POINTS, len(held)))) % len(held)
    if kind == "likelihood":
        return -jnp.mean(kernel.log_densities(held[rows], held[rows[::-1]]))
    outputs = passes(kernel, inputs, jax.random.split(noise_key, _TRANSITIONS))
    return mmd_squared(outputs.reshape(-1, kernel.dim)[-_POINTS:], held[rows])


def passes(
    kernel: AbstractKernel, points: Points, keys: Key[Array, " steps"]
) -> Float[Array, "steps n dim"]:
    """Where forward passes lead, one after the other."""

    def step(points: Array, key: PRNGKeyArray) -> tuple[Array, Array]:
        points = kernel.propose(points, normal(key, (len(points), kernel.noise_dim))).points
        return points, points

    return jax.lax.scan(step, points, keys)[1]


def mmd_squared(x: Points, y: Float[Array, "m dim"]) -> Scalar:
    """Unbiased MMD², averaged over three bandwidths."""
    n, m = len(x), len(y)
    within_x = (_mean_kernel(x, x) - 1.0 / n) * n / (n - 1)
    within_y = (_mean_kernel(y, y) - 1.0 / m) * m / (m - 1)
    return within_x + within_y - 2.0 * _mean_kernel(x, y)


def _mean_kernel(x: Points, y: Float[Array, "m dim"]) -> Scalar:
    squares = jnp.sum(x**2, axis=1)[:, None] + jnp.sum(y**2, axis=1) - 2.0 * x @ y.T
    scaled = -jnp.maximum(squares, 0.0) / (2.0 * x.shape[1])
    values = [jnp.mean(jnp.exp(scaled / bandwidth)) for bandwidth in _BANDWIDTHS]
    return sum(values, jnp.zeros(())) / len(values)
