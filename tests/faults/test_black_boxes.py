"""Black boxes that fail on the way to the first answer: one sentence, whenever they do."""

import numpy as np
import pytest

import salmc


def failing_after(calls):
    made = []

    def log_densities(points):
        made.append(points)
        return None if len(made) > calls else -0.5 * np.sum(points**2, axis=1)

    return log_densities


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (failing_after(4), "must return an array of shape"),
        (lambda points: np.zeros(len(points), complex), "Got complex|Got ndarray"),
        # Leads ever further out, until numbers end.
        pytest.param(
            lambda points: np.zeros(len(points)), "does not integrate", marks=pytest.mark.slow
        ),
    ],
    ids=["later None", "complex", "flat"],
)
def test_the_first_answer_fails_in_one_sentence(function, told):
    with pytest.raises(salmc.TargetError, match=told) as caught:
        salmc.sample(salmc.Target.from_numpy(function, 2), effective=500, progress=False)
    assert "\n" not in str(caught.value)
