"""One step of AG-SVGD and SVGD at 5,000, 10,000 and 20,000 particles in 10 dimensions.

Each runs in a process of its own, so that peak memory is its own. Wanted: 20,000 within 3 GB, and
cost that grows no faster than the square of the number of particles.
"""

import json
import resource
import sys
from typing import Any

from salmc_paper.harness.jobs import Context, Job
from salmc_paper.harness.processes import measured_apart


def jobs() -> list[Job]:
    """One for each method and number."""
    return [
        Job(
            "many_particles",
            f"{method}, {count} particles",
            {"method": method, "particles": count},
            _run,
            entry=(method, str(count)),
        )
        for method in ("ag-svgd", "svgd")
        for count in (5000, 10000, 20000)
    ]


def _run(context: Context) -> dict[str, Any]:
    return measured_apart(__name__, context["method"], str(context["particles"]))


def measure(method: str, count: int) -> dict[str, Any]:
    """A step after one that compiles, and the peak memory of this process."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp

    import salmc
    from salmc_paper.harness.timing import take_turns

    target = salmc.Target(lambda x: -0.5 * jnp.sum(x**2), dim=10)
    mover = salmc.movers.MOVERS[method](target)
    key = jax.random.key(0)
    step = eqx.filter_jit(mover.step)
    state = mover.init(key, 1.6 * jax.random.normal(key, (count, 10)))
    timed = take_turns({method: lambda: step(key, state)}, turns=1)[method]
    moved, _ = timed.results[0]
    return {
        "seconds": timed.best,
        "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
        "finite": bool(jnp.all(jnp.isfinite(moved.particles))),
    }


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
