"""`Sampler`: a trained kernel bound to its target, its scaling and how it was trained."""

import dataclasses
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from salmc import checks
from salmc.compiled import RUNTIME_ERRORS, failure
from salmc.diagnostics.point_sets import subset
from salmc.errors import OutputError, TargetError
from salmc.json_values import plain
from salmc.kernels.base import AbstractKernel
from salmc.kernels.image import AbstractImageKernel
from salmc.kernels.whitening import Whitening
from salmc.progress import AbstractReporter, reporter
from salmc.sampling.draws import Draws
from salmc.sampling.kernel_file import StoredKernel, read_kernel, write_kernel
from salmc.sampling.launch import Tally, launch, run_settings
from salmc.target import AbstractTarget

if TYPE_CHECKING:
    from salmc.sampling.stream import Streamed

_FINGERPRINT_POINTS = 16

_SEEN_POINTS = 4000
"""Of the pool, for the diagnostics of draws."""


@dataclasses.dataclass(frozen=True, eq=False)
class Sampler:
    """A trained kernel that is ready to draw.

    Attributes:
        kernel: the transition, in whitened coordinates.
        target: what it was trained on; None where that could not be found again.
        whitening: the map to whitened coordinates.
        pool: (n, dim) in the target's coordinates: where chains start, and what verdicts compare
            with.
        method: how it was trained.
        settings: of the training, as JSON values.
        history: figures over the course of training, such as losses.
        seconds: of training, by part.
        warnings: what went wrong in training, in words; draws carry them on.
    """

    kernel: AbstractKernel
    target: AbstractTarget | None
    whitening: Whitening
    pool: np.ndarray | jax.Array
    method: str = "sal-mc"
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    history: dict[str, Any] = dataclasses.field(default_factory=dict)
    seconds: dict[str, float] = dataclasses.field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        dim, pool = self.kernel.dim, np.asarray(self.pool)
        if pool.ndim != 2 or pool.shape[1] != dim or len(pool) < 1:
            checks.fail("pool", f"an array of shape (n, {dim})", f"shape {pool.shape}")
        if self.whitening.mean.shape != (dim,):
            checks.fail("whitening", f"of dimension {dim}", self.whitening.mean.shape)
        if self.target is not None and self.target.dim != dim:
            told = f"{self.target.name} of dimension {self.target.dim}"
            checks.fail("target", f"of dimension {dim}, as the kernel is", told)
        object.__setattr__(self, "pool", pool)
        object.__setattr__(self, "settings", plain(self.settings))

    def sample(
        self,
        chains: int = 32,
        draws: int = 2000,
        seed: int = 0,
        *,
        metropolis: bool = False,
        tries: int = 1,
        start: Any = None,
        progress: bool | AbstractReporter = True,
    ) -> Draws:
        """Run chains of the kernel.

        Args:
            chains: how many, all at once.
            draws: of each chain; every step is kept.
            seed: the same seed gives the same draws, and more draws begin with the same ones.
            metropolis: reject some proposals, so that the target is left invariant: exact for a
                kernel with a known proposal density, and not otherwise, which a warning tells.
            tries: proposals for each step, of which one may be taken. More of them make better
                use of a kernel that proposes badly; only for kernels that do not look at the state.
            start: "pool" (or None) for points of the pool, "normal" for a Gaussian of the pool's
                mean and covariance, or an array (chains, dim).
            progress: True for a bar, False for silence, or a reporter.

        Returns:
            Draws without burn-in. Forward passes do not call the target at all: `log_density` is
            found when it is first asked for. If the run is interrupted by Ctrl-C or the target
            fails, the draws made until then, with a warning.
        """
        ready, compile_seconds = launch(
            self.kernel,
            self.whitening,
            self.target,
            self.pool,
            chains=chains,
            draws=draws,
            seed=seed,
            metropolis=metropolis,
            tries=tries,
            start=start,
            densities=metropolis,
        )
        number = ready.start.points.dtype
        positions = np.empty((chains, draws, self.kernel.dim), number)
        log_density = np.empty((chains, draws), number) if metropolis else None
        accepted = np.empty((chains, draws), bool)
        tally, interruption = Tally(), []
        began = time.perf_counter()
        with reporter(progress) as report:
            report.start(self.title, draws)
            try:
                for block in ready.blocks():
                    at = slice(tally.draws, tally.draws + len(block))
                    positions[:, at] = block.positions.swapaxes(0, 1)
                    accepted[:, at] = block.accepted.T
                    if log_density is not None:
                        log_density[:, at] = block.log_density.T
                    tally.add(block)
                    report.advance(len(block), **tally.figures(ready))
            except KeyboardInterrupt:
                if tally.draws == 0:
                    raise
                interruption.append(f"Interrupted after {tally.draws} of {draws} draws.")
            except RUNTIME_ERRORS as error:
                sentence = f"The target failed after {tally.draws} draws: {failure(error)}"
                if tally.draws == 0:
                    raise TargetError(sentence) from error
                interruption.append(sentence)
        return Draws(
            positions=positions[:, : tally.draws],
            log_density=None if log_density is None else log_density[:, : tally.draws],
            seconds=time.perf_counter() - began,
            accepted=accepted[:, : tally.draws] if metropolis else None,
            method=self.method,
            target=self.target,
            settings={**run_settings(ready, seed, start), "training": self.settings},
            compile_seconds=compile_seconds,
            seen=self.seen(),
            warnings=(*self.warnings, *tally.warnings(ready), *interruption),
        )

    def sample_to(self, path: str | Path, **options: Any) -> "Streamed":
        """Draws that exceed memory, to a Zarr folder; see `salmc.sampling.stream.sample_to`."""
        from salmc.sampling.stream import sample_to

        return sample_to(self, path, **options)

    def seen(self) -> np.ndarray:
        """Of the pool, as much as tells whether draws went everywhere that training did."""
        return np.asarray(self.pool)[subset(len(self.pool), _SEEN_POINTS, np.random.default_rng(0))]

    @property
    def title(self) -> str:
        """For progress bars."""
        return self.method if self.target is None else f"{self.method} on {self.target.name}"

    def save(self, path: str | Path) -> Path:
        """Write a `.salmc` file, which `load` reads; atomic.

        Raises:
            OutputError: if it cannot be written.
        """
        stored = StoredKernel(
            self.kernel,
            self.whitening,
            np.asarray(self.pool),
            self.method,
            self.settings,
            {name: np.asarray(value) for name, value in self.history.items()},
            {name: float(value) for name, value in self.seconds.items()},
            _describe_target(self.target, np.asarray(self.pool)),
            tuple(self.warnings),
        )
        return write_kernel(stored, path)


def load(path: str | Path, target: AbstractTarget | None = None) -> Sampler:
    """Read what `Sampler.save` wrote.

    Args:
        path: the `.salmc` file.
        target: what to sample. A built-in target is found by its name; your own is code, which a
            file does not hold, so give it for a Metropolis step and for diagnostics.

    Raises:
        OutputError: if the file is missing, damaged, of a newer format, or not of salmc.
    """
    stored = read_kernel(path)
    if isinstance(stored.kernel, AbstractImageKernel):
        raise OutputError(
            f"{path} holds a kernel over images. Use salmc.images.load, or salmc images sample."
        )
    if target is None:
        target = _built_in(stored.target, stored.pool)
    return Sampler(
        kernel=stored.kernel,
        target=target,
        whitening=stored.whitening,
        pool=stored.pool,
        method=stored.method,
        settings=stored.settings,
        history=stored.history,
        seconds=stored.seconds,
        warnings=stored.warnings,
    )


def _describe_target(target: AbstractTarget | None, pool: np.ndarray) -> dict[str, Any]:
    if target is None:
        return {}
    values = _fingerprint(target, pool)
    finite = [float(value) if np.isfinite(value) else None for value in values]
    return {"name": target.name, "dim": target.dim, "log_density": finite}


def _built_in(described: dict[str, Any], pool: np.ndarray) -> AbstractTarget | None:
    """The built-in target of that name, if it is the same density and not only the same name."""
    from salmc.targets.loading import built_in

    target = built_in(described.get("name"))
    if target is None or target.dim != pool.shape[1]:
        return None
    expected = np.array(
        [-np.inf if value is None else value for value in described.get("log_density", [])]
    )
    found = _fingerprint(target, pool)
    same = len(found) == len(expected) and np.allclose(found, expected, rtol=1e-3, atol=1e-2)
    return target if same else None


def _fingerprint(target: AbstractTarget, pool: np.ndarray) -> np.ndarray:
    """log p at a few points: tells targets of one name apart."""
    points = jnp.asarray(pool[:_FINGERPRINT_POINTS], dtype=float)
    return np.asarray(eqx.filter_jit(target.log_densities)(points))
