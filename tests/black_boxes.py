"""Log densities that workers import: without JAX, so that a pool is there at once."""

import os
import time

import numpy as np


def of_one(x):
    assert x.shape == (2,)
    return -0.5 * float(x @ x)


def of_many(points):
    return -0.5 * np.sum(points**2, axis=1)


def slow(x):
    time.sleep(0.02)
    return of_one(x)


def deadly(x):
    os._exit(1)


def failing(x):
    if x[0] > 1.0:
        raise ValueError("the solver did not converge")
    return of_one(x)
