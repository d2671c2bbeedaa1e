"""One step of AG-SVGD and SVGD at 5,000, 10,000 and 20,000 particles in 10 dimensions.

Each runs in a process of its own, so that peak memory is its own. Wanted: 20,000 within 3 GB, and
cost that grows no faster than the square of the number of particles.
"""

import json
import subprocess
import sys

from benchmarks.common import record

CHILD = """
import json, resource, sys, time
import equinox as eqx, jax, jax.numpy as jnp, salmc
method, count = sys.argv[1], int(sys.argv[2])
target = salmc.Target(lambda x: -0.5 * jnp.sum(x**2), dim=10)
mover = salmc.movers.MOVERS[method](target)
key = jax.random.key(0)
start = 1.6 * jax.random.normal(key, (count, 10))
step = eqx.filter_jit(mover.step)
state, _ = jax.block_until_ready(step(key, mover.init(key, start)))
began = time.perf_counter()
state, _ = jax.block_until_ready(step(key, state))
seconds = time.perf_counter() - began
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
finite = bool(jnp.all(jnp.isfinite(state.particles)))
print(json.dumps({"seconds": seconds, "peak_gb": peak, "finite": finite}))
"""


def main() -> None:
    """Run and record."""
    result: dict[str, dict[str, object]] = {}
    for method in ("ag-svgd", "svgd"):
        result[method] = {}
        for count in (5000, 10000, 20000):
            done = subprocess.run(
                [sys.executable, "-c", CHILD, method, str(count)],
                check=True,
                capture_output=True,
                text=True,
            )
            result[method][str(count)] = json.loads(done.stdout)
    record("many_particles", result)
