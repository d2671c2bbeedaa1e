"""The verdict: can the draws be trusted, and if not, what is wrong and what to do.

Three degrees. "Trustworthy" is said only of what was put to the test and passed. Where something
could not be asked it is "no problem found, but untested", and what. Else "not trustworthy", with
the cause: where the density itself is at fault, that is named alone, and not what follows from it.

Exact draws are judged by themselves. A doubt that training had about its pool (`DOUBT`), and
points of the pool that no draw went near, count only where the density was not asked, or has found
fault as well.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Literal

import numpy as np

from salmc.diagnostics import trial_words
from salmc.diagnostics.evidence import Evidence

DOUBT = "In training: "
"""Begins a warning about the pool, which draws that pass all tests disprove."""

REPEATED_SHARE = 0.02
"""Of draws that may be copies of others."""

RHAT_LIMIT = 1.1
"""Above it chains disagree (Gelman & Rubin 1992). R-hat ≈ √(1 + 2/ESS of one chain), so this asks
for ten effective draws of each chain. Few chains are held to more by `LEAST_ESS`: four of them must
reach R-hat 1.01, the limit of Vehtari et al. (2021). Hundreds of short chains need not."""

LEAST_ESS = 400
"""Below it means and R-hat themselves are unreliable (Vehtari et al. 2021: 100 for each of 4)."""

DISCREPANCY_LIMIT = 2.0
"""In floors. One exact sample in 20 exceeds its floor, but hardly one in 1000 twice the floor."""

INVARIANCE_LEVEL = 1e-4
"""False alarms of the invariance test: one exact sample in ten thousand; other tests see more."""

INVARIANCE_EFFECT = 0.1
"""Changes below a tenth of a standard deviation are let pass, however certain they are."""

COLLAPSE_SPREAD = 2.0
"""A sample whose spread doubles within a few Metropolis steps had collapsed."""

LEAST_DISTINCT_SHARE = 0.5
"""Of particles that differ from all others; exact draws all do."""

MOMENT_ERROR = 0.1
"""Allowed error of mean (in sd) and spread (relative), unless chance explains more."""

MISSED_SHARE = 0.01
"""Of what the warm-up found. A missed point is no accident, but a stray one may be of the pool."""

MODE_ERROR = 0.05
"""Allowed error of a mode's weight, unless chance explains more."""

CHANCE = 4.0
"""Standard errors that chance explains: beyond it is one in 15,000."""


Degree = Literal["trustworthy", "no problem found", "not trustworthy"]


@dataclasses.dataclass(frozen=True)
class Verdict:
    """In words.

    Attributes:
        trustworthy: whether everything was tested, and nothing wrong found.
        sentences: the finding first, then what is wrong and what to do, then what was tried.
        degree: one of three; see the module's text.
    """

    trustworthy: bool
    sentences: list[str]
    degree: Degree = "not trustworthy"

    def __str__(self) -> str:
        return " ".join(self.sentences)


def judge(evidence: Evidence) -> Verdict:
    """Read the evidence."""
    problems = [sentence for check in _CHECKS for sentence in check(evidence)]
    doubts = _doubts(evidence)
    if doubts and (problems or not _asked(evidence)):
        problems, doubts = [*problems, *doubts], []
    if problems:
        return Verdict(False, ["Not trustworthy.", *problems, *_notes(evidence)])
    notes = _notes(evidence)
    if doubts:
        notes.append(f"Training had doubts that the draws disprove: {' '.join(doubts)}")
    gaps = _untested(evidence)
    if gaps:
        opening = f"No problem found, but untested: {'; '.join(gaps)}."
        return Verdict(False, [opening, *notes], "no problem found")
    return Verdict(True, [f"Trustworthy: {_reasons(evidence)}.", *notes], "trustworthy")


def _run(evidence: Evidence) -> list[str]:
    """What went wrong on the way, and points that are not numbers."""
    sentences = [told for told in evidence.warnings if not told.startswith(DOUBT)]
    bad = evidence.points - evidence.finite_points
    if bad:
        sentences.append(
            f"{bad} of {evidence.points} points are NaN or infinite. Use a smaller step size."
        )
    return sentences


def _mixing(evidence: Evidence) -> list[str]:
    """Chains only: do they agree, and are they worth enough draws?"""
    if evidence.kind == "particles":
        return []
    rhat, ess = evidence.largest_rhat, evidence.smallest_ess
    if rhat is None or ess is None:
        return ["Mixing cannot be judged: fewer than 4 usable draws for each chain. Draw more."]
    if not math.isfinite(rhat) or not math.isfinite(ess):
        return [
            "A coordinate never moved in any chain, or in some: the sampler is stuck. "
            "Use another step size or method."
        ]
    sentences = evidence.of_chains
    if evidence.repeated > REPEATED_SHARE:
        sentences.append(
            f"{evidence.repeated:.0%} of the draws are copies of others: chains or draws were "
            "repeated, or drawn from few points. ESS and R-hat count each copy. Leave the copies "
            "out."
        )
    if rhat > RHAT_LIMIT:
        sentences.append(
            f"Chains disagree: R-hat is {min(rhat, 100.0):.2f}, above {RHAT_LIMIT}. They did not "
            "mix, or sit in different modes. Run longer, or use a method that moves between modes."
        )
    elif evidence.odd_chain is not None:
        sentences += evidence.odd_chain.sentences()
    if ess < LEAST_ESS:
        sentences.append(
            f"Too few effective draws: the smallest ESS is {ess:.0f}, below {LEAST_ESS}. "
            + ("" if ess > 0.5 * evidence.points else "The chains are strongly autocorrelated. ")
            + "Run longer."
        )
    return sentences


def _collapse(evidence: Evidence) -> list[str]:
    """Particles in one place, found without the truth."""
    if evidence.trial is not None and trial_words.causes(evidence.trial):
        return []
    sentences = []
    distinct = evidence.distinct_particles
    if distinct is not None and distinct < LEAST_DISTINCT_SHARE * evidence.finite_points:
        sentences.append(
            f"Particles collapsed: only {distinct} of {evidence.finite_points} differ from one "
            "another. Use a narrower kernel bandwidth or a smaller step size."
        )
    test = evidence.invariance
    hunt = None if evidence.trial is None else evidence.trial.hunt
    # Steps that reach a missing mode widen chains, too; then the mode is what is told.
    missing = evidence.kind == "chains" and hunt is not None and hunt.missed
    widened = test is not None and test.largest_spread_ratio > COLLAPSE_SPREAD
    if _changed(evidence) and test is not None and widened and not missing:
        noun = "Particles" if evidence.kind == "particles" else "Chains"
        sentences.append(
            f"{noun} collapsed: a few exact Metropolis steps widened them "
            f"{test.largest_spread_ratio:.1f} times. Spreads cannot be used. "
            "Start wider, or use a method with noise, such as sgld."
        )
    return sentences


def _discrepancy(evidence: Evidence) -> list[str]:
    """Bias that shows in the density alone."""
    trial, ksd, test = evidence.trial, evidence.ksd, evidence.invariance
    if trial is None:
        if ksd is None or ksd.value <= DISCREPANCY_LIMIT * ksd.floor:
            return []
        return [
            f"Biased: the Stein discrepancy is {ksd.ratio:.1f} times the size that exact draws "
            f"have. {trial_words.remedy(_exact(evidence))}."
        ]
    found = trial_words.causes(trial)
    if found:
        return found
    if evidence.spoken is not None:
        found = trial_words.consequences(trial, evidence.spoken, _exact(evidence))
    if _changed(evidence) and test is not None and test.largest_spread_ratio <= COLLAPSE_SPREAD:
        found.append(
            f"Biased: a few exact Metropolis steps changed the sample by {test.effect:.2f} "
            f"standard deviations (p = {test.p_value:.0e}); exact draws stay as they are. "
            f"{trial_words.remedy(_exact(evidence))}."
        )
    return found


def _doubts(evidence: Evidence) -> list[str]:
    """What training said against its pool, and what it found where no draw went."""
    found = [told.removeprefix(DOUBT) for told in evidence.warnings if told.startswith(DOUBT)]
    if evidence.missed is not None and evidence.missed > MISSED_SHARE:
        more_exact = "Use exact draws (metropolis=True), and more of them, or train longer"
        found.append(
            f"Incomplete: {evidence.missed:.0%} of what was found beforehand lies where no draw "
            f"went. {f'{trial_words.TRAIN}, or draw more' if _exact(evidence) else more_exact}."
        )
    return found


def _exact(evidence: Evidence) -> bool:
    """Whether the draws are of chains with a Metropolis step."""
    return evidence.acceptance_kind == "metropolis"


def _asked(evidence: Evidence) -> bool:
    """Whether the density was asked for all that a doubt about the pool may mean."""
    trial = evidence.trial
    return trial is not None and trial.hunt is not None and trial.hunt.weighed and not trial.coarse


def _truth(evidence: Evidence) -> list[str]:
    """Errors against the truth, where it is known."""
    sentences = []
    chance = CHANCE / math.sqrt(max(evidence.effective_points, 1.0))
    if evidence.mmd is not None and not evidence.mmd.ratio <= DISCREPANCY_LIMIT:
        sentences.append(
            f"Far from the truth: MMD² to exact draws is {evidence.mmd.value:.1e}, "
            f"{evidence.mmd.ratio:.0f} times what exact draws score."
        )
    if evidence.moments is not None:
        offset = float(np.max(np.abs(evidence.moments.mean_error)))
        ratios = evidence.moments.sd_ratio
        if not offset <= max(MOMENT_ERROR, chance):
            sentences.append(f"The mean is off by {offset:.2f} true standard deviations.")
        if not np.all(np.abs(ratios - 1.0) <= max(MOMENT_ERROR, chance)):
            worst = ratios[np.argmax(np.abs(ratios - 1.0))]
            sentences.append(f"Spread is off: {worst:.2f} of the true standard deviation.")
    if evidence.modes is not None:
        missing, error = evidence.modes.missing, evidence.modes.largest_error
        count = len(evidence.modes.truth)
        if missing and evidence.finite_points * np.min(evidence.modes.truth) > CHANCE**2:
            sentences.append(
                f"{missing} of {count} modes hold no point. Start wider, or use a method that "
                "moves between modes."
            )
        elif error > max(MODE_ERROR, chance * 0.5):
            sentences.append(
                f"Weights of modes are off by up to {error:.2f}. Run longer, or use a method that "
                "moves between modes."
            )
    return sentences


_CHECKS: tuple[Callable[[Evidence], list[str]], ...] = (
    _run,
    _mixing,
    _collapse,
    _discrepancy,
    _truth,
)


def _changed(evidence: Evidence) -> bool:
    """Whether Metropolis steps changed the sample, surely and by enough to matter."""
    test, trial = evidence.invariance, evidence.trial
    # Steps in single precision lead to density that it has made up.
    if test is None or math.isnan(test.p_value) or (trial is not None and trial.made_up):
        return False
    return test.p_value < INVARIANCE_LEVEL and not test.effect <= INVARIANCE_EFFECT


def _reasons(evidence: Evidence) -> str:
    reasons = [] if evidence.kind == "particles" else ["the chains agree and mix"]
    reasons.append("no test against the density finds them off")
    if evidence.truth_known:
        reasons.append("what is known of the truth is met")
    return ", ".join(reasons)


def _untested(evidence: Evidence) -> list[str]:
    if evidence.trial is not None:
        gaps = trial_words.untested(evidence.trial, evidence.names)
        if evidence.kind == "particles" and evidence.finite_points < LEAST_ESS:
            gaps.append(f"what {evidence.finite_points} particles are too few to show")
        # The truth tells more than any hunt.
        return [gap for gap in gaps if not (evidence.truth_known and gap.startswith("modes"))]
    if evidence.ksd_kind == "gradient-free, own reference":
        return ["spread, tails and modes, as there is no target to evaluate"]
    return ["everything that takes a density to compare with"]


def _notes(evidence: Evidence) -> list[str]:
    sentences = []
    if evidence.kind == "particles":
        sentences.append(
            "ESS and R-hat are not defined for particles: they move together, so their paths are "
            "no chains."
        )
    return sentences if evidence.trial is None else [*sentences, *trial_words.notes(evidence.trial)]
