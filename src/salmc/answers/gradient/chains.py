"""Chains that follow the gradient: what moves them is found from the chains themselves.

Where no mixture fits a target that is differentiable, trajectories (`sampling.trajectories`) often
mix well, if their coordinates suit it. Rounds of many chains find these, one after the other:

    coordinates   funnels straight, by the density's own derivatives (`curvature`) or, for
                  bends, by what the chains show (`straightening`); then white
    step size     so that a share `_WANTED` of the moves is accepted; more where any diverge
    length        the one with most effective draws for each gradient

until chains that began far apart agree (R-hat). Chains that do not, as those of separate modes, or
a mode that a hunt finds beside them, are the end of this way: a flow is learned instead.
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from salmc.answers.gradient.coordinates import straight_coordinates
from salmc.answers.gradient.walk import BLOCK, Walk, is_rising, is_white, not_lost, walk_block
from salmc.bounds import Unbounded
from salmc.diagnostics.chain_statistics import ess_bulk, ess_tail, rhat
from salmc.kernels.layers import Whitening
from salmc.progress import AbstractReporter
from salmc.sampling.symmetries import Symmetries
from salmc.sampling.trajectories import Trajectory
from salmc.straight import Straight
from salmc.target import AbstractTarget, Points

CHAINS = 64
_ROUNDS = (3, 4, 6, 8, 16, 32, 64, 128)
"""Blocks of each round; the second half of it tells."""

MOST_ROUNDS = len(_ROUNDS)
_FEWEST_ROUNDS, _ARRIVING = 4, 2
"""Rounds in which chains may come from far away."""

_MOST_ARRIVING = 10
"""More of them at most, while log p rises."""

_LOST = 0.1
"""Share of its moves below which a chain that arrives is lost."""

_AGREED = 1.03
"""R-hat of a round, at which chains are taken to have come together."""

_APART, _NEARER = 1.3, 0.9
"""Chains whose R-hat is above the one, and above so much of what it was, stay apart."""

_WANTED, _WANTED_CAREFULLY = 0.8, 0.95
_MOST_DIVERGED = 0.002
_FIRST_LENGTH, _MOST_STEPS, _BETTER = 1.6, 512, 1.1
"""Of a trajectory, in units of white coordinates: a quarter of an orbit; and its gradients."""

_TELLING = 4
"""Effective draws of each chain, with which a length can be judged."""

_FEW_BLOCKS, _QUICK = 4, 0.1
"""Blocks that tell of a length whose effective draws are more than so many for each draw."""

_FEWEST_EACH = 4
"""Draws for each coordinate, of which a round can tell anything."""

_LARGEST = 1e15
"""Of a coordinate, beyond which covariances are lost to rounding."""


class Found(NamedTuple):
    """What moves chains well, and where they are.

    Attributes:
        target: in the coordinates that were found.
        whitening, trajectory: what moves chains there.
        cloud: draws in these coordinates, in no order.
        log_density: there.
        rate: effective draws for each draw.
        agreed: R-hat of the last round.
    """

    target: AbstractTarget
    whitening: Whitening
    trajectory: Trajectory
    cloud: Float[np.ndarray, "n dim"]
    log_density: Float[np.ndarray, " n"]
    rate: float
    agreed: float

    @property
    def mixed(self) -> bool:
        """Whether chains that began apart are in one place."""
        return self.agreed < _AGREED


@dataclasses.dataclass
class GradientChains:
    """Chains on their way.

    Attributes:
        base: the target without straightening.
        target: in the coordinates of the moment.
        whitening: of these.
        points: (chains, dim), white.
        key: of all randomness.
        report: told of each round.
        step_size, reach: ε, and how far trajectories go.
        maps: linear ones of the base under which it is the same. It is not made straight then.
    """

    base: AbstractTarget
    target: AbstractTarget
    whitening: Whitening
    points: Points
    key: PRNGKeyArray
    report: AbstractReporter
    step_size: float = 0.1
    reach: float = _FIRST_LENGTH
    wanted: float = _WANTED
    blocks: int = 0
    arriving: bool = True
    straight: Straight | None = None
    maps: Float[np.ndarray, "k dim dim"] | None = None

    @classmethod
    def begin(
        cls,
        target: AbstractTarget,
        start: Points,
        key: PRNGKeyArray,
        report: AbstractReporter,
        maps: Float[np.ndarray, "k dim dim"] | None = None,
    ) -> "GradientChains":
        """From given places, whose spread is the first unit of length."""
        width = np.std(np.asarray(start, np.float64), axis=0)
        width = np.where((width > 0.0) & np.isfinite(width), width, 1.0)
        whitening = Whitening(
            jnp.mean(start, axis=0),
            jnp.asarray(np.diag(1.0 / width), dtype=float),
            jnp.asarray(np.diag(width), dtype=float),
        )
        points = whitening.whiten(start)
        first = _first_step(target.dim)
        return cls(target, target, whitening, points, key, report, first, maps=maps)

    def run(self) -> Found:
        """Rounds until chains agree, or all of them."""
        careful, agreed, told, length = False, np.inf, 0, 0
        for number, blocks in enumerate(_ROUNDS):
            self.arriving = number < _ARRIVING
            # What was long enough to agree is long enough for other coordinates, or more care.
            if number < _FEWEST_ROUNDS or not agreed < _AGREED:
                length = max(blocks, self.fewest_blocks)
            walk = self.walk(length)
            if number + 1 == _ARRIVING:
                walk = self.arrive(walk)
            half = len(walk.points) // 2
            own = self.outward(walk.points[half:])
            if not np.all(np.abs(own) < _LARGEST):
                agreed = np.inf
                break  # a density that does not integrate leads ever further out
            before, agreed = agreed, float(np.max(rhat(np.swapaxes(own, 0, 1))))
            diverged = float(np.mean(walk.diverged[half:]))
            self.report.advance(1, r_hat=agreed)
            told += 1
            white = is_white(walk.points[half:])
            settled = number + 1 >= _FEWEST_ROUNDS and agreed < _AGREED and white
            if settled and (diverged <= _MOST_DIVERGED or careful):
                break
            if number >= _FEWEST_ROUNDS and agreed > max(_APART, _NEARER * before):
                break
            if settled or (number + 1 >= _FEWEST_ROUNDS and diverged > 10 * _MOST_DIVERGED):
                careful, self.wanted = True, _WANTED_CAREFULLY
            usable = not_lost(walk.log_density[half:])
            if np.sum(usable) < _FEWEST_EACH * self.base.dim:
                break  # nearly all are where the density is zero
            if number + 1 < len(_ROUNDS):
                # Coordinates in which nothing moves were made for another place.
                moved = float(np.mean(np.nan_to_num(walk.accepted[half:]))) > _LOST
                self.move_to(own[usable], straightens=number + 1 >= _ARRIVING and moved)
                self.step_size = self.step_size if moved else _first_step(self.base.dim)
        rate = 0.0
        if agreed < _AGREED:
            rate, walk = self.choose_length(walk)
        self.report.advance(len(_ROUNDS) - told, r_hat=agreed)
        flat = jnp.asarray(walk.points.reshape(-1, self.base.dim))
        cloud = np.asarray(self.whitening.colour(flat))
        values = np.asarray(walk.log_density).reshape(-1)
        order = np.random.default_rng(0).permutation(len(cloud))
        moves = self.target, self.whitening, self.trajectory
        return Found(*moves, cloud[order], values[order], rate, agreed)

    def arrive(self, walk: Walk) -> Walk:
        """Rounds until log p rises no more: funnels seen on the way there are not those of the
        target. Whose data are 240 ± 15 has far to go from the origin."""
        for _ in range(_MOST_ARRIVING):
            half = len(walk.points) // 2
            usable = not_lost(walk.log_density[half:])
            enough = np.sum(usable) >= _FEWEST_EACH * self.base.dim
            if not enough or not is_rising(walk.log_density[half:], self.base.dim):
                break
            self.move_to(self.outward(walk.points[half:])[usable], straightens=False)
            walk = self.walk(len(walk.points) // BLOCK)
        return walk

    @property
    def fewest_blocks(self) -> int:
        """Of a round whose second half can tell of so many coordinates."""
        return -(-2 * _FEWEST_EACH * self.base.dim // (CHAINS * BLOCK)) + 1

    @property
    def trajectory(self) -> Trajectory:
        steps = int(np.clip(round(self.reach / (0.75 * self.step_size)), 1, _MOST_STEPS))
        symmetries = None if self.maps is None else Symmetries.of(self.maps, self.whitening)
        return Trajectory.of(self.step_size, steps, symmetries)

    def walk(self, blocks: int, *, adapts: bool = True) -> Walk:
        """Blocks of steps of all chains; the step size follows the acceptance between them."""
        parts = []
        for _ in range(blocks):
            key = jax.random.fold_in(self.key, self.blocks)
            part = walk_block(self.target, self.whitening, self.trajectory, key, self.points)
            self.blocks, self.points = self.blocks + 1, part.points[-1]
            parts.append(jax.tree.map(np.asarray, part))
            taken = np.mean(np.nan_to_num(parts[-1].accepted), axis=0)
            # Chains that are lost far out do not decide for the others: in the end there are none.
            away = float(np.median(taken) if self.arriving else np.mean(taken)) - self.wanted
            if self.arriving:
                self._rescue(taken)
            if adapts:
                self.step_size *= float(np.exp(away * (2.0 if abs(away) > 0.2 else 1.0)))
        return Walk(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

    def _rescue(self, taken: np.ndarray) -> None:
        """Chains that do not move begin again where others are that do."""
        stuck = np.flatnonzero(taken < _LOST)
        well = np.flatnonzero(taken >= _LOST)
        if len(stuck) and len(well):
            others = np.random.default_rng(self.blocks).choice(well, len(stuck))
            self.points = self.points.at[stuck].set(self.points[others])

    def outward(self, points: np.ndarray) -> np.ndarray:
        """White points in the coordinates of the base. By NumPy: there is nothing to compile."""
        matrix = np.asarray(self.whitening.inverse_matrix, np.float64)
        moved = np.asarray(self.whitening.mean) + np.asarray(points, np.float64) @ matrix
        return moved if self.straight is None else self.straight.outward_points(moved)

    def move_to(self, cloud: np.ndarray, *, straightens: bool) -> None:
        """Coordinates in which a cloud of the base is straight and white."""
        last = self.outward(np.asarray(self.points))
        straightens &= self.maps is None
        self.straight = straight_coordinates(self.base, cloud) if straightens else None
        self.target = self.base
        if self.straight is not None:
            self.target = Unbounded.with_straight(self.base, self.straight)
            cloud, last = self.straight.inward(cloud), self.straight.inward(last)
        covariance = np.atleast_2d(np.cov(cloud, rowvar=False))
        self.whitening = Whitening.fit(jnp.asarray(cloud), np.diag(np.diag(covariance)))
        self.points = self.whitening.whiten(jnp.asarray(last, dtype=float))

    def choose_length(self, walk: Walk) -> tuple[float, Walk]:
        """The reach with most effective draws for each gradient; its rate, and its steps."""
        blocks = max(_FEW_BLOCKS, min(len(walk.points) // BLOCK, 16))
        tried: dict[float, tuple[float, float, Walk]] = {}

        def efficiency(reach: float) -> float:
            if reach not in tried:
                self.reach = reach
                steps = int(self.trajectory.length)
                walk = self.walk(_FEW_BLOCKS, adapts=False)
                rate = self._rate(walk)
                if rate < _QUICK and blocks > _FEW_BLOCKS:
                    walk = self.walk(blocks, adapts=False)
                    rate = self._rate(walk)
                # Chains that hardly move seem to have a draw each, cheap by short trajectories.
                tells = rate * len(walk.points) > _TELLING
                tried[reach] = rate / (steps + 1) if tells else 0.0, rate, walk
            return tried[reach][0]

        best = self.reach
        for factor in (2.0, 0.5):
            while efficiency(factor * best) > _BETTER * efficiency(best):
                best *= factor
                if len(tried) > 6:
                    break
        self.reach = best
        return tried[best][1], tried[best][2]

    def _rate(self, walk: Walk) -> float:
        """Effective draws for each draw."""
        own = np.swapaxes(self.outward(walk.points), 0, 1)
        rate = float(min(np.min(ess_bulk(own)), np.min(ess_tail(own)))) / own[..., 0].size
        return rate if np.isfinite(rate) else 0.0


def _first_step(dim: int) -> float:
    """A step size in white coordinates."""
    return float(0.3 * dim**-0.25)
