"""A NICE kernel that begins as a quarter turn of (x, v).

    a(x) = −x    b(v) = v    c(x) = −x:    (x, v) ↦ (v, −x)

These three shears are f of `nice`. A turn keeps N(0, I), and x' = v has nothing of x: where x is
whitened and near a Gaussian, such a kernel proposes independent draws, most of which are accepted,
before it has learned anything. What lies beyond a Gaussian is left to learn.

A network of ReLUs is linear where units come in pairs, x = max{x, 0} − max{−x, 0}: two units of
each hidden layer for each coordinate. All others keep their first weights, and have no say yet: the
last layer's weights for them are 0, from where they learn.
"""

import equinox as eqx
import numpy as np

from salmc.kernels.layers import Network
from salmc.programs import on_device


def linear(network: Network, matrix: np.ndarray, which: int | None = None) -> Network:
    """A network of ReLUs with weights such that it is x ↦ M x at first.

    Args:
        network: with hidden layers of at least two units for each row of M.
        matrix: M, of which as many first inputs count as it has columns; outputs beyond its rows
            are 0.
        which: of a network whose weights have a leading axis, the one to set.
    """
    weights = [np.array(weight) for weight in network.weights]
    biases = [np.array(bias) for bias in network.biases]
    here = slice(None) if which is None else which
    rows = len(matrix)
    pair = np.concatenate([np.eye(rows), -np.eye(rows)])
    units = slice(2 * rows)
    for layer, (weight, bias) in enumerate(zip(weights[:-1], biases[:-1], strict=True)):
        into, given = weight[here], pair @ matrix if layer == 0 else np.eye(2 * rows)
        into[units] = 0.0
        into[units, : given.shape[1]] = given
        bias[here][units] = 0.0
    last = weights[-1][here]
    last[:] = 0.0
    last[:rows, units] = pair.T
    biases[-1][here][:] = 0.0
    changed = (tuple(map(on_device, weights)), tuple(map(on_device, biases)))
    return eqx.tree_at(lambda network: (network.weights, network.biases), network, changed)
