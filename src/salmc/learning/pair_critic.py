"""The critic of A-NICE-MC: a score of pairs of points, and its objective.

A chain whose neighbouring draws are pairs of *independent* draws of the target mixes at once, so
the critic looks at pairs. Its loss is that of a Wasserstein GAN with a gradient penalty,

    E D(real) − E D(fake) + λ E (|∇D(r̂)| − 1)²,   r̂ = ε real + (1 − ε) fake,

in which D is large on fakes, as in the authors' code; the kernel minimises E D(fake).

Reference: Gulrajani et al., "Improved training of Wasserstein GANs", 2017.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from salmc import checks
from salmc.kernels.layers import Network, network, numpy_generator
from salmc.target import Scalar

Pairs = Float[Array, "n both"]

_SMALLEST_SQUARE = 1e-12


class PairCritic(eqx.Module):
    """D(x', x): a fully connected network.

    Args:
        key: for the initial weights; not inside `jit`.
        dim: coordinates of one point.
        width: of the hidden layers. The authors have 400 in two dimensions and 800 in more, which
            cost ten times as much.
        depth: number of hidden layers.
    """

    network: Network

    def __init__(self, key: PRNGKeyArray, dim: int, *, width: int = 128, depth: int = 3):
        checks.integer("dim", dim, 1)
        checks.integer("width", width, 1)
        checks.integer("depth", depth, 1)
        sizes = [2 * dim, *[width] * depth, 1]
        self.network = network(numpy_generator(key), sizes, jax.nn.leaky_relu, last_gain=1.0)

    def __call__(self, pairs: Pairs) -> Float[Array, " n"]:
        """D at n pairs."""
        return self.network(pairs.T)[0]


def wasserstein_critic_loss(
    critic: Callable[[Pairs], Any],
    real: Pairs,
    fake: Pairs,
    mixing: Float[Array, " some"],
    weight: float,
) -> Scalar:
    """What the critic minimises.

    Args:
        critic: with the weights to differentiate.
        real, fake: as many pairs of each.
        mixing: ε for the first pairs of each; the penalty is taken on these.
        weight: λ.
    """
    count, some = len(real), len(mixing)
    scores = critic(jnp.concatenate([real, fake]))
    loss = jnp.mean(scores[:count]) - jnp.mean(scores[count:])
    if weight == 0.0:
        return loss
    between = mixing[:, None] * real[:some] + (1.0 - mixing[:, None]) * fake[:some]
    slopes = jax.grad(lambda pairs: jnp.sum(critic(pairs)))(between)
    norms = jnp.sqrt(jnp.maximum(jnp.sum(slopes**2, axis=1), _SMALLEST_SQUARE))
    return loss + weight * jnp.mean((norms - 1.0) ** 2)
