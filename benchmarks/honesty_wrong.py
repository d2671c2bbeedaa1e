"""Wrong results, each with one fault."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from benchmarks import honesty_truths as t
from benchmarks.hard_posteriors import box, centred_schools, funnel, student, two_widths

WRONG: dict[str, Callable[[t.Generator], t.Made]] = {
    "shifted by 0.3 sd": lambda g: (t.of(t.normal, 5), t.standard(g, 5) + 0.3 * np.eye(5)[0]),
    "shifted by 0.3 sd, black box": lambda g: (
        t.black_box(t.numpy_normal, 4),
        t.standard(g, 4) + 0.3 * np.eye(4)[0],
    ),
    "10 % too wide": lambda g: (t.of(t.normal, 5), 1.1 * t.standard(g, 5)),
    "10 % too narrow": lambda g: (t.of(t.normal, 5), 0.9 * t.standard(g, 5)),
    "10 % too narrow, black box": lambda g: (
        t.black_box(t.numpy_normal, 4),
        0.9 * t.standard(g, 4),
    ),
    "one coordinate 15 % too narrow": lambda g: (
        t.of(t.normal, 5),
        t.standard(g, 5) * [0.85, 1, 1, 1, 1],
    ),
    "a step overlooked": lambda g: (t.of(t.step, 3), t.standard(g, 3)),
    "correlation lost": lambda g: (t.FIVE[0], t.standard(g, 5)),
    "one of two modes": lambda g: (t.TWO[0], t.TWO[1](g, np.array([1.0, 0.0]))),
    "one of two modes, black box": lambda g: (t.black_box(t.numpy_two, 2), t.standard(g, 2) + 3.0),
    "five of six modes": lambda g: (t.SIX[0], t.SIX[1](g, np.array([1.0, 1, 1, 1, 1, 0]))),
    "mirrored mode missing, 8-d": lambda g: (t.MIRRORED[0], t.MIRRORED[1](g, np.array([1.0, 0.0]))),
    "exchanged labels missing": lambda g: (t.LABELS[0], t.LABELS[1](g, np.array([1.0, 0.0]))),
    "weights 0.5 : 0.5 for 0.9 : 0.1": lambda g: (t.TWO[0], t.TWO[1](g, np.ones(2))),
    "narrow mode missing": lambda g: (
        t.of(two_widths, 2),
        t.standard(g, 2) + np.array([-3.0, 0.0]),
    ),
    "wide mode missing": lambda g: (t.of(two_widths, 2), 0.02 * t.standard(g, 2) + [3.0, 0.0]),
    "a fifth of a ring missing": lambda g: (t.of(t.ring, 2), t.ring_draws(g, 0.8)),
    "Cauchy without tails": lambda g: (
        t.of(student(1.0), 1),
        t.keep(*(lambda x: (x, np.abs(x[:, 0]) < 40.0))(t.student_draws(g, 1.0, 1, 2 * t.COUNT))),
    ),
    "normal for t3": lambda g: (t.of(student(3.0), 5), 1.2 * t.standard(g, 5)),
    "normal for Laplace": lambda g: (
        t.of(lambda x: -jnp.sum(jnp.abs(x)), 3),
        np.sqrt(2.0) * t.standard(g, 3),
    ),
    "funnel without neck": lambda g: (
        t.of(funnel, 10),
        t.keep(*(lambda x: (x, x[:, 0] > -4.0))(t.funnel_draws(g, 10, 2 * t.COUNT))),
    ),
    "centred schools without small τ": lambda g: (
        t.of(centred_schools, 10),
        t.keep(*(lambda x: (x, x[:, 1] > -0.9))(t.schools_draws(g, 2 * t.COUNT))),
    ),
    "valley cut short": lambda g: (
        t.of(t.valley, 3),
        t.keep(*(lambda x: (x, x[:, 2] < 76.0))(t.valley_draws(g, 2 * t.COUNT))),
    ),
    "funnel with a thin neck": lambda g: (
        t.of(funnel, 10),
        t.keep(
            *(lambda x: (x, g.random(len(x)) < (x[:, 0] + 8.0) / 6.0))(
                t.funnel_draws(g, 10, 2 * t.COUNT)
            )
        ),
    ),
    "centred schools with few small τ": lambda g: (
        t.of(centred_schools, 10),
        t.keep(
            *(lambda x: (x, g.random(len(x)) < 1.0 / (1.0 + np.exp(-2.0 * (x[:, 1] + 0.9)))))(
                t.schools_draws(g, 2 * t.COUNT)
            )
        ),
    ),
    "one side cut at 2 sd": lambda g: (
        t.of(t.normal, 3),
        t.keep(*(lambda x: (x, x[:, 0] < 2.0))(g.normal(size=(2 * t.COUNT, 3)))),
    ),
    "mirrored skew": lambda g: (
        t.of(lambda x: jnp.sum(0.5 * x - jnp.exp(x)), 3),
        -np.log(g.gamma(0.5, size=(t.COUNT, 3))) - 3.93,
    ),
    "half a box": lambda g: (t.of(box, 3), 3.0 + g.random((t.COUNT, 3)) * [0.5, 1, 1]),
    "copied chain": lambda g: (
        t.of(t.normal, 3),
        np.repeat(g.normal(size=(1, t.DRAWS, 3)), t.CHAINS, 0),
    ),
    "tiled draws": lambda g: (
        t.of(t.normal, 3),
        np.tile(g.normal(size=(t.CHAINS, t.DRAWS // 5, 3)), (1, 5, 1)),
    ),
    "fifty points again and again": lambda g: (
        t.of(t.normal, 3),
        g.normal(size=(50, 3))[g.integers(50, size=(t.CHAINS, t.DRAWS))],
    ),
    "stuck chains": lambda g: (
        t.of(t.normal, 3),
        np.broadcast_to(g.normal(size=(t.CHAINS, 1, 3)), (t.CHAINS, t.DRAWS, 3)),
    ),
    "one chain stuck": lambda g: (
        t.of(t.normal, 3),
        np.where(
            np.arange(t.CHAINS)[:, None, None] == 0,
            [1.5, -1.0, 0.3],
            g.normal(size=(t.CHAINS, t.DRAWS, 3)),
        ),
    ),
    "chains in different modes": lambda g: (
        t.of(lambda x: jnp.logaddexp(t.normal(x - 4.0), t.normal(x + 4.0)), 2),
        t.split(g),
    ),
    "still on the way": lambda g: (t.of(t.normal, 3), t.metropolis(g, 60, 3, start=20.0)),
    "strong autocorrelation": lambda g: (t.of(t.normal, 1), t.autoregressive(g, 0.998, t.DRAWS, 1)),
    "flat tails": lambda g: (
        t.of(lambda x: jnp.logaddexp(t.normal(x), jnp.log(1e-6)), 2),
        t.standard(g, 2),
    ),
    "flat direction": lambda g: (
        t.of(lambda x: -0.5 * (x[0] + x[1]) ** 2 - 0.5 * x[2] ** 2, 3),
        np.c_[20 * t.standard(g, 1), t.standard(g, 1), t.standard(g, 1)]
        @ np.array([[1, -1, 0], [0.5, 0.5, 0], [0, 0, 1]]),
    ),
    "scale that hardly anything bounds": lambda g: (
        t.of(
            lambda x: -0.5 * jnp.sum(x[:1] ** 2) - x[1] * 1e-9, 2, bounds=[(None, None), (0, None)]
        ),
        np.c_[t.standard(g, 1), np.exp(3.0 * t.standard(g, 1))],
    ),
    "wrong sign": lambda g: (t.of(lambda x: -t.normal(x), 3), t.standard(g, 3)),
    "noisy black box": lambda g: (t.noisy(), t.standard(g, 2)),
    "half lost in single precision": lambda g: (
        t.of(t.single_only, 2),
        t.keep(*(lambda x: (x, np.abs(x[:, 0]) < 0.5))(g.normal(size=(4 * t.COUNT, 2)))),
    ),
    "values of another density": lambda g: (t.of(t.normal, 2), t.standard(g, 2)),
    "narrow particles 25-d": lambda g: (t.of(t.normal, 25), 0.6 * g.normal(size=(400, 1, 25))),
}
