"""Right results that may look suspicious: tails, edges, modes, scales, correlation."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import honesty_truths as t
from benchmarks.hard_posteriors import box, centred_schools, funnel, student, two_widths
from salmc.targets.eight_schools import EightSchools

RIGHT: dict[str, Callable[[t.Generator], t.Made]] = {
    "normal": lambda g: (t.of(t.normal, 5), t.standard(g, 5)),
    "normal 25-d": lambda g: (t.of(t.normal, 25), t.standard(g, 25)),
    "correlation 0.999": lambda g: (t.NEARLY[0], t.standard(g, 2) @ t.NEARLY[1].T),
    "correlation 0.9, 5-d": lambda g: (t.FIVE[0], t.standard(g, 5) @ t.FIVE[1].T),
    "Cauchy": lambda g: (t.of(student(1.0), 1), t.student_draws(g, 1.0, 1)),
    "Cauchy 5-d": lambda g: (t.of(student(1.0), 5), t.student_draws(g, 1.0, 5)),
    "t3 5-d": lambda g: (t.of(student(3.0), 5), t.student_draws(g, 3.0, 5)),
    "valley": lambda g: (t.of(t.valley, 3), t.valley_draws(g)),
    "box": lambda g: (t.of(box, 5), 3.0 + g.random((t.COUNT, 5))),
    "box with bounds": lambda g: (
        t.of(box, 3, bounds=[(3, 4)] * 3),
        3.0 + g.uniform(1e-5, 1 - 1e-5, (t.COUNT, 3)),
    ),
    "half normal": lambda g: (
        t.of(lambda x: jnp.where(x[0] > 0, t.normal(x), -jnp.inf), 2),
        np.c_[np.abs(t.standard(g, 1)), t.standard(g, 1)],
    ),
    "exponential with bounds": lambda g: (
        t.of(lambda x: -jnp.sum(x), 2, bounds=[(0, None)] * 2),
        g.exponential(size=(t.COUNT, 2)),
    ),
    "disc": lambda g: (
        t.of(lambda x: jnp.where(jnp.sum(x**2) < 1, 0.0, -jnp.inf), 2),
        (lambda z: z / np.linalg.norm(z, axis=1, keepdims=True))(t.standard(g, 2))
        * np.sqrt(g.random((t.COUNT, 1))),
    ),
    "six modes": lambda g: (t.SIX[0], t.SIX[1](g, np.ones(6))),
    "two modes 0.9 : 0.1": lambda g: (t.TWO[0], t.TWO[1](g, np.array([0.9, 0.1]))),
    "mirrored modes 8-d": lambda g: (t.MIRRORED[0], t.MIRRORED[1](g, np.ones(2))),
    "exchanged labels": lambda g: (t.LABELS[0], t.LABELS[1](g, np.ones(2))),
    "two widths": lambda g: (
        t.of(two_widths, 2),
        np.where(
            g.random((t.COUNT, 1)) < 0.5,
            t.standard(g, 2) + np.array([-3.0, 0.0]),
            0.02 * t.standard(g, 2) + np.array([3.0, 0.0]),
        ),
    ),
    "ring": lambda g: (t.of(t.ring, 2), t.ring_draws(g)),
    "funnel": lambda g: (t.of(funnel, 10), t.funnel_draws(g, 10)),
    "centred schools": lambda g: (t.of(centred_schools, 10), t.schools_draws(g)),
    "eight schools, truth known": lambda g: (
        EightSchools(),
        np.asarray(EightSchools().sample(jax.random.key(int(g.integers(2**31))), t.COUNT)),
    ),
    "scale 1e-6": lambda g: (t.of(lambda x: t.normal(x / 1e-6), 3), 1e-6 * t.standard(g, 3)),
    "offset 1e3": lambda g: (t.of(lambda x: t.normal(x - 1e3), 2), 1e3 + t.standard(g, 2)),
    "offset 1e6, sd 100": lambda g: (
        t.of(lambda x: t.normal((x - 1e6) / 100.0), 2),
        1e6 + 100.0 * t.standard(g, 2),
    ),
    "scales 1e-3 to 1e5": lambda g: (
        t.of(lambda x: t.normal(x / jnp.asarray(t.SCALES)), 4),
        t.SCALES * t.standard(g, 4),
    ),
    "a step": lambda g: (
        t.of(t.step, 3),
        np.c_[
            np.where(g.random(t.COUNT) < 0.2, 1.0, -1.0) * np.abs(t.standard(g, 1)[:, 0]),
            t.standard(g, 2),
        ],
    ),
    "digits lost far away": lambda g: (t.of(t.cancelling, 3), t.cancelling_draws(g)),
    "Laplace": lambda g: (t.of(lambda x: -jnp.sum(jnp.abs(x)), 3), g.laplace(size=(t.COUNT, 3))),
    "log gamma": lambda g: (
        t.of(lambda x: jnp.sum(0.5 * x - jnp.exp(x)), 3),
        np.log(g.gamma(0.5, size=(t.COUNT, 3))),
    ),
    "autocorrelated": lambda g: (t.of(t.normal, 2), t.autoregressive(g, 0.9, 3000, 2)),
    "Metropolis": lambda g: (t.of(t.normal, 3), t.metropolis(g, 3000, 3)),
    "black box": lambda g: (t.black_box(t.numpy_normal, 4), t.standard(g, 4)),
    "black box, two modes": lambda g: (
        t.black_box(t.numpy_two, 2),
        t.standard(g, 2) + np.where(g.random((t.COUNT, 1)) < 0.5, 3.0, -5.0),
    ),
}
