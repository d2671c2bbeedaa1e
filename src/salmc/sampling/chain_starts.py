"""Where chains begin, and the key of each: fewer chains are the first of more."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from salmc import checks
from salmc.kernels.whitening import Whitening
from salmc.programs import compiled
from salmc.sampling.chains import ChainState, Transition
from salmc.target import Points


def starting_points(
    whitening: Whitening, pool: np.ndarray, chains: int, start: Any, key: PRNGKeyArray
) -> Points:
    """Whitened: from the pool, from N(0, I), or as given; fewer are the first of more."""
    dim = pool.shape[1]
    if isinstance(start, str):
        checks.choice("start", start, ("pool", "normal"))
    # NumPy's generator has nothing to compile.
    generator = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    if isinstance(start, str) and start == "normal":
        return jnp.asarray(generator.standard_normal((chains, dim)), dtype=float)
    if start is None or isinstance(start, str):
        rounds = [generator.permutation(len(pool)) for _ in range(-(-chains // len(pool)))]
        points = jnp.asarray(pool[np.concatenate(rounds)[:chains]], dtype=float)
    else:
        points = jnp.asarray(start, dtype=float)
        if points.shape != (chains, dim):
            expectation = f"'pool', 'normal', or an array of shape ({chains}, {dim})"
            checks.fail("start", expectation, f"shape {points.shape}")
        if not np.all(np.isfinite(points)):
            checks.fail("start", "finite everywhere", "NaN or infinite entries")
    return whitening.whiten(points)


@compiled
def begin_chains(transition: Transition, points: Points) -> ChainState:
    """The state of chains at whitened points."""
    return transition.start(points)


def chain_keys(key: PRNGKeyArray, chains: int) -> Any:
    """A key for each chain, which depends on its number alone."""
    return jax.vmap(jax.random.fold_in, (None, 0))(key, jnp.arange(chains, dtype=jnp.uint32))
