"""Does more training pay for the draws that are wanted?

With a share a of its proposals accepted, an independence chain has about a/(2 − a) effective draws
for each draw. So N of them take

    T = N / (a/(2 − a) · draws per second)

and training has gone on long enough when it has taken as long as drawing would now: whatever the
rest of it might have brought, no more than twice the least time is spent.
"""

import dataclasses
from typing import Any

_DRAWS_FOR_ONE_LEARNED = 4.0
"""A point that is learned from costs proposals, densities and gradients; a draw the first two."""

_LEAST_ACCEPTED, _LEAST_STEPS = 0.75, 200
"""Below these a pool may not have settled yet: training goes on as if nobody had asked for few."""


def effective_rate(efficiency: float) -> float:
    """Effective draws for each draw of an independence chain."""
    efficiency = min(max(efficiency, 1e-6), 1.0)
    return efficiency / (2.0 - efficiency)


@dataclasses.dataclass(frozen=True)
class Worth:
    """Ends a training that no longer pays.

    Attributes:
        effective: draws that are wanted.
        batch: points that one step learns from.
    """

    effective: int
    batch: int

    def enough(self, history: dict[str, list[float]], seconds: float) -> bool:
        """Whether training has gone on long enough.

        Args:
            history: of the training: steps, and the share of proposals that was accepted.
            seconds: that training took so far, without compilation.
        """
        steps, accepted = history.get("step", []), history.get("acceptance", [])
        if not steps or not accepted:
            return False
        if steps[-1] < _LEAST_STEPS or accepted[-1] < _LEAST_ACCEPTED:
            return False
        a_second = _DRAWS_FOR_ONE_LEARNED * self.batch * steps[-1] / max(seconds, 1e-9)
        return seconds >= self.effective / (effective_rate(accepted[-1]) * a_second)

    def watch(self, record: Any) -> None:
        """End the training of a record where it is enough."""
        if self.enough(record.history, record.seconds.get("training", 0.0)):
            record.finished = True
