"""One SVGD step at 2000 particles × 25 dimensions against BlackJAX's, in turns."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

import salmc
from salmc_paper.harness.jobs import Context, Job
from salmc_paper.harness.timing import take_turns


def jobs() -> list[Job]:
    """All contenders in one."""
    arguments = {"particles": 2000, "dim": 25, "turns": 5}
    return [Job("svgd_step", "one step of SVGD", arguments, _run, entry=())]


def _run(context: Context) -> dict[str, Any]:
    """Wanted: at least 30 times as fast."""
    import blackjax
    from blackjax.vi.svgd import rbf_kernel, update_median_heuristic

    key = jax.random.key(0)
    particles = jax.random.normal(key, (context["particles"], context["dim"]))
    target = salmc.Target(lambda x: -0.5 * jnp.sum(x**2), dim=context["dim"])
    mover = salmc.movers.SVGD(target)
    step, state = eqx.filter_jit(mover.step), mover.init(key, particles)
    peer = blackjax.svgd(
        jax.grad(target.log_density), optax.adagrad(0.1), rbf_kernel, update_median_heuristic
    )
    peer_step, peer_state = jax.jit(peer.step), peer.init(particles)
    product, matrix = jax.jit(lambda a: a @ a), jax.random.normal(key, (2000, 2000))
    timed = take_turns(
        {
            "salmc": lambda: step(key, state),
            "blackjax": lambda: peer_step(peer_state),
            "product": lambda: product(matrix),
        },
        turns=context["turns"],
    )
    ours, theirs = timed["salmc"].best, timed["blackjax"].best
    return {
        "salmc_seconds": ours,
        "blackjax_seconds": theirs,
        "times_as_fast": theirs / ours,
        "in_plain_2000_matrix_products": ours / timed["product"].best,
    }
