"""What is shown of a run, once each."""

from salmc.diagnostics.verdict import DOUBT
from salmc.report.run_content import untold_warnings


def test_a_doubt_that_the_verdict_tells_of_is_no_warning_beside_it():
    doubt, other = "The pool had not settled.", "Ended early."
    told = {"sentences": ["Trustworthy.", f"Training had doubts that the draws disprove: {doubt}"]}
    warnings = {"warnings": [DOUBT + doubt, other]}
    assert untold_warnings(warnings, {"verdict": told}) == [other]
    assert untold_warnings(warnings, {}) == [DOUBT + doubt, other]
