"""The trial: everything that the density can say against draws, in one record."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from salmc.diagnostics.hunt import Hunt, hunt
from salmc.diagnostics.point_sets import Cloud, Numbers
from salmc.diagnostics.trial.balance import balance_tests
from salmc.diagnostics.trial.brinks import Brink, brinks
from salmc.diagnostics.trial.cells import in_each_mode
from salmc.diagnostics.trial.exchanges import Exchange, exchanges
from salmc.diagnostics.trial.frame import Frame, spaced
from salmc.diagnostics.trial.host import HostDensity, in_double
from salmc.diagnostics.trial.orbits import OrbitTest, asked_again, orbit_tests
from salmc.diagnostics.trial.slopes import slopes_hold
from salmc.diagnostics.trial.soundness import Soundness, soundness
from salmc.diagnostics.trial.stein import SteinTests, stein_tests
from salmc.diagnostics.trial.straightened import straight_tests
from salmc.diagnostics.trial.tails import Tails, far_out
from salmc.diagnostics.trial.whole_run import LEAST_MORE, batches_of, either, run_tests
from salmc.target import AbstractTarget

MOST_POINTS = 16_000
_STEIN_POINTS = 8000
_FEWEST = 100
_AS_GOOD = 0.8
"""Share of the draws that they must be worth to count as independent."""

_THINNING = 1.5
SURPRISING = 1e-3
"""Level of each kind of test, for all of its kind: four kinds give one false alarm in 250, and
exchanges, where there are several modes, one in 1000 more."""

_COARSE = 30.0
"""Numbers within a coordinate's width below which copies of draws do not lie where they should."""


@dataclasses.dataclass(frozen=True, eq=False)
class Trial:
    """What the density says of the draws.

    Attributes:
        points: nearly independent draws that were asked about.
        effort: share, between 0 and 1, of all questions that a density of this cost was asked.
        sound: of the density itself.
        tails: whether it integrates.
        orbits, orbit_p_value: tests among copies, and the smallest p-value corrected for all.
        brinks, brink_p_value: the same of both ends of each coordinate.
        stein: tests by scores; None without a gradient, and where the support has edges.
        balance: what stands for them, by values alone; also in each mode by itself.
        rough: whether scores say nothing, as log p jumps, or its gradient is not its own.
        made_up: whether single precision tells other things of places far from the draws than
            double precision, which has judged them.
        hunt: for modes; None where none was asked for.
        exchanges, exchange_p_value: of the modes that it found, with the heaviest.
        evaluations: of the density in all.
    """

    points: int
    effort: float
    sound: Soundness
    tails: Tails
    orbits: tuple[OrbitTest, ...] = ()
    orbit_p_value: float = 1.0
    brinks: tuple[Brink, ...] = ()
    brink_p_value: float = 1.0
    stein: SteinTests | None = None
    balance: SteinTests | None = None
    rough: bool = False
    made_up: bool = False
    hunt: Hunt | None = None
    exchanges: tuple[Exchange, ...] = ()
    exchange_p_value: float = 1.0
    evaluations: int = 0

    @property
    def edges(self) -> bool:
        """Whether there are places of zero density right beside the draws."""
        return self.sound.zero_share + self.sound.nan_share > 0.0

    @property
    def coarse(self) -> bool:
        """Whether single precision is too coarse for the draws to be put on trial."""
        return self.sound.resolution < _COARSE

    @property
    def worst_orbit(self) -> OrbitTest | None:
        """The test of copies with the smallest p-value; of other modes only where no other speaks
        against the draws: a shift spoils every symmetry, and is no missing mode."""
        others = [test for test in self.orbits if not test.is_of_modes]
        told = _corrected(others) < SURPRISING
        return min(others if told else self.orbits, key=lambda test: test.p_value, default=None)

    @property
    def worst_brink(self) -> Brink | None:
        """The end of a coordinate with the smallest p-value."""
        return min(self.brinks, key=lambda brink: brink.p_value, default=None)

    @property
    def worst_exchange(self) -> Exchange | None:
        """The mode whose number of draws is the most surprising."""
        return min(self.exchanges, key=lambda test: test.p_value, default=None)


def put_on_trial(
    target: AbstractTarget,
    sample: Cloud,
    stored: Numbers,
    effective: float,
    names: Sequence[str],
    *,
    seen: Cloud | None = None,
    chains: int = 0,
    independent: bool = False,
    search: bool = True,
    seed: int = 0,
) -> Trial | None:
    """Ask the density all that it can tell; None if it is positive at hardly any draw.

    Args:
        target: in coordinates without bounds.
        sample: (n, dim), finite, chain after chain, in these coordinates.
        stored: (n,), log p as it came with them.
        effective: how many independent draws they are worth.
        names: of the coordinates.
        seen: (m, dim), what training had found, in the same coordinates.
        chains: how many chains of one length they are; 0 where that is not known.
        independent: whether they are independent already, as particles are taken to be.
        search: whether to hunt for modes.
        seed: of all random choices.
    """
    generator = np.random.default_rng(seed)
    # Fewer than they are worth, at equal distances: then hardly two of them are correlated.
    independent = independent or effective > _AS_GOOD * len(sample)
    worth = effective if independent else effective / _THINNING
    size = int(np.clip(worth, _FEWEST, MOST_POINTS))
    chosen = generator.permutation(spaced(len(sample), size, generator))
    # As the density sees them: in single precision, where that is what it computes in.
    points = sample[chosen].astype(jnp.zeros(()).dtype).astype(np.float64)
    density = HostDensity(target, points[0])
    values = density.values(points)
    positive = np.isfinite(values)
    if np.sum(positive) < 20:
        return None
    points, values, stored = points[positive], values[positive], stored[chosen][positive]
    frame = Frame.of(points)
    trial = Trial(
        points=len(points),
        effort=density.effort,
        sound=soundness(density, points, stored, frame, seed),
        tails=far_out(density, points, frame, names, seed),
        evaluations=density.evaluations,
    )
    if not trial.coarse:
        run = None
        if not independent and len(sample) >= LEAST_MORE * size:
            run = batches_of(sample, chains, effective)
        trial = _asked(trial, density, points, run, frame, names, seed)
    if search:
        found = hunt(density, points, frame, names, seen, seed, values)
        trial = dataclasses.replace(trial, hunt=found)
        trial = _exchanged(trial, density, points, chosen[positive], seed)
    return dataclasses.replace(trial, evaluations=density.evaluations)


def _asked(
    trial: Trial,
    density: HostDensity,
    points: Cloud,
    run: np.ndarray | None,
    frame: Frame,
    names: Sequence[str],
    seed: int,
) -> Trial:
    stein, rough = None, False
    if density.target.differentiable and not trial.edges:
        some = points[: density.share_of(_STEIN_POINTS, 400)]
        scores = density.gradients(some)
        usable = np.all(np.isfinite(scores), axis=1)
        if np.sum(usable) >= 40:
            stein = stein_tests(some[usable], scores[usable], frame)
            stein = stein if run is None else either(stein, run_tests(density, run))
            # Only what speaks against the draws need be asked whether it may speak at all.
            rough = stein.p_value < SURPRISING and not slopes_hold(density, points, frame, seed)
    alone = stein is None or rough
    told, made_up = _by_values(density, points, frame, names, seed, alone), False
    if told.is_surprising:
        ask = functools.partial(_by_values, alone=alone)
        again = in_double(density, ask, points, frame, names, seed)
        made_up = again is not None and not again.is_surprising
        told = again if made_up and again is not None else told
    return dataclasses.replace(
        trial,
        orbits=(*told.orbits, *told.again),
        orbit_p_value=told.orbit_p_value,
        brinks=tuple(told.brinks),
        brink_p_value=_corrected(told.brinks),
        stein=None if rough else stein,
        balance=told.balance,
        rough=rough,
        made_up=made_up,
    )


def _exchanged(
    trial: Trial, density: HostDensity, points: Cloud, order: np.ndarray, seed: int
) -> Trial:
    """With the modes that the hunt found: each by itself, and beside the heaviest."""
    if trial.coarse or trial.hunt is None:
        return trial
    regions = trial.hunt.regions
    balance = in_each_mode(density, points, regions, seed)
    if balance is not None and balance.p_value < SURPRISING:
        exact = in_double(density, in_each_mode, points, regions, seed)
        balance = balance if exact is None else exact
    if balance is not None and trial.balance is not None:
        balance = either(trial.balance, balance)
    found = exchanges(density, points, regions, seed, order)
    if _corrected(found) < SURPRISING:
        again = in_double(density, exchanges, points, regions, seed, order)
        found = found if again is None else again
    return dataclasses.replace(
        trial,
        balance=balance or trial.balance,
        exchanges=tuple(found),
        exchange_p_value=_corrected(found),
    )


class _ByValues(NamedTuple):
    """Tests that take values alone."""

    orbits: list[OrbitTest]
    again: list[OrbitTest]
    """Of what was most surprising among them, by other draws."""
    brinks: list[Brink]
    balance: SteinTests | None
    """Of finite moves."""

    @property
    def orbit_p_value(self) -> float:
        """Half of the level for each of the two looks, where there are two."""
        first = _corrected(self.orbits)
        return min(1.0, 2.0 * min(first, _corrected(self.again))) if self.again else first

    @property
    def is_surprising(self) -> bool:
        """Whether any of them speaks against the draws."""
        told = 1.0 if self.balance is None else self.balance.p_value
        return min(self.orbit_p_value, _corrected(self.brinks), told) < SURPRISING


def _by_values(
    density: HostDensity,
    points: Cloud,
    frame: Frame,
    names: Sequence[str],
    seed: int,
    alone: bool,
) -> _ByValues:
    straight = straight_tests(density, points, names, seed)
    ends = [*brinks(density, points, frame, names, seed), *straight.ends]
    first = [*orbit_tests(density, points, frame, names, seed, alone), *straight.stretches]
    again = asked_again(density, points, frame, names, first, seed) if alone else []
    return _ByValues(first, again, ends, balance_tests(density, points, seed))


def _corrected(tests: Sequence[OrbitTest | Brink | Exchange]) -> float:
    """The smallest p-value of so many; 1 where nothing was asked."""
    return min((min(1.0, len(tests) * test.p_value) for test in tests), default=1.0)
