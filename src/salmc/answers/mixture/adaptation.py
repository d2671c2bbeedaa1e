"""A mixture that adapts to the target by importance sampling: the first answer, in few evaluations.

Draws x_i of proposals q_1, …, q_T (n_t of each) are kept with log p(x_i), and weigh

    w_i = p(x_i) / q̄(x_i),    q̄ = Σ_t n_t q_t / Σ_t n_t

whichever proposal they came from. The first proposals are wide, and move outward until they cover
the target. Then each round fits a mixture to the weights w^β, with the largest β ≤ 1 at which
enough draws count, and draws from it. What a round overlooks is not lost: where q̄ is too small, w
is large, and the next round goes there. Values of log p are all that is used, and none of them is
thrown away.

A mixture that fits where it draws may still lack the neck of a funnel. So exact local moves have
the last word: a cloud drawn by the weights takes sweeps of differential evolution, and follows the
funnels that it shows. Where it drifts, or goes where the mixture hardly ever draws, the mixture
learns from there, and the rounds go on; it is settled when the cloud stays. A settled mixture may
lack whole modes: a hunt looks for them, far around, and the rounds go on from those that it finds.

Reference: Cornuet, Marin, Mira and Robert, "Adaptive multiple importance sampling", 2012.
"""

import dataclasses
from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from salmc.answers.mixture.beginning import NEIGHBOURS, at_scales, climbs_from, moments, so_far
from salmc.answers.mixture.density import Mixture
from salmc.answers.mixture.effort import Effort
from salmc.answers.mixture.evaluator import BudgetSpentError, Evaluator
from salmc.answers.mixture.fitting import fit_mixture
from salmc.answers.mixture.host_moves import Moves
from salmc.answers.mixture.weighted_draws import Archive, effective_count, tempered
from salmc.movers.cover import COVERED, GROWTH, NEAR_ENOUGH, SATURATED

_MOST_OUTWARD = 60
_COUNTING = 1 / 6
"""Share of the draws at several scales that must count for moments of them."""

_WIDE_SHARE, _WIDENING = 0.15, 2.0
"""Of each round's draws, so many come from the mixture made so much wider."""

_ENOUGH, _BETTER, _STALE = 0.85, 1.05, 2
"""Rounds end at that efficiency, or when so many of them in a row brought no such gain."""

_DRIFTED = 4.0
"""Standard errors; of a cloud that stays, the largest of some hundred is seldom beyond."""

_HOPELESS, _WORTHLESS = 0.1, 0.01
"""Below this efficiency a mixture that was repaired once is not repaired again; nor, below that,
hunted for."""

_NEARER, _WAITED = 1.05, 6
"""So much must β gain, now and then in so many rounds, as long as it is below 1."""

_FEW_MODES, _ALL_NEW = 20, 0.5
"""More modes than these are countless if there are so many for each climb, or no mixture fits."""

_CLIMBED_AGAIN, _MOST_AGAIN = 8, 8
"""Climbs from where a mixture of several modes draws too rarely; and how often, while they find
one more."""

_KEPT, _HUNTED = 4096, 4096
_RARELY, _RARE_SHARE = 30.0, 0.01
"""Places where p/q is so many times its mean are drawn rarely; so much of a cloud may be there."""

_NEVER, _RARE_SHARE_OF_MANY = 3000.0, 0.03
"""Between several modes more of it may, if none is where p/q is that large: local steps take chains
out of there, and nothing else would take them from mode to mode."""


Found = Callable[[np.ndarray], Mixture | None]


@dataclasses.dataclass
class Adaptation:
    """A mixture that adapts, and all that it was told.

    Attributes:
        evaluator: log p.
        generator: of all randomness.
        effort: how much is spent.
        archive: draws so far.
        mixture: the best so far; None before the first round.
        efficiency: its effective draws for each draw.
        modes: Gaussians at the modes that were found by climbing.
        tops: how many of the latest are tops, and no places at walls.
        settled: whether exact local moves left its cloud where it was.
        countless: whether nearly every climb ended at another mode: no mixture has them all.
        patient: whether a mixture that does not settle is repaired; there may be a better way.
        find_modes: Gaussians at the modes that are found from some starts.
        hunt: Gaussians at modes that some particles lack; None where they lack none.
        leaves: whether a cloud that does not settle had better be left to other coordinates.
        watch: told the efficiency after each round.
        seen: where chains of it were, once they are asked.
    """

    evaluator: Evaluator
    generator: np.random.Generator
    effort: Effort
    archive: Archive
    mixture: Mixture | None = None
    efficiency: float = 0.0
    modes: Mixture | None = None
    tops: int = 0
    settled: bool = False
    countless: bool = False
    patient: bool = True
    find_modes: Found | None = None
    hunt: Found | None = None
    leaves: Callable[[np.ndarray], bool] | None = None
    watch: Callable[[float], None] = lambda efficiency: None
    seen: np.ndarray | None = None

    def run(self, mean: np.ndarray, factor: np.ndarray, known: np.ndarray | None = None) -> None:
        """From a first Gaussian to a settled mixture, or as far as rounds and budget go.

        Args:
            mean, factor: of the Gaussian; the factor is triangular.
            known: a cloud that is near the target already, from which to begin instead.
        """
        try:
            if known is None:
                self.search(mean, factor)
                if self.countless:
                    return
            else:
                self.draw(fit_mixture(known, np.ones(len(known)), self.generator), self.effort.each)
            self.improve()
        except BudgetSpentError:
            if self.mixture is None:  # what was paid for is not lost
                self.mixture, self.efficiency = so_far(self.archive)
            return
        self.settle()

    def settle(self) -> None:
        """Rounds of exact local moves, hunts and repairs, until the mixture has what they find."""
        try:
            repairs = hunts = again = 0
            while self.mixture is not None and not self.give_up():
                cloud, values = self.moved_cloud()
                drawn = self.draws_enough(self.mixture, cloud, values)
                self.settled = drawn and self.archive.drift(cloud) < _DRIFTED
                found = None
                if not drawn and again < _MOST_AGAIN and self.climb_again(cloud, values):
                    again += 1
                    self.improve()
                    continue
                if not self.settled and self.leaves is not None and self.leaves(cloud):
                    return
                may_hunt = hunts < self.effort.hunts and self.efficiency > _WORTHLESS
                if self.settled and self.hunt is not None and may_hunt:
                    rows = self.archive.resampled(self.generator, _HUNTED)
                    found, hunts = self.hunt(self.archive.points[rows]), hunts + 1
                    self.remember(found)
                hopeless = repairs > 0 and self.efficiency < _HOPELESS
                may_repair = self.patient and repairs < self.effort.repairs and not hopeless
                if not self.settled and may_repair:
                    found = fit_mixture(cloud, np.ones(len(cloud)), self.generator)
                    repairs += 1
                if found is None:
                    return
                self.draw(found, self.effort.each)
                self.improve()
        except BudgetSpentError:
            return

    def give_up(self) -> bool:
        """Whether there are more modes than any mixture has; then there is none."""
        if self.modes is not None and len(self.modes.weights) > _FEW_MODES:
            self.countless |= self.efficiency < _HOPELESS
        self.mixture = None if self.countless else self.mixture
        return self.countless

    def search(self, mean: np.ndarray, factor: np.ndarray) -> None:
        """Draws that cover the target, and of Gaussians at its modes."""
        proposal = self.cover(mean, factor)
        seen = self.look_around(proposal) if self.effort.wide else self.archive.latest()
        if self.find_modes is not None and np.sum(seen[1] > -np.inf) > NEIGHBOURS:
            starts = climbs_from(*seen, self.generator, self.effort.climbs)
            modes = self.find_modes(starts)
            if modes is not None:
                self.remember(modes)
                self.draw(modes, self.effort.each)
                self.countless = self.tops > max(_FEW_MODES, _ALL_NEW * len(starts))

    def climb_again(self, cloud: np.ndarray, values: np.ndarray) -> bool:
        """Where the mixture draws too rarely there may be one more mode, of many: climb there.

        Returns:
            Whether there is.
        """
        if self.mixture is None or self.find_modes is None or self.modes is None or self.one_mode:
            return False
        rarest = np.argsort(self.mixture.log_density(cloud) - values)[:_CLIMBED_AGAIN]
        found = self.find_modes(cloud[rarest])
        new = None if found is None else found.apart_from(self.modes)
        self.remember(new)
        if new is not None:
            self.draw(new, self.effort.each)
        return new is not None

    def remember(self, found: Mixture | None) -> None:
        """Gaussians at modes, from which fits begin."""
        if found is not None:
            self.modes = found if self.modes is None else self.modes.beside(found)

    def look_around(self, proposal: Mixture) -> tuple[np.ndarray, np.ndarray]:
        """Many draws of a wide proposal, of which enough are kept, and log p there."""
        points = self.evaluator.rounded(proposal.sample(self.generator, self.effort.wide))
        values = self.evaluator(points)
        self.archive.add(proposal, points[:_KEPT], values[:_KEPT])
        return points, values

    def draw(self, proposal: Mixture, count: int) -> None:
        """Draws of a proposal, evaluated and kept."""
        points = self.evaluator.rounded(proposal.sample(self.generator, count))
        self.archive.add(proposal, points, self.evaluator(points))

    def cover(self, mean: np.ndarray, factor: np.ndarray) -> Mixture:
        """Draw at several scales, and move outward until the mass is well within.

        The rules are those of `movers.cover`, which says why. Returns the last proposal.
        """
        for _ in range(_MOST_OUTWARD):
            proposal = at_scales(mean, factor)
            self.draw(proposal, self.effort.each)
            points, values = self.archive.latest()
            if np.sum(values > -np.inf) <= 2 * len(mean):
                break
            weights, beta = tempered(
                values - proposal.log_density(points), _COUNTING * np.sum(values > -np.inf)
            )
            found_mean, found = moments(points, weights)
            shift, spread = (np.linalg.solve(factor, a) for a in (found_mean - mean, found))
            reach = np.max(np.abs(shift) + 2.0 * np.sqrt(np.sum(spread**2, axis=1)))
            if not (reach > SATURATED or (beta < NEAR_ENOUGH and reach > COVERED)):
                break
            mean, factor = found_mean, GROWTH * found
        return proposal

    def improve(self) -> None:
        """Rounds of fitting and drawing, until β = 1 and nothing better comes."""
        each, best, stale, nearest, waited = self.effort.each, 0.0, 0, 0.0, 0
        wanted = max(0.25 * each, 10.0 * self.archive.dim)
        for _ in range(self.effort.rounds):
            log_weights = self.archive.log_weights()
            # A density that does not integrate leads ever further out, until numbers end.
            lost = not np.all(np.isfinite(self.archive.points))
            if lost or not np.any(log_weights > -np.inf):
                return
            weights, beta = tempered(log_weights, min(wanted, 0.25 * len(log_weights)))
            near = None if beta < 1.0 or self.mixture is None else len(self.mixture.weights)
            modes = None if self.one_mode else self.modes
            fitted = fit_mixture(self.archive.points, weights, self.generator, near, modes)
            if not all(np.all(np.isfinite(part)) for part in fitted):
                return
            wide = int(_WIDE_SHARE * each)
            self.draw(fitted, each - wide)
            fresh = effective_count(self.archive.latest_log_weights()) / (each - wide)
            self.draw(fitted.widened(_WIDENING), wide)
            self.watch(fresh)
            if beta < 1.0:
                waited = 0 if beta > _NEARER * nearest else waited + 1
                nearest = max(beta, nearest)
                if waited < _WAITED:
                    continue
                return
            # Fresh draws may miss what the others have seen, and the others how well it fits.
            efficiency = min(fresh, self.archive.efficiency(fitted))
            stale = 0 if efficiency > _BETTER * best else stale + 1
            if efficiency >= best:
                best, self.mixture, self.efficiency = efficiency, fitted, efficiency
            if best > _ENOUGH or stale >= _STALE:
                return
            # More draws count now: let as many teach.
            wanted = max(wanted, 0.5 * effective_count(self.archive.log_weights()))

    def moved_cloud(self) -> tuple[Float[np.ndarray, "n dim"], Float[np.ndarray, " n"]]:
        """Particles drawn by the weights, after exact local moves; log p there."""
        effort = self.effort
        rows = self.archive.resampled(self.generator, effort.particles)
        cloud = self.archive.points[rows], self.archive.values[rows]
        moves = Moves(self.evaluator, self.generator, effort.sweeps)
        return moves.through_funnels(*moves.evolved(*cloud), effort.turns)

    def draws_enough(self, mixture: Mixture, cloud: np.ndarray, values: np.ndarray) -> bool:
        """Whether little of a cloud is where p/q is many times its mean: chains would stick
        there."""
        log_weights = values - mixture.log_density(cloud) - self.archive.log_evidence()
        rare = np.mean(log_weights > np.log(_RARELY))
        if self.one_mode or np.any(log_weights > np.log(_NEVER)):
            return bool(rare <= _RARE_SHARE)
        return bool(rare <= _RARE_SHARE_OF_MANY)

    @property
    def one_mode(self) -> bool:
        """Whether climbs know of no second one."""
        return self.modes is None or len(self.modes.weights) == 1
