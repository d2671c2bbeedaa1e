"""The flow kernel: x' = T(ξ; x) with an invertible T, so that q(x'|x) is known and MH is exact.

A draw is a forward pass, as in eq. 15 of the paper, x̃_{t+1} = G(x̃_t, ξ), with G = T(·; x̃_t) and

    ξ ~ N(0, I)  →  couplings (rational-quadratic splines)  →  radial layer  →  tails  →  x'
    log q(x'|x) = log N(ξ; 0, I) − log |det ∂T/∂ξ|

The paper's generator has no such density. By default T does not look at x: the draws are then
independent, and those of all steps can be made at once.

References: Durkan et al., "Neural spline flows", NeurIPS 2019; Dinh, Sohl-Dickstein and Bengio,
"Density estimation using Real NVP", ICLR 2017.
"""

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from salmc import checks
from salmc.kernels.base import AbstractTractableKernel, Noise, Values
from salmc.kernels.layers import (
    Batch,
    LogScales,
    Network,
    couple,
    lighten,
    make_heavy,
    network,
    numpy_generator,
    stretch_radius,
)
from salmc.kernels.spline import (
    MIN_SHARE,
    Grid,
    parameter_count,
    radial_grid,
    spline,
    spline_inverse,
    wide_grid,
)
from salmc.programs import on_device
from salmc.target import Point, Points

_FEW_DIMENSIONS = 10
"""Beyond it there are more layers, and draws cost enough that unrolled layers, which take some
seconds longer to compile, pay off."""


_HEAVINESS = 1e-3
"""κ of the tails before training: a thousand degrees of freedom."""

_TAIL_UNIT = 30.0
"""From there to a Cauchy's 1 in a few hundred steps of Adam."""


class FlowKernel(AbstractTractableKernel):
    """Proposals from a normalising flow that starts as N(0, I).

    Args:
        key: for the initial weights; not inside `jit`.
        dim: number of coordinates.
        layers: couplings; each moves half of the coordinates. By default 4, beyond ten dimensions
            6, as more pairs of coordinates are to meet.
        width, depth: of the hidden layers of a coupling's network.
        knots: bins of a coupling's splines; by default 80 / dim, within 6 and 16, as the cost of a
            coupling grows with dim × knots.
        interval: a coupling is the identity on coordinates beyond it, in whitened units. The tails
            of the proposals are Gaussian there, so it reaches far; most knots are near 0.
        radial: end with a radial layer. One coordinate has no direction: there it is left out.
        radial_knots, radial_width: of the radial layer.
        conditional: proposals depend on the current point.
        tails: end with tails whose heaviness is learned, from Gaussian ones to a Cauchy's.

    Example:
        >>> import equinox as eqx, jax, jax.numpy as jnp
        >>> from salmc.kernels import FlowKernel
        >>> kernel = FlowKernel(jax.random.key(0), dim=2)
        >>> log_densities = eqx.filter_jit(kernel.log_densities)
        >>> round(float(log_densities(jnp.zeros((1, 2)), jnp.zeros((1, 2)))[0]), 3)
        -1.838
    """

    couplings: Network
    """Weights of all couplings, stacked."""
    radial_network: Network | None
    centre: Point | None
    """Of the radial layer."""
    tails: Float[Array, " tails"] | None
    """log κ of `layers.lighten`, in units that learn as quickly as all other weights."""
    dim: int = eqx.field(static=True)
    layers: int = eqx.field(static=True)
    width: int = eqx.field(static=True)
    depth: int = eqx.field(static=True)
    knots: int = eqx.field(static=True)
    interval: float = eqx.field(static=True)
    radial_knots: int = eqx.field(static=True)
    radial_width: int = eqx.field(static=True)
    looks_at_state: bool = eqx.field(static=True)

    name = "flow"
    explanation = "normalising flow with a known density: exact under Metropolis-Hastings"

    def __init__(
        self,
        key: PRNGKeyArray,
        dim: int,
        *,
        layers: int | None = None,
        width: int = 64,
        depth: int = 2,
        knots: int | None = None,
        interval: float = 10.0,
        radial: bool = True,
        radial_knots: int = 24,
        radial_width: int = 32,
        conditional: bool = False,
        tails: bool = True,
    ):
        self.dim = checks.integer("dim", dim, 1)
        layers = (4 if dim <= _FEW_DIMENSIONS else 6) if layers is None else layers
        self.layers = checks.integer("layers", layers, 1)
        self.width = checks.integer("width", width, 1)
        self.depth = checks.integer("depth", depth, 1)
        self.knots = _knots("knots", min(max(80 // dim, 6), 16) if knots is None else knots)
        self.interval = float(checks.real("interval", interval, above=0.0))
        self.radial_knots = _knots("radial_knots", radial_knots)
        self.radial_width = checks.integer("radial_width", radial_width, 1)
        self.looks_at_state = bool(conditional)

        generator, seen = numpy_generator(key), dim if conditional else 0
        # Last layers of zeros: all splines start as the identity.
        outputs = (dim - dim // 2) * parameter_count(self.knots)
        self.couplings = network(
            generator,
            [dim // 2 + seen, *[width] * depth, outputs],
            jax.nn.relu,
            last_gain=0.0,
            bias_scale=0.5,
            stack=(layers,),
        )
        if radial and dim > 1:
            sizes = [dim + seen, radial_width, parameter_count(self.radial_knots)]
            self.radial_network = network(
                generator, sizes, jax.nn.relu, last_gain=0.0, bias_scale=0.5
            )
            self.centre = on_device(np.zeros(dim))
        else:
            self.radial_network = self.centre = None
        self.tails = on_device(np.zeros(dim + 1 if dim > 1 else 1)) if tails else None

    def description(self) -> dict[str, Any]:
        same = ("dim", "layers", "width", "depth", "knots", "interval")
        return {name: getattr(self, name) for name in (*same, "radial_knots", "radial_width")} | {
            "radial": self.radial_network is not None,
            "conditional": self.looks_at_state,
            "tails": self.tails is not None,
        }

    @classmethod
    def from_description(cls, description: dict[str, Any]) -> "FlowKernel":
        # Files from before there were tails do not tell.
        return super().from_description({"tails": False, **description})

    @property
    def noise_dim(self) -> int:
        return self.dim

    @property
    def independent(self) -> bool:
        return not self.looks_at_state

    def log_densities(self, new: Points, old: Points) -> Values:
        noise, log_scale = self._to_noise(new.T, self._seen(old))
        return _log_normal(noise) + log_scale

    def propose_with_density(self, points: Points, noise: Noise) -> tuple[Points, Values]:
        new, log_scale = self._from_noise(noise.T, self._seen(points))
        return new.T, _log_normal(noise.T) - log_scale

    def propose_ahead(
        self, noise: Float[Array, "steps n noise_dim"]
    ) -> tuple[Float[Array, "steps n dim"], Float[Array, "steps n"]]:
        flat = noise.reshape(-1, self.dim).T
        new, log_scale = self._from_noise(flat, None, unroll=self.dim > _FEW_DIMENSIONS)
        log_q = (_log_normal(flat) - log_scale).reshape(noise.shape[:2])
        return new.T.reshape(noise.shape), log_q

    @property
    def latent(self) -> bool:
        return self.independent

    def from_noise(self, noise: Noise, points: Points | None = None) -> tuple[Points, Values]:
        """x' = T(ξ; x) and log |det ∂T/∂ξ|; x is needed only where T looks at it."""
        new, log_scale = self._from_noise(noise.T, None if points is None else self._seen(points))
        return new.T, log_scale

    def to_noise(self, new: Points, points: Points | None = None) -> tuple[Noise, Values]:
        """ξ with T(ξ; x) = x', and log |det ∂ξ/∂x'|; x is needed only where T looks at it."""
        noise, log_scale = self._to_noise(new.T, None if points is None else self._seen(points))
        return noise.T, log_scale

    @property
    def _grid(self) -> Grid:
        return wide_grid(self.knots, self.interval)

    @property
    def _radial_grid(self) -> Grid:
        # N(0, I) has its mass at a radius of √d give or take 0.7, in every dimension.
        return radial_grid(self.radial_knots, float(np.sqrt(self.dim)), self.interval)

    @property
    def _heaviness(self) -> Float[Array, " tails"]:
        assert self.tails is not None
        # The squared radius of N(0, I) is about its dimension.
        units = np.where(np.arange(len(self.tails)) < self.dim, 1.0, 1.0 / self.dim)
        return on_device(_HEAVINESS * units) * jnp.exp(_TAIL_UNIT * self.tails)

    def _seen(self, points: Points) -> Batch | None:
        return points.T if self.looks_at_state else None

    def _from_noise(
        self, noise: Batch, state: Batch | None, unroll: bool = False
    ) -> tuple[Batch, LogScales]:
        # Compiled loops run on one core, so that only unrolled layers gain from this rule.
        rule = functools.partial(spline_inverse, written_out=unroll)

        def layer(
            carry: tuple[Batch, LogScales], inputs: tuple[Network, Array]
        ) -> tuple[tuple[Batch, LogScales], None]:
            (points, total), (conditioner, order) = carry, inputs
            points, log_scale = couple(conditioner, points[order], state, self._grid, rule)
            return (points, total + log_scale), None

        orders = np.argsort(_orders(self.dim, self.layers), axis=1)
        start = (noise, jnp.zeros(noise.shape[1], noise.dtype))
        inputs = (self.couplings, jnp.asarray(orders))
        (points, total), _ = jax.lax.scan(layer, start, inputs, reverse=True, unroll=unroll)
        if self.radial_network is not None and self.centre is not None:
            points, log_scale = stretch_radius(
                self.radial_network, points, state, self._radial_grid, spline_inverse
            )
            points, total = points + self.centre[:, None], total + log_scale
        if self.tails is not None:
            points, log_scale = make_heavy(points, self._heaviness)
            total = total + log_scale
        return points, total

    def _to_noise(self, points: Batch, state: Batch | None) -> tuple[Batch, LogScales]:
        def layer(
            carry: tuple[Batch, LogScales], inputs: tuple[Network, Array]
        ) -> tuple[tuple[Batch, LogScales], None]:
            (points, total), (conditioner, order) = carry, inputs
            points, log_scale = couple(conditioner, points, state, self._grid, spline)
            return (points[order], total + log_scale), None

        total = jnp.zeros(points.shape[1], points.dtype)
        if self.tails is not None:
            points, total = lighten(points, self._heaviness)
        if self.radial_network is not None and self.centre is not None:
            centred = points - self.centre[:, None]
            points, log_scale = stretch_radius(
                self.radial_network, centred, state, self._radial_grid, spline
            )
            total = total + log_scale
        inputs = (self.couplings, jnp.asarray(_orders(self.dim, self.layers)))
        return jax.lax.scan(layer, (points, total), inputs)[0]


def _knots(name: str, value: Any) -> int:
    """At least two bins, and room for each of them."""
    limit = int(0.25 / MIN_SHARE)
    if checks.integer(name, value, 2) > limit:
        checks.fail(name, f"at most {limit}", value)
    return int(value)


def _orders(dim: int, layers: int) -> Int[np.ndarray, "layers dim"]:
    """The order of the coordinates after each coupling, on the way to the noise.

    The halves change places after the first coupling, so that two move every coordinate; in more
    than three dimensions every other order is random, so that all pairs of coordinates meet. The
    last one undoes all before it: with splines that are the identity, so is the flow.
    """
    # The legacy generator: NumPy promises that its numbers never change, and saved kernels rely
    # on them.
    generator = np.random.RandomState(0)
    swap, place, orders = np.roll(np.arange(dim), dim // 2), np.arange(dim), []
    for i in range(layers - 1):
        orders.append(swap if dim <= 3 or i % 2 == 0 else generator.permutation(dim))
        place = place[orders[-1]]
    return np.array([*orders, np.argsort(place)])


def _log_normal(noise: Batch) -> LogScales:
    return -0.5 * jnp.sum(noise * noise, axis=0) - 0.5 * len(noise) * np.log(2 * np.pi)
