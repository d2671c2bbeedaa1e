"""`improve`: train a sampler further, from its kernel and its pool."""

import dataclasses

import numpy as np

from salmc import checks
from salmc.errors import TargetError
from salmc.kernels.mixture import MixtureKernel
from salmc.learning.pool import Pool
from salmc.learning.review import inner_pool
from salmc.learning.sal_mc import sal_mc
from salmc.learning.settings import default_settings
from salmc.programs import make_room, on_device, one_thread
from salmc.progress import AbstractReporter
from salmc.sampling.sampler import Sampler


@one_thread
def improve(
    sampler: Sampler,
    *,
    steps: int | None = None,
    seed: int = 0,
    effective: int | None = None,
    progress: bool | AbstractReporter = True,
) -> Sampler:
    """Train a sampler for one course more.

    Its kernel goes on from its weights; a mixture, which is not trained by steps, is followed by a
    flow that learns from its pool.

    Args:
        sampler: with its target.
        steps: of the course; from the kernel's defaults unless given.
        seed: another one than that of the first training, for other numbers.
        effective: draws that will be wanted: training ends when no more of it pays for them.
        progress: True for a bar, False for silence, or a reporter.

    Raises:
        TargetError: if the sampler has no target to learn from.
    """
    if not isinstance(sampler, Sampler):
        checks.fail("sampler", "a Sampler", sampler)
    if sampler.target is None or sampler.pool_log_density is None:
        raise TargetError(
            "This sampler has no target to learn from: load it with salmc.load(path, target)."
        )
    make_room()
    target, mixture = sampler.target, isinstance(sampler.kernel, MixtureKernel)
    kernel = "flow" if mixture else sampler.kernel
    settings = default_settings(kernel, target.dim)
    if steps is not None:
        settings = settings.replace(steps=checks.integer("steps", steps, 1))
    points, values = inner_pool(sampler)
    rows = np.random.default_rng(seed).permutation(
        np.resize(np.arange(len(points)), settings.pool_size)
    )
    pool = Pool(
        on_device(points[rows]),
        on_device(values[rows]),
        on_device(points[rows]),
        {},
        (),
    )
    if not mixture:
        # The kernel knows its own coordinates, and must keep them.
        pool = pool._replace(whitening=sampler.whitening)
    better = sal_mc(
        target,
        kernel,
        settings=settings,
        seed=seed,
        effective=effective,
        progress=progress,
        pool=pool,
    )
    return dataclasses.replace(better, warnings=(*sampler.warnings, *better.warnings))
