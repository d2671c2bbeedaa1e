"""How a kernel over images is trained: one frozen record; a term of weight 0 is left out."""

import dataclasses

from salmc.kernels.image import PAPER_VARIANCE
from salmc.learning.settings import TrainingSettings


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImageSettings(TrainingSettings):
    """What is minimised and how; `adversarial` has the formulae.

    Attributes, beside those that all trainings have:
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
        augmentation: how much images are changed at most before the critic sees them, from 0 to
            1; for some hundreds of images. `augmentation` has the changes.
        critic_width: channels of the critic after its first halving.
    """

    steps: int = 12_000
    batch: int = 64
    penalty: float = 0.3
    chunk: int = 25
    checkpoint_every: int = 20
    wasserstein: float = 0.1
    consistency: float = 3.0
    reconstruction: float = 0.0
    uniformity: float = 0.0
    quiet: float = 0.25
    noise: float = PAPER_VARIANCE
    restart: float = 0.04
    augmentation: float = 0.0
    critic_width: int = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        weights = ("wasserstein", "consistency", "reconstruction", "uniformity")
        self.check_numbers(*weights, at_least=0.0)
        self.check_numbers("noise", above=0.0)
        self.check_numbers("quiet", "restart", "augmentation", at_least=0.0, at_most=1.0)
        self.check_integers("critic_width", least=1)

    @property
    def quiet_chains(self) -> int:
        """How many of the batch's chains run with ξ = 0: its first ones."""
        return round(self.quiet * self.batch)
