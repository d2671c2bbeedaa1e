"""What a trial found, in words: the cause first, its consequences only where no cause is known."""

import numpy as np

from salmc.diagnostics.hunt import Hunt, Mode
from salmc.diagnostics.spoken import Spoken
from salmc.diagnostics.trial.brinks import Brink
from salmc.diagnostics.trial.exchanges import Exchange
from salmc.diagnostics.trial.orbits import OrbitTest
from salmc.diagnostics.trial.trial import SURPRISING, Trial

NOISE = 0.02
"""Standard deviation of log p at one point: from there on it shows in what Metropolis accepts."""

SINGLE_ERROR = 0.3
"""Error of log p in single precision that is let pass."""

LOST_SHARE = 0.01
MISMATCH = 0.1
_SAME_SHARE = 0.03

TRAIN = "Train longer (draws.sampler.improve())"
"""Where a search alone found a sampler, this trains a kernel for it."""

_X64 = (
    'Compute in double precision: jax.config.update("jax_enable_x64", True) before anything else.'
)


def causes(trial: Trial) -> list[str]:
    """What is wrong with the density itself: no test of draws means anything until it is mended."""
    sound, tails = trial.sound, trial.tails
    found = []
    if sound.noise > NOISE:
        found.append(
            f"Noise in the density: two evaluations of one point differ by {sound.noise:.2g} "
            "(standard deviation). Use fixed random numbers inside it, or average more of them."
        )
    if sound.infinite_share > 0.0:
        found.append(
            f"The density is infinite at {sound.infinite_share:.1%} of the places beside the "
            "draws, which counts as zero: it is not bounded there. Check the log density."
        )
    if sound.lost_share > LOST_SHARE:
        found.append(
            f"Single precision loses the density: at {sound.lost_share:.0%} of the places beside "
            f"the draws it is NaN or zero, and in double precision as high as at the draws. {_X64}"
        )
    elif sound.single_error > SINGLE_ERROR and not sound.noise > NOISE:
        found.append(
            f"Single precision is too coarse for this density: log p is off by "
            f"{sound.single_error:.2g} (standard deviation) at the draws. {_X64}"
        )
    if tails.improper and tails.grows:
        found.append(
            "This density does not integrate: far out it grows without bound "
            f"({_where(tails.improper)}). Check its sign: log p is wanted, not −log p."
        )
    elif tails.improper:
        needed = "more than the number of dimensions" if tails.improper == "everywhere" else "1"
        found.append(
            f"This density does not integrate: far out ({_where(tails.improper)}) log p falls by "
            f"{max(-tails.fall, 0.0) + 0.0:.2g} for each unit of log r, where {needed} is needed. "
            "There is no distribution to draw from: give every parameter a proper prior, or bounds."
        )
    return found


def _where(improper: str) -> str:
    return "in all directions" if improper == "everywhere" else improper


def consequences(trial: Trial, spoken: Spoken, exact: bool = False) -> list[str]:
    """What is wrong with the draws; what to do about it depends on whether they are exact."""
    # A mode by its place says more than any test that it fails.
    found = [] if trial.hunt is None else _hunt_problems(trial.hunt, spoken)
    exchange = trial.worst_exchange
    told = trial.hunt is not None and (trial.hunt.missed or trial.hunt.wrong_weights)
    if exchange is not None and trial.exchange_p_value < SURPRISING and not told:
        found.append(
            f"Weights are off: {_exchange_words(exchange, spoken)} "
            f"(p = {trial.exchange_p_value:.0e}). Run longer, or use a method that moves between "
            "modes."
        )
    sound = trial.sound
    allowed = max(MISMATCH, 5.0 * np.nan_to_num(sound.single_error))
    if sound.mismatch > allowed:
        found.append(
            "The draws came with other log densities than the target has: they differ by "
            f"{sound.mismatch:.2g} (standard deviation). They were made for another density."
        )
    worst = trial.worst_orbit
    by_scores = trial.stein is not None and trial.stein.p_value < SURPRISING
    # What scores have seen is no missing mode, which they are blind to.
    explained = worst is not None and worst.is_of_modes and by_scores
    if worst is not None and not explained and trial.orbit_p_value < SURPRISING:
        found.append(f"{orbit_words(worst, exact)} (p = {trial.orbit_p_value:.0e}).")
    if trial.worst_brink is not None and trial.brink_p_value < SURPRISING:
        found.append(
            f"{_brink_words(spoken.end(trial.worst_brink))} (p = {trial.brink_p_value:.0e}). What "
            f"was found before them had not settled. {remedy(exact=True)}."
        )
    for asked, test in (("scores", trial.stein), ("differences of log p", trial.balance)):
        if test is not None and test.p_value < SURPRISING:
            found.append(
                f"Biased: by the {asked} the draws' {test.function.replace('kernel', 'shape')} "
                f"is off by {abs(test.size):.1f} standard errors (p = {test.p_value:.0e}). "
                f"{remedy(exact)}."
            )
    return found


def _brink_words(brink: Brink) -> str:
    if brink.both:
        return (
            f"Draws of {brink.name} end too early on either side: {brink.expected:.0f} belong "
            f"beyond their outermost ones, and {brink.found} are there"
        )
    side, end = ("below", "lower") if brink.low else ("above", "upper")
    return (
        f"Draws of {brink.name} end too early: of those near its {end} end {brink.expected:.0f} "
        f"belong {side} {brink.at:.3g}, and {brink.found} are there"
    )


def _exchange_words(exchange: Exchange, spoken: Spoken) -> str:
    if exchange.outward:
        much = "much" if exchange.times > 1.0 else "little"
        return f"modes far from {spoken.place(exchange.position)} have too {much}, beside near ones"
    other = "the other modes" if exchange.beside is None else spoken.place(exchange.beside)
    return (
        f"around {spoken.place(exchange.position)} are {exchange.times:.2g} times as many draws as "
        f"belong there, beside those around {other}"
    )


def remedy(exact: bool) -> str:
    """Of a bias: exact chains have not arrived yet, others never will as they are."""
    if exact:
        return f"{TRAIN}, or run longer chains"
    return "Use a smaller step size or more steps, or a Metropolis step"


def orbit_words(test: OrbitTest, exact: bool = False) -> str:
    """What it means that ranks of one kind are not uniform."""
    kind, _, rest = test.name.partition(" ")
    if kind in ("mirror", "flip", "exchange"):
        copies = {
            "mirror": f"mirrored {rest}" if rest.startswith("about") else f"mirrored in {rest}",
            "flip": f"with the sign of {rest} changed",
            "exchange": f"with {rest.replace(' ', ' and ', 1)} exchanged",
        }[kind]
        return (
            f"A mode is missing, or has the wrong weight: copies of the draws {copies} are too "
            "likely for how few draws are there. Start there too, or use a method that moves "
            "between modes"
        )
    if kind == "funnel":
        side = "low" if test.shift > 0.0 else "high"
        return (
            f"Biased: {rest} governs how widely others spread, and too few draws are where it is "
            f"{side}: a funnel was not followed to its end. {TRAIN}, write the model without "
            "the funnel (effects in units of their scale), or run longer chains"
        )
    if kind == "stretch":
        much = "many" if test.shift > 0.0 else "few"
        return (
            f"Biased: too {much} draws are where {rest}, which others follow, is far from its "
            f"middle. {remedy(exact)}"
        )
    if test.name == "tails" and np.mean(test.ranks > 0.97) < 0.03:
        return (
            "Tails are lacking: the density has mass further out than the draws go, in their own "
            f"directions. {TRAIN}, or use a kernel with heavier tails"
        )
    if test.name in ("radius", "tails"):
        away = "too far from" if test.shift > 0 else "too close to"
        return f"Biased: draws lie {away} their centre. {remedy(exact)}"
    if test.name == "any long line" or kind in ("between", "long"):
        return (
            "Biased: places further off are likelier than the draws in number say, or less likely. "
            "Modes have wrong weights, or the spread is off. Run longer"
        )
    where = (
        f"{rest}, given all other coordinates," if kind == "line" else "in some direction a draw"
    )
    if abs(test.spread - 1.0) > 2.0 * abs(test.shift):
        how = "too narrow" if test.spread < 1.0 else "too wide"
    else:
        how = "too high" if test.shift > 0.0 else "too low"
        how = how if kind == "line" else "off"
    return f"Biased: {where} is {how}. {remedy(exact)}"


def _hunt_problems(hunt: Hunt, spoken: Spoken) -> list[str]:
    found = []
    if hunt.missed:
        others = len(hunt.missed) - 1
        more = "" if not others else f" {others} more {'was' if others == 1 else 'were'} found."
        found.append(
            f"A mode is missing: {_belongs(hunt.missed[0], spoken)}, and "
            f"{_share(hunt.missed[0].drawn)} of the draws.{more} Pass its place as `start`, start "
            "wider, or use a method that moves between modes."
        )
    if hunt.wrong_weights:
        worst = hunt.wrong_weights[0]
        if abs(worst.share - worst.drawn) > _SAME_SHARE:
            found.append(
                f"Weights are off: {_belongs(worst, spoken)}, and {_share(worst.drawn)} of the "
                "draws. Run longer, or use a method that moves between modes."
            )
        else:
            found.append(
                f"Draws are too dense, or too thin, around {spoken.place(worst.position)} for the "
                f"mass there, beside those elsewhere. {TRAIN}, or run longer."
            )
    return found


def _belongs(mode: Mode, spoken: Spoken) -> str:
    return f"around {spoken.place(mode.position)} lies about {_share(mode.share)} of all mass"


def _share(share: float) -> str:
    return "none" if share == 0.0 else f"{share:.2g}" if share < 0.01 else f"{share:.0%}"


def untested(trial: Trial, names: tuple[str, ...]) -> list[str]:
    """What could not be asked, in words that follow "untested:"."""
    found = []
    if trial.coarse:
        found.append(
            "the draws against the density, as single precision has but "
            f"{trial.sound.resolution:.0f} numbers within their width (enable x64)"
        )
    if trial.sound.nan_share > 0.0 and trial.sound.lost_share <= LOST_SHARE:
        found.append(
            "whether the density is meant to be zero where it is NaN, "
            f"{trial.sound.nan_share:.0%} of the places beside the draws"
        )
    if trial.hunt is None:
        found.append("modes that no draw visited (`summary(hunt=True)` looks for them)")
    elif not trial.hunt.weighed:
        found.append("modes that no draw visited, as their masses could not be compared")
    if trial.effort <= 0.01:
        found.append(
            f"most of what else is asked, as the density takes long: {trial.evaluations:,} "
            "evaluations were made"
        )
    return found


def notes(trial: Trial) -> list[str]:
    """What was left out, and what a hunt that found nothing tried."""
    found = []
    if trial.rough:
        found.append(
            "Scores were not asked, as the log density jumps, or its gradient is not its own: "
            "values alone have judged."
        )
    if trial.made_up:
        found.append(
            "Far from the draws single precision makes up density that double precision does not "
            f"have: by the latter they are right, but a longer run may come there. {_X64}"
        )
    if trial.hunt is not None and trial.hunt.weighed and not trial.hunt.missed:
        found.append(_tried(trial.hunt))
    return found


def _tried(hunt: Hunt) -> str:
    return (
        f"Hunted for other modes: {hunt.climbs:,} climbs from {hunt.places:,} random places, "
        f"{hunt.particles:,} tempered particles and mirrored and permuted draws, in a region "
        f"{hunt.width:.0f} times as wide as the draws, found none with mass that they lack. A "
        "needle that none of them came near would not be seen."
    )
