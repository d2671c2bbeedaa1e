"""Data that models of both libraries are given: made once, from fixed seeds."""

import numpy as np

EFFECT = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
SIGMA = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])

_GENERATOR = np.random.default_rng(17)

GROUPS = 5
GROUP = np.repeat(np.arange(GROUPS), 8)
X = _GENERATOR.normal(size=len(GROUP))
Y = (1.0 + 0.5 * _GENERATOR.normal(size=GROUPS))[GROUP] * X
Y = Y + 0.7 * _GENERATOR.normal(size=len(GROUP))

COUNTS = np.array([18, 9, 3])
_FACTOR = np.array([[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [-0.3, 0.2, 0.93]])
ROWS = _GENERATOR.normal(size=(25, 3)) @ (np.array([[0.5], [1.0], [2.0]]) * _FACTOR).T

MIXED = np.concatenate([_GENERATOR.normal(-2.0, 0.7, 14), _GENERATOR.normal(2.5, 1.2, 26)])

TIMES = np.sort(_GENERATOR.uniform(0, 5, 18))
CURVE = np.sin(1.5 * TIMES) + 0.3 * _GENERATOR.normal(size=len(TIMES))
