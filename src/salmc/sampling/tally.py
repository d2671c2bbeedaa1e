"""What goes on while chains run: counted block by block, and told in words in the end."""

import numpy as np

from salmc.errors import TargetError
from salmc.programs import RUNTIME_ERRORS, failure
from salmc.sampling.executor import Block, ChainRun

_STUCK_DRAWS = 100
"""A chain that takes none of so many proposals is stuck."""


class Tally:
    """Counts of one run, and a context in which nothing that was drawn is lost.

    Attributes:
        draws: steps that were done.
        invalid: proposals that were not finite.
        accepted: proposals taken by each chain.
    """

    def __init__(self, run: ChainRun) -> None:
        self.draws, self.invalid, self.accepted = 0, 0, np.zeros(run.chains, int)
        self._run = run
        self._interruption: str | None = None

    def add(self, block: Block) -> None:
        """Count one more block, which is safe."""
        self.draws += len(block)
        self.invalid += block.invalid
        self.accepted += np.sum(block.accepted, axis=0)

    def __enter__(self) -> "Tally":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: object
    ) -> bool:
        """Ctrl-C and a target that fails end the run in good order, if there is something to keep.

        Raises:
            TargetError, KeyboardInterrupt: if there is not.
        """
        if isinstance(error, KeyboardInterrupt):
            self._interruption = f"Interrupted after {self.draws} of {self._run.draws} draws."
            return self.draws > 0
        if isinstance(error, RUNTIME_ERRORS):
            self._interruption = f"The target failed after {self.draws} draws: {failure(error)}"
            if self.draws == 0:
                raise TargetError(self._interruption) from error
            return True
        return False

    @property
    def acceptance(self) -> np.ndarray:
        """Share of the proposals that each chain took."""
        return self.accepted / max(self.draws, 1)

    def figures(self) -> dict[str, float]:
        """What is worth showing beside a progress bar."""
        if not self._run.transition.metropolis:
            return {}
        return {"acceptance": float(np.mean(self.acceptance))}

    def warnings(self) -> tuple[str, ...]:
        """What went wrong, in words."""
        found = []
        kernel, metropolis = self._run.transition.kernel, self._run.transition.metropolis
        if metropolis and not kernel.exact:
            found.append(
                f"not exact: the kernel `{kernel.name}` has no proposal density, so the "
                "Metropolis step is min{1, p(x')/p(x)} without it and does not leave the target "
                "invariant. Use a tractable kernel, such as flow, for exact draws."
            )
        if self.invalid:
            found.append(
                f"{self.invalid} proposals were NaN or infinite; the chains stayed where they "
                "were. Train the kernel longer, or with a smaller learning rate."
            )
        stuck = int(np.sum(self.acceptance == 0))
        if metropolis and stuck and self.draws >= _STUCK_DRAWS:
            found.append(
                f"{stuck} of {self._run.chains} chains never moved: they took none of {self.draws} "
                "proposals. Train the kernel longer, or start the chains elsewhere."
            )
        return (*found, *((self._interruption,) if self._interruption else ()))
