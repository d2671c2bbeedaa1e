"""What learning minimises and how: frozen records, in which every term can be switched off by 0.

    TrainingSettings      what every training needs
    └ PoolSettings        what trainings on a pool of particles need
      ├ LearningSettings  SAL-MC and AL-MC
      │ └ PairSettings    the same with a critic of pairs, in `pair_settings`
      └ NICESettings      A-NICE-MC, in `nice_settings`

A kernel of SAL-MC and AL-MC is trained on

    adversarial · L_adv  +  wasserstein/2 · W₂²(p_G, p)  +  decorrelation · ‖Cov(x', x)‖²
        +  likelihood · E_pool[−log q]  +  regression · Huber(log p − log q − c)
        +  velocity · E ½|v'|² / dim v,

the first two of which are eq. 8 of the paper. `objective` and `transport` have the formulae.
"""

import dataclasses
import difflib
from typing import Any, ClassVar, TypeVar

import jax.numpy as jnp

from salmc import checks
from salmc.errors import ArgumentError
from salmc.kernels import KERNELS
from salmc.kernels.base import AbstractKernel
from salmc.sizes import MANY_DIMENSIONS

Settings = TypeVar("Settings", bound="TrainingSettings")

_FEW_DIMENSIONS = 4
"""Above this, half the batch: the flow is dearer, and so is the density as a rule."""

_SOME_DIMENSIONS = 20
"""Above this, twice the steps."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """What every training needs.

    Attributes:
        penalty: weight of the critic's gradient penalty.
        steps: updates of the kernel.
        batch: real points in each step, and as many of the kernel's.
        learning_rate: of Adam, for kernel and critic.
        momentum, second_momentum: Adam's β₁ and β₂.
        warmup: share of the steps over which the rate grows from 0.
        final_rate: what the cosine decay leaves of the rate at the end.
        clip: largest norm of a gradient; 0 for no limit.
        average: decay of the average of the weights, which is what is kept.
        chunk: steps between looks at the figures.
        patience: chunks without a better figure before training ends early; 0 for never.
        checkpoint_every: chunks between checkpoints.
    """

    penalty: float = 0.1
    steps: int = 4000
    batch: int = 256
    learning_rate: float = 1e-3
    momentum: float = 0.0
    second_momentum: float = 0.99
    warmup: float = 0.0
    final_rate: float = 0.05
    clip: float = 0.0
    average: float = 0.999
    chunk: int = 100
    patience: int = 0
    checkpoint_every: int = 5

    def __post_init__(self) -> None:
        self.check_numbers("penalty", "clip", at_least=0.0)
        self.check_numbers("learning_rate", above=0.0)
        self.check_numbers("warmup", "final_rate", at_least=0.0, at_most=1.0)
        self.check_numbers("momentum", "second_momentum", "average", at_least=0.0, at_most=0.999999)
        self.check_integers("steps", "chunk", "checkpoint_every", least=1)
        self.check_integers("patience", least=0)
        self.check_integers("batch", least=4)

    def check_numbers(self, *names: str, **bounds: float) -> None:
        """Real numbers; an array would make settings that cannot be compared or stored."""
        for name in names:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                checks.fail(name, "a number", value)
            checks.real(name, value, **bounds)

    def check_integers(self, *names: str, least: int) -> None:
        """Whole numbers of at least `least`."""
        for name in names:
            checks.integer(name, getattr(self, name), least)

    def replace(self: Settings, **options: Any) -> Settings:
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

    def traced(self: Settings) -> Settings:
        """What compiled code depends on: runs of any length, rate and chunks share a program."""
        return self.replace(steps=1, learning_rate=1.0, chunk=1, patience=0, checkpoint_every=1)

    def as_dictionary(self) -> dict[str, Any]:
        """All values, as JSON holds them."""
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PoolSettings(TrainingSettings):
    """What trainings on a pool of particles need, beside what all do.

    Attributes:
        critic_steps: updates of the critic for each of the kernel, m of Algorithm 1.
        pool_size: particles in the pool.
        mover_steps: of movers other than tempered SMC, which knows its end.
        mover_particles: of these movers before exact moves multiply them to `pool_size`.
    """

    critic_steps: int = 1
    pool_size: int = 4096
    mover_steps: int = 500
    mover_particles: int = 1000

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_integers("critic_steps", least=1)
        self.check_integers("mover_steps", least=0)
        self.check_integers("pool_size", "mover_particles", least=4)

    def traced(self: Settings) -> Settings:
        return super().traced().replace(mover_steps=0, mover_particles=4, pool_size=4)


@dataclasses.dataclass(frozen=True, kw_only=True)
class LearningSettings(PoolSettings):
    """How SAL-MC and AL-MC train. `default_settings` has good values for each kind of kernel.

    Attributes, beside those that all methods have:
        adversarial: weight of the adversarial term.
        adversarial_form: "relativistic" (pairs of real and fake), or "logistic", the paper's.
        wasserstein: α, weight of the W₂ term.
        wasserstein_form: "closed", the paper's closed form, or "sinkhorn" (`salmc[sinkhorn]`).
        likelihood: weight of the likelihood of the pool; tractable kernels only.
        regression: weight of the log-ratio regression; tractable kernels and targets only.
        regression_start: share of the steps before the regression sets in.
        huber: where its square turns into an absolute value.
        velocity: weight of −log N(v') for each coordinate of v'; volume-preserving kernels only.
        decorrelation: weight of the squared covariance between a kernel's input and its output.
        refresh: share of a step's slice of the pool that is handed to the kernel: replaced by its
            outputs (1 is the paper's literal scheme), or moved by it where `exact_refresh` says so.
        refresh_end: share of the steps by which `refresh` has fallen to 0; 0 for never.
        exact_refresh: refresh by an exact Metropolis-Hastings step; exact kernels only.
        extra_transitions: further x̃ ← G(x̃, ξ) after each step, as in Algorithm 1.
        pool_move: "exact" (Metropolis steps by differential evolution), or "mover": the mover
            that filled the pool advances all of it at each step, as in Algorithm 1.
        mixture_components: of the mixture whose independence move carries particles between
            modes; 0 for no such move.
        mixture_every: steps between these moves.
        latent_every: steps between moves of the whole pool in the space of an exact kernel that has
            one, where independent proposals are often refused; 0 for none.
        courses: at most so many times `steps`, while the pool has not settled.
        calibrate: match the chain's mean and covariance to the pool's in the end, and to the
            density's where it can be asked, for kernels that have a calibration.
    """

    sees_pairs: ClassVar[bool] = False
    """Whether the critic is shown pairs (x', x): see `pair_settings`."""

    adversarial: float = 1.0
    adversarial_form: str = "relativistic"
    wasserstein: float = 0.0
    wasserstein_form: str = "closed"
    likelihood: float = 0.0
    regression: float = 0.0
    regression_start: float = 0.1
    huber: float = 1.0
    velocity: float = 0.0
    decorrelation: float = 0.0
    refresh: float = 0.0
    refresh_end: float = 0.0
    exact_refresh: bool = False
    extra_transitions: int = 0
    pool_move: str = "exact"
    mixture_components: int = 8
    mixture_every: int = 500
    latent_every: int = 100
    courses: int = 4
    calibrate: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        weights = ("adversarial", "wasserstein", "likelihood", "regression")
        self.check_numbers(*weights, "velocity", "decorrelation", "refresh_end", at_least=0.0)
        self.check_numbers("huber", above=0.0)
        self.check_numbers("regression_start", "refresh", at_least=0.0, at_most=1.0)
        self.check_integers("mixture_every", "courses", least=1)
        self.check_integers("mixture_components", "extra_transitions", "latent_every", least=0)
        for name in ("exact_refresh", "calibrate"):
            if not isinstance(getattr(self, name), bool):
                checks.fail(name, "True or False", getattr(self, name))
        checks.choice("adversarial_form", self.adversarial_form, ("relativistic", "logistic"))
        checks.choice("wasserstein_form", self.wasserstein_form, ("closed", "sinkhorn"))
        checks.choice("pool_move", self.pool_move, ("exact", "mover"))
        if not any(getattr(self, name) for name in ("adversarial", "likelihood", "regression")):
            checks.fail(
                "settings",
                "such that one of `adversarial`, `likelihood` and `regression` is positive",
                "0 for all of them",
            )

    def traced(self) -> "LearningSettings":
        return super().traced().replace(mixture_every=1, courses=1)

    @property
    def makes_proposals(self) -> bool:
        """Whether a step needs proposals of the kernel with their corrections and log p."""
        return self.exact_refresh or self.regression > 0.0

    @property
    def makes_outputs(self) -> bool:
        """Whether a step needs outputs x' = G(x̃, ξ) of the kernel's own chain."""
        terms = (self.adversarial, self.wasserstein, self.decorrelation)
        return any(terms) or (self.refresh > 0.0 and not self.exact_refresh)

    def refresh_at(self, step: Any, steps: Any) -> Any:
        """`refresh` at a step: constant, or falling linearly to 0 by `refresh_end`."""
        if not self.refresh_end:
            return self.refresh
        remaining = 1.0 - step / (self.refresh_end * steps)
        return self.refresh * jnp.clip(remaining, 0.0, 1.0)


def default_settings(
    kernel: "str | AbstractKernel | type[AbstractKernel]", dim: int
) -> LearningSettings:
    """Settings that work for SAL-MC and AL-MC, by the training that a kernel says suits it.

    Args:
        kernel: a kernel, its class, or its name.
        dim: number of coordinates of the target.
    """
    checks.integer("dim", dim, 1)
    if isinstance(kernel, str):
        kernel = KERNELS[checks.choice("kernel", kernel, tuple(KERNELS))]
    if kernel.training == "velocities":
        from salmc.learning.pair_settings import pair_settings

        return pair_settings(dim)
    if kernel.training == "adversarial":
        exact = kernel.exact
        settings = LearningSettings(decorrelation=0.3, refresh=float(exact), exact_refresh=exact)
        if not kernel.placed or not (isinstance(kernel, type) or kernel.places):
            return settings
        # It begins at the pool, where tests against the density find nothing: the noise of
        # adversarial steps, if they are larger or more, is what they find then.
        few = {"steps": 500, "learning_rate": 2e-5, "batch": 512}
        return settings.replace(**few if dim <= _FEW_DIMENSIONS else {"learning_rate": 5e-4})
    return LearningSettings(
        adversarial=0.0,
        likelihood=1.0,
        regression=1.0,
        # The last hundredths of acceptance come late, and points where chains stick go with them.
        steps=2000 if _SOME_DIMENSIONS < dim <= MANY_DIMENSIONS else 1000,
        batch=512 if dim <= _FEW_DIMENSIONS else 256,
        # The covariance of a pool errs by √(dim / size).
        pool_size=4096 if dim <= MANY_DIMENSIONS else 8192,
        # In many dimensions larger steps leave noise in the splines that costs acceptance.
        learning_rate=3e-3 if dim <= _FEW_DIMENSIONS else 5e-4 if dim <= MANY_DIMENSIONS else 2e-4,
        momentum=0.9,
        warmup=0.05,
        final_rate=0.01,
        clip=5.0,
        average=0.99,
        refresh=1.0,
        exact_refresh=True,
        mixture_components=0,
        # Local moves are short in many dimensions, and NUTS has been there before.
        latent_every=100 if dim <= MANY_DIMENSIONS else 0,
        patience=4 if dim <= MANY_DIMENSIONS else 8,
    )
