"""How a kernel over images is trained: one frozen record; a term of weight 0 is left out."""

import dataclasses
import difflib
from typing import Any

from salmc import checks
from salmc.errors import ArgumentError
from salmc.kernels.image import PAPER_VARIANCE


@dataclasses.dataclass(frozen=True)
class ImageSettings:
    """What is minimised and how; `step` has the formulae.

    Attributes:
        steps: updates of the kernel, and of the critic.
        batch: real images in each step, and as many of the chain's.
        learning_rate: of Adam, for kernel and critic.
        final_rate: what the cosine decay leaves of the rate at the end.
        momentum: Adam's β₁.
        average: decay of the average of the weights, which is what is kept.
        penalty: weight of R1, the critic's gradient penalty.
        wasserstein: α, weight of the W₂ term; the paper has 0.1.
        consistency: weight of the codes' consistency: the decoder's images have the codes that
            they were made from.
        reconstruction: weight of the squared distance between real images and the decoder's
            images of their codes.
        uniformity: weight of the even spread of real images' codes.
        quiet: share of the chains that run with ξ = 0.
        noise: σ², variance of the noise of the others.
        restart: share of the chains that begin anew at each step, half of them from real images
            and half from noise.
        critic_width: channels of the critic after its first halving.
        chunk: steps between looks at the figures.
        checkpoint_every: chunks between checkpoints.
    """

    steps: int = 12_000
    batch: int = 64
    learning_rate: float = 1e-3
    final_rate: float = 0.05
    momentum: float = 0.0
    average: float = 0.999
    penalty: float = 0.3
    wasserstein: float = 0.1
    consistency: float = 3.0
    reconstruction: float = 2.0
    uniformity: float = 3.0
    quiet: float = 0.25
    noise: float = PAPER_VARIANCE
    restart: float = 0.04
    critic_width: int = 16
    chunk: int = 25
    checkpoint_every: int = 20

    def __post_init__(self) -> None:
        for name in ("penalty", "wasserstein", "consistency", "reconstruction", "uniformity"):
            _number(name, getattr(self, name), at_least=0.0)
        for name in ("learning_rate", "noise"):
            _number(name, getattr(self, name), above=0.0)
        for name in ("final_rate", "quiet", "restart"):
            _number(name, getattr(self, name), at_least=0.0, at_most=1.0)
        for name in ("momentum", "average"):
            _number(name, getattr(self, name), at_least=0.0, at_most=0.999999)
        for name in ("steps", "critic_width", "chunk", "checkpoint_every"):
            checks.integer(name, getattr(self, name), 1)
        checks.integer("batch", self.batch, 4)

    @property
    def quiet_chains(self) -> int:
        """How many of the batch's chains run with ξ = 0: its first ones."""
        return round(self.quiet * self.batch)

    def replace(self, **options: Any) -> "ImageSettings":
        """A copy with other values.

        Raises:
            ArgumentError: if a name is not a setting, or a value makes no sense.
        """
        known = [field.name for field in dataclasses.fields(self)]
        for name in options:
            if name not in known:
                near = difflib.get_close_matches(name, known, 1)
                remedy = f"Did you mean `{near[0]}`?" if near else f"There are {', '.join(known)}."
                raise ArgumentError(f"There is no setting `{name}`. {remedy}")
        return dataclasses.replace(self, **options)

    def traced(self) -> "ImageSettings":
        """The settings that compiled code depends on; the others have the same value in all."""
        return self.replace(steps=1, learning_rate=1.0, checkpoint_every=1)

    def as_dictionary(self) -> dict[str, Any]:
        """All values, as JSON holds them."""
        return dataclasses.asdict(self)


def _number(name: str, value: Any, **bounds: float) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        checks.fail(name, "a number", value)
    checks.real(name, value, **bounds)
