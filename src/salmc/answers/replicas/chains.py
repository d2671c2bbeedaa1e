"""Replicas of many chains: what suits a target is found from the replicas themselves.

    temperatures   spread so that exchanges of all neighbours are rejected equally often
    shapes         of p_β within its modes, by gradients there (`annealing.local_shape`)
    step sizes     so that enough trajectories are accepted, at each temperature
    length         the one that takes replicas furthest for each gradient

round by round, until chains at β = 1, which began in all modes that particles came to, agree.
"""

import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from salmc.answers.replicas.annealing import Rung, adapted, length_for, local_shape
from salmc.answers.work import work
from salmc.diagnostics.chain_statistics import ess_bulk, ess_tail, rhat
from salmc.kernels.base import AbstractKernel
from salmc.kernels.layers import Whitening
from salmc.programs import compiled
from salmc.progress import AbstractReporter
from salmc.sampling.replicas import Ladder, Randomness, Rates, Replicas, move
from salmc.sampling.symmetries import Symmetries
from salmc.target import AbstractTarget, Points

_CHAINS, _BLOCK = 64, 16
_ROUNDS = (2, 2, 4, 8, 8, 16, 32, 64, 64)
"""Blocks of each round. The first ones spread temperatures, one more forgets where chains began,
and all after that tell."""

MOST_ROUNDS = len(_ROUNDS)
_SPREADING = 3
"""Rounds after which temperatures are spread anew."""

_AGREED = 1.05
"""R-hat, at which chains are taken to mix; the draws themselves are held to more."""

_REJECTED = 0.45
"""Of the exchanges of two neighbours."""

_FEWEST_RUNGS, MOST_RUNGS = 4, 40
_BETTER, _LONGEST = 1.1, 64
_MOST_WORK = 3e11
"""Numbers that all trajectories of a search may compute."""


class Found(NamedTuple):
    """What suits replicas, and where they are.

    Attributes:
        ladder: temperatures and moves.
        cloud, log_density: at β = 1, in the target's coordinates, in random order.
        rate: effective draws for each draw; 0 where chains do not mix.
    """

    ladder: Ladder
    cloud: Float[np.ndarray, "n dim"]
    log_density: Float[np.ndarray, " n"]
    rate: float


class ReplicaChains:
    """Chains with replicas beside them.

    Args:
        target: differentiable, without bounds.
        whitening: coordinates of the kernel.
        kernel: whose density is that at β = 0.
        rungs: of particles that were annealed from the kernel to the target.
        key: of all randomness.
        report: told of each round.
        symmetries: of the target, if any are known.
    """

    def __init__(
        self,
        target: AbstractTarget,
        whitening: Whitening,
        kernel: AbstractKernel,
        rungs: list[Rung],
        key: PRNGKeyArray,
        report: AbstractReporter,
        symmetries: Symmetries | None = None,
    ) -> None:
        self.symmetries = symmetries
        self.target, self.whitening, self.kernel = target, whitening, kernel
        self.key, self.report, self.blocks = key, report, 0
        cold_first = rungs[::-1]
        travelled = np.concatenate([[0.0], np.cumsum(_rejections(cold_first))])
        count = max(int(np.ceil(travelled[-1] / _REJECTED)) + 1, _FEWEST_RUNGS)
        at = np.linspace(0.0, travelled[-1], count)
        near = [cold_first[i] for i in np.abs(travelled[:, None] - at).argmin(axis=0)]
        self.betas = np.interp(at, travelled, [rung.beta for rung in cold_first])
        self.step_sizes = np.array([rung.step_size for rung in near])
        self.factors = np.stack([rung.factor for rung in near])
        self.length = length_for(float(np.median(self.step_sizes[:-1])))
        self.at = Replicas.at(jnp.asarray(np.stack([rung.points[:_CHAINS] for rung in near])))

    @property
    def ladder(self) -> Ladder:
        """As tuned so far."""
        others = np.swapaxes(np.asarray(self.at.places)[1:], 0, 1)
        return Ladder(
            jnp.asarray(self.betas, dtype=float),
            jnp.asarray(self.step_sizes, dtype=float),
            jnp.asarray(self.factors, dtype=float),
            jnp.asarray(self.length),
            jnp.asarray(others),
            self.symmetries,
        )

    def run(self) -> Found:
        """Rounds until chains agree, or all of them, or as many as the density's cost allows."""
        each = work(self.target) * len(self.betas) * _CHAINS * _BLOCK
        walks: list[list[np.ndarray]] = []
        rate, told = 0.0, 0
        for number, blocks in enumerate(_ROUNDS):
            if number > _SPREADING and (self.blocks + blocks) * each * self.length > _MOST_WORK:
                break
            points, values, rates = self.walk(blocks)
            walks = [*(walks if number > _SPREADING + 1 else []), [points, values]]
            told += 1
            if number < _SPREADING:
                self.spread(1.0 - rates.exchanged)
            elif number == _SPREADING:
                self.choose_length()
            own = np.swapaxes(self.outward(np.concatenate([one for one, _ in walks])), 0, 1)
            agreed = float(np.max(rhat(own)))
            self.report.advance(1, r_hat=agreed)
            if number > _SPREADING and agreed < _AGREED:
                found = min(np.min(ess_bulk(own)), np.min(ess_tail(own)))
                rate = float(np.nan_to_num(found)) / own[..., 0].size
                break
        self.report.advance(MOST_ROUNDS - told)
        points, values = (np.concatenate(parts) for parts in zip(*walks, strict=True))
        order = np.random.default_rng(0).permutation(values.size)
        cloud = self.outward(points).reshape(values.size, -1)
        return Found(self.ladder, cloud[order], values.reshape(-1)[order], rate)

    def walk(self, blocks: int) -> tuple[np.ndarray, np.ndarray, Rates]:
        """Places at β = 1, (step, chain, dim), and log p there; mean rates. Step sizes adapt."""
        points, values, rates = [], [], []
        for _ in range(blocks):
            key = jax.random.fold_in(self.key, self.blocks)
            parts = (self.target, self.whitening, self.kernel, self.ladder, key, self.at.places)
            self.at, (cold, log_p, told) = _walk(*parts)
            self.blocks += 1
            points.append(np.asarray(cold))
            values.append(np.asarray(log_p))
            rates.append(jax.tree.map(lambda one: np.asarray(one, np.float64), told))
            for rung, accepted in enumerate(rates[-1].moved):
                self.step_sizes[rung] = adapted(self.step_sizes[rung], float(accepted))
        mean = Rates(*(np.mean(parts, axis=0) for parts in zip(*rates, strict=True)))
        return np.concatenate(points), np.concatenate(values), mean

    def spread(self, rejected: np.ndarray) -> None:
        """Temperatures at which all exchanges are rejected equally often, and shapes for them."""
        travelled = np.concatenate([[0.0], np.cumsum(np.maximum(rejected, 1e-3))])
        at = np.linspace(0.0, travelled[-1], len(self.betas))
        self.step_sizes = np.interp(at, travelled, self.step_sizes)
        self.betas = np.interp(at, travelled, self.betas)
        near = np.abs(travelled[:, None] - at).argmin(axis=0)
        self.at = jax.tree.map(lambda one: jnp.asarray(np.asarray(one)[near]), self.at)
        slopes = zip(np.asarray(self.at.slope_p), np.asarray(self.at.slope_q), strict=True)
        for rung, (beta, known) in enumerate(zip(self.betas, slopes, strict=True)):
            self.factors[rung] = local_shape(float(beta), *known)

    def choose_length(self) -> None:
        """Longer trajectories, as long as each gradient takes replicas further."""
        best = self._travelled() / self.length
        while 2 * self.length <= _LONGEST:
            self.length *= 2
            found = self._travelled() / self.length
            if found < _BETTER * best:
                self.length //= 2
                break
            best = found

    def _travelled(self) -> float:
        """By a geometric mean: the temperature that is slowest holds up all others."""
        return float(np.exp(np.mean(np.log(self.walk(1)[2].travelled[:-1] + 1e-12))))

    def outward(self, points: np.ndarray) -> np.ndarray:
        """White points in the target's coordinates."""
        matrix = np.asarray(self.whitening.inverse_matrix, np.float64)
        return np.asarray(self.whitening.mean) + np.asarray(points, np.float64) @ matrix


def _rejections(rungs: list[Rung]) -> Float[np.ndarray, " pairs"]:
    """Of exchanges between neighbours, from particles of both."""
    found = []
    for first, second in itertools.pairwise(rungs):
        gain = (first.beta - second.beta) * (second.heights - first.heights)
        found.append(1.0 - np.mean(np.exp(np.minimum(np.nan_to_num(gain, nan=-np.inf), 0.0))))
    return np.array(found)


@compiled
def _walk(
    target: AbstractTarget,
    whitening: Whitening,
    kernel: AbstractKernel,
    ladder: Ladder,
    key: PRNGKeyArray,
    places: Float[Array, "rungs chains dim"],
) -> tuple[Replicas, tuple[Array, Array, Rates]]:
    """A block of steps: replicas after it; places and log p at β = 1 of each step; mean rates."""
    kernel = kernel.prepared()
    rungs, chains, _ = places.shape

    def log_p(points: Points) -> Array:
        return target.log_densities(whitening.colour(points))

    def step(at: Replicas, given: tuple[Array, Array]) -> tuple[Replicas, tuple[Any, ...]]:
        key, first = given
        keys = jax.random.split(key, 3)
        uniform = jax.random.uniform(keys[1], (3, rungs, chains))
        log_uniform = jnp.log1p(-uniform)
        momenta = jax.random.normal(keys[0], places.shape)
        random = Randomness(momenta, uniform[0], log_uniform[1])
        noise = jax.random.normal(keys[2], (1, chains, kernel.noise_dim))
        drawn = kernel.propose_ahead(noise)[0][0]
        at, rates = move(kernel, log_p, ladder, at, drawn, random, log_uniform[2], first)
        rates = jax.tree.map(lambda one: jnp.mean(one, axis=1), rates)
        return at, (at.places[0], at.log_p[0], rates)

    inputs = (jax.random.split(key, _BLOCK), jnp.arange(_BLOCK) == 0)
    last, (cold, values, rates) = jax.lax.scan(step, Replicas.at(places), inputs)
    return last, (cold, values, jax.tree.map(lambda one: jnp.mean(one, axis=0), rates))
