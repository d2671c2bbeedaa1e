"""`salmc.sample` as the README shows it."""

import time

from benchmarks.peers.problem import Answer, Problem


def run(problem: Problem) -> Answer:
    """Draws by one call."""
    import jax.numpy as jnp

    import salmc

    density = problem.density
    bounds = None if density.bounds is None else [density.bounds] * density.dim
    if density.black_box:
        target = salmc.Target.from_numpy(problem.log_density, density.dim, bounds=bounds)
    else:
        target = salmc.Target(lambda x: density.log_density(x, jnp), density.dim, bounds=bounds)
    began = time.process_time()
    draws = salmc.sample(target, problem.effective, seed=problem.seed, progress=False)
    whole = time.process_time() - began
    # Search and learning do not grow with the draws. The library tells their wall time apart,
    # whose share of the call is taken for their share of the CPU time.
    searched = draws.settings["search_seconds"]
    share = searched / (searched + draws.seconds + draws.compile_seconds)
    compiled = draws.compile_seconds / (searched + draws.seconds + draws.compile_seconds)
    counted = draws.settings.get("evaluations") or {}
    return Answer(
        draws.positions,
        None,
        began + (share + compiled) * whole,
        problem.evaluations or counted.get("points"),
        counted.get("gradients"),
        {
            "method": draws.method,
            "search_seconds": searched,
            "draw_seconds": draws.seconds,
            "compile_of_chains_seconds": draws.compile_seconds,
            "warnings": list(draws.warnings),
        },
    )
