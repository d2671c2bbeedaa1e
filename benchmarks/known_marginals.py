"""`sample` with its defaults on densities whose marginals are known.

Modes of many widths, bends, tails, jumps, edges that nobody told, a random walk. Eight modes in ten
dimensions, double wells and Rosenbrock's valley led to mends of the search, and sixteen wells to
replicas; nothing was chosen on the others. Each marginal is compared
with its distribution function F by Kolmogorov's distance sup |F_n − F|, which is below 1.63/√n of n
independent draws in 99 % of cases; n is the smallest effective sample size, of bulk and tails, and
the level is divided by the number of marginals. Wrong is what exceeds it.
"""

import resource
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

import salmc
from salmc.request.rounds import smallest_ess
from salmc_paper.harness.jobs import Context, Job, not_interrupted

SEEDS = range(3)
EFFECTIVE = 4000
_LEVEL = 0.01
Marginal = Callable[[np.ndarray], np.ndarray]


class Case(NamedTuple):
    """A density, and the distribution functions of some of its coordinates."""

    dim: int
    log_density: Callable[[jax.Array], jax.Array]
    marginals: dict[int, Marginal]


def _mixture(seed: int, count: int, dim: int, reach: float) -> Case:
    """Gaussians at random places, of random covariances and weights."""
    generator = np.random.default_rng(seed)
    means = generator.uniform(-reach, reach, (count, dim))
    weights = generator.dirichlet(np.full(count, 3.0))
    shapes = generator.standard_normal((count, dim, dim))
    covariances = shapes @ np.swapaxes(shapes, 1, 2) / dim + 0.1 * np.eye(dim)
    inverses = jnp.asarray(np.linalg.inv(np.linalg.cholesky(covariances)), dtype=float)
    heights = jnp.asarray(np.log(weights) - 0.5 * np.linalg.slogdet(covariances)[1], dtype=float)

    def log_density(x: jax.Array) -> jax.Array:
        noise = jnp.einsum("kij,kj->ki", inverses, x - jnp.asarray(means, dtype=float))
        return jax.nn.logsumexp(heights - 0.5 * jnp.sum(noise**2, axis=1))

    widths = np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))

    def marginal(i: int) -> Marginal:
        return lambda x: stats.norm.cdf(x[:, None], means[:, i], widths[:, i]) @ weights

    return Case(dim, log_density, {i: marginal(i) for i in range(dim)})


def _two_students() -> Case:
    """t₃ at −4 and, half as wide, at 4."""

    def student(x: jax.Array, centre: float, width: float) -> jax.Array:
        return -4.0 * jnp.log1p(jnp.sum(((x - centre) / width) ** 2) / 3.0) - 5.0 * jnp.log(width)

    def log_density(x: jax.Array) -> jax.Array:
        return jnp.logaddexp(
            jnp.log(0.35) + student(x, -4.0, 1.0), jnp.log(0.65) + student(x, 4.0, 0.5)
        )

    law = stats.t(3)
    marginal = lambda x: 0.35 * law.cdf(x + 4.0) + 0.65 * law.cdf((x - 4.0) / 0.5)  # noqa: E731
    return Case(5, log_density, dict.fromkeys(range(5), marginal))


def _narrow_in_wide() -> Case:
    """N(0, I) and N(0, 20² I), of equal weights."""
    dim = 6

    def log_density(x: jax.Array) -> jax.Array:
        squares = jnp.sum(x**2)
        return jnp.logaddexp(-0.5 * squares, -0.5 * squares / 400.0 - dim * jnp.log(20.0))

    marginal = lambda x: 0.5 * (stats.norm.cdf(x) + stats.norm.cdf(x / 20.0))  # noqa: E731
    return Case(dim, log_density, dict.fromkeys(range(dim), marginal))


def _by_grid(low: float, high: float, log_density: Callable[[np.ndarray], np.ndarray]) -> Marginal:
    """The distribution function of a density on a line."""
    grid = np.linspace(low, high, 80_001)
    values = log_density(grid)
    cumulative = np.cumsum(np.exp(values - np.max(values)))
    return lambda x: np.interp(x, grid, cumulative / cumulative[-1])


def _many_modes() -> Case:
    """A cosine under a wide Gaussian, in the plane: some hundred modes."""
    marginal = _by_grid(-40.0, 40.0, lambda x: 3.0 * np.cos(2.0 * x) - 0.5 * (x / 6.0) ** 2)
    log_density = lambda x: jnp.sum(3.0 * jnp.cos(2.0 * x) - 0.5 * (x / 6.0) ** 2)  # noqa: E731
    return Case(2, log_density, {0: marginal, 1: marginal})


def _banana() -> Case:
    """A ridge that bends, in 20 dimensions."""

    def log_density(x: jax.Array) -> jax.Array:
        bent = x[1] + 0.1 * (x[0] ** 2 - 25.0)
        return -0.5 * ((x[0] / 5.0) ** 2 + bent**2 + jnp.sum(x[2:] ** 2))

    return Case(20, log_density, {0: stats.norm(0.0, 5.0).cdf, 5: stats.norm.cdf})


def _triangle() -> Case:
    """Uniform on a triangle that nobody told, times a normal."""

    def log_density(x: jax.Array) -> jax.Array:
        inside = (x[0] > 0.0) & (x[1] > 0.0) & (x[0] + x[1] < 1.0)
        return jnp.where(inside, -0.5 * x[2] ** 2, -jnp.inf)

    side = stats.beta(1, 2).cdf
    return Case(3, log_density, {0: side, 1: side, 2: stats.norm.cdf})


def _change_point() -> Case:
    """Counts whose rate changes once: the density jumps along the time of the change."""
    generator = np.random.default_rng(5)
    counts = np.concatenate([generator.poisson(4, 35), generator.poisson(2, 25)])
    length, times = len(counts), jnp.arange(len(counts))

    def log_density(x: jax.Array) -> jax.Array:
        rates = jnp.where(times < x[2], x[0], x[1])
        value = jnp.sum(counts * rates - jnp.exp(rates)) - 0.125 * jnp.sum(x[:2] ** 2)
        return jnp.where((x[2] > 0.0) & (x[2] < length), value, -jnp.inf)

    grid = np.linspace(-4.0, 4.0, 2001)

    def evidence(part: np.ndarray) -> float:
        values = part.sum() * grid - len(part) * np.exp(grid) - 0.125 * grid**2
        return float(np.logaddexp.reduce(values))

    logs = np.array([evidence(counts[:k]) + evidence(counts[k:]) for k in range(1, length + 1)])
    shares = np.exp(logs - np.max(logs))
    cumulative = np.concatenate([[0.0], np.cumsum(shares) / np.sum(shares)])
    return Case(3, log_density, {2: lambda x: np.interp(x, np.arange(length + 1), cumulative)})


def _random_walk() -> Case:
    """A walk of 60 steps seen with noise, centred: the scale of its steps, by linear algebra."""
    generator, length = np.random.default_rng(3), 60
    steps = 0.3 * generator.standard_normal(length)
    seen = np.cumsum(steps) + 0.5 * generator.standard_normal(length)
    data = jnp.asarray(seen, dtype=float)

    def log_density(x: jax.Array) -> jax.Array:
        walk, scale = x[:length], x[length]
        spread = jnp.sum(jnp.diff(walk) ** 2) * jnp.exp(-2.0 * scale)
        prior = (scale + 1.0) ** 2 + walk[0] ** 2 / 4.0
        misfit = 4.0 * jnp.sum((data - walk) ** 2)
        return -0.5 * (misfit + spread + prior) - (length - 1) * scale

    differences, first = np.diff(np.eye(length), axis=0), np.zeros((length, length))
    first[0, 0] = 0.25
    grid, logs = np.linspace(-5.0, 2.0, 1401), []
    for scale in grid:
        precision = (
            first + differences.T @ differences * np.exp(-2.0 * scale) + 4.0 * np.eye(length)
        )
        fit = 4.0 * seen @ np.linalg.solve(precision, 4.0 * seen)
        volume = np.linalg.slogdet(precision)[1]
        logs.append(0.5 * (fit - volume - (scale + 1.0) ** 2) - (length - 1) * scale)
    shares = np.exp(np.array(logs) - np.max(logs))
    cumulative = np.cumsum(shares) / np.sum(shares)
    return Case(length + 1, log_density, {length: lambda x: np.interp(x, grid, cumulative)})


def _double_wells() -> Case:
    """Four double wells and four normals: 16 modes, the lightest of 0.3 %."""
    marginal = _by_grid(-5.0, 5.0, lambda x: -1.2 * (x**2 - 2.25) ** 2 + 0.4 * x)

    def log_density(x: jax.Array) -> jax.Array:
        wells = -1.2 * (x[:4] ** 2 - 2.25) ** 2 + 0.4 * x[:4]
        return jnp.sum(wells) - 0.5 * jnp.sum(x[4:] ** 2)

    return Case(8, log_density, {**dict.fromkeys(range(4), marginal), 5: stats.norm.cdf})


def _sixteen_wells() -> Case:
    """Sixteen double wells and sixteen normals: 65,536 modes."""
    marginal = _by_grid(-4.0, 4.0, lambda x: -(x**4) + 6.0 * x**2 + 0.5 * x - 9.0)

    def log_density(x: jax.Array) -> jax.Array:
        wells = -(x[:16] ** 4) + 6.0 * x[:16] ** 2 + 0.5 * x[:16]
        return jnp.sum(wells) - 0.5 * jnp.sum(x[16:] ** 2)

    return Case(32, log_density, {**dict.fromkeys(range(16), marginal), 20: stats.norm.cdf})


def _rosenbrock() -> Case:
    """Rosenbrock's valley with branches, after Pagani, Wiegand and Nadarajah (2019): x₁ and x₃
    follow x₀², x₂ follows x₁², x₄ follows x₃."""

    def log_density(x: jax.Array) -> jax.Array:
        valleys = (x[1] - x[0] ** 2) ** 2 + (x[3] - x[0] ** 2) ** 2 + (x[4] - x[3]) ** 2
        return -0.05 * (x[0] - 1.0) ** 2 - 5.0 * valleys - 0.1 * (x[2] - x[1] ** 2) ** 2

    first = stats.norm(1.0, np.sqrt(10.0))
    nodes = np.linspace(-18.0, 20.0, 6001)
    shares = first.pdf(nodes) / np.sum(first.pdf(nodes))
    grid = np.concatenate([np.linspace(-3.0, 3.0, 2000), np.linspace(3.01, 400.0, 6000)])
    # Of x₁: x₀² and a normal of variance 0.1.
    cumulative = [
        stats.norm.cdf(part[:, None], nodes**2, np.sqrt(0.1)) @ shares
        for part in np.array_split(grid, 20)
    ]
    square = lambda x: np.interp(x, grid, np.concatenate(cumulative))  # noqa: E731
    return Case(5, log_density, {0: first.cdf, 1: square, 3: square})


CASES: dict[str, Callable[[], Case]] = {
    "eight modes 10-d": lambda: _mixture(11, 8, 10, 8.0),
    "five modes 20-d": lambda: _mixture(5, 5, 20, 10.0),
    "two Student-t modes 5-d": _two_students,
    "narrow in wide 6-d": _narrow_in_wide,
    "some hundred modes 2-d": _many_modes,
    "banana 20-d": _banana,
    "triangle 3-d": _triangle,
    "change point 3-d": _change_point,
    "random walk 61-d": _random_walk,
    "double wells 8-d": _double_wells,
    "Rosenbrock 5-d": _rosenbrock,
    "sixteen double wells 32-d": _sixteen_wells,
    "ten modes 50-d": lambda: _mixture(7, 10, 50, 10.0),
}


def jobs() -> list[Job]:
    """Seed by seed, so that a run that is stopped has something of all."""
    return [
        Job("known_marginals", f"{name} {seed}", {"case": name, "seed": seed}, _run, seconds=60.0)
        for seed in SEEDS
        for name in CASES
    ]


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _run(context: Context) -> dict[str, Any]:
    case, seed = CASES[context["case"]](), context["seed"]
    target = salmc.Target(case.log_density, dim=case.dim)
    began = _cpu()
    draws = salmc.sample(target, effective=EFFECTIVE, seed=seed, progress=False)
    drawn = _cpu()
    not_interrupted(draws.warnings)
    verdict = draws.summary().verdict
    judged = _cpu()
    points = draws.positions.reshape(-1, case.dim).astype(np.float64)
    effective = smallest_ess(draws.positions)
    distances = [
        float(stats.kstest(marginal(points[:, i]), "uniform").statistic)
        for i, marginal in case.marginals.items()
    ]
    allowed = float(stats.kstwobign.isf(_LEVEL / len(distances)) / np.sqrt(effective))
    return {
        "distance": max(distances),
        "allowed": allowed,
        "right": max(distances) <= allowed,
        "verdict": verdict.degree,
        "method": draws.method,
        "effective": effective,
        "draws": int(points.shape[0]),
        "cpu_seconds": drawn - began,
        "verdict_cpu_seconds": judged - drawn,
    }
