"""The flow kernel: a bijection with the density that it says it has, in every shape it comes in."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from salmc.kernels import FlowKernel
from salmc.programs import on_device

SHAPES = {
    "1-d": {"dim": 1},
    "1-d conditional": {"dim": 1, "conditional": True},
    "2-d": {"dim": 2},
    "2-d conditional": {"dim": 2, "conditional": True},
    "5-d without radial layer": {"dim": 5, "radial": False, "layers": 3},
}
# Running sums over knots are written out: the fewer, the sooner compiled.
SHAPES = {name: {"knots": 6, "radial_knots": 6, **shape} for name, shape in SHAPES.items()}
every_shape = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
COUNT = 100
"""Points in a batch: the same for all tests, which then share compiled programs."""
# Ways to the same number differ by rounding alone, magnified by |∇ log q| < 1e3 and by knots that
# are sums: about 1e4 in all. In double precision that is 1e-12, and 1e-9 is far from any mistake.
SAME = {"rtol": 0.0, "atol": 1e-9}


@eqx.filter_jit
def from_noise(kernel, noise, points):
    return kernel.from_noise(noise, points)


@eqx.filter_jit
def to_noise(kernel, new, points):
    return kernel.to_noise(new, points)


@eqx.filter_jit
def log_densities(kernel, new, old):
    return kernel.log_densities(new, old)


@eqx.filter_jit
def propose_with_density(kernel, key, points):
    return kernel.propose_with_density(points, jax.random.normal(key, points.shape))


def bent(shape, seed=0, scale=0.02):
    """A kernel as if trained: random weights in the place of zeros, and a centre that moved.

    At 0.02 points move by one to five standard deviations. At 0.03 some of them leave the grids
    below, and at 0.1 there are spikes that only double precision and no grid resolves.
    """
    kernel = FlowKernel(jax.random.key(seed), width=16, **shape)
    generator = np.random.default_rng(seed)
    kernel = jax.tree.map(
        lambda leaf: on_device(np.asarray(leaf) + generator.normal(scale=scale, size=leaf.shape)),
        kernel,
    )
    if kernel.centre is None:
        return kernel
    return eqx.tree_at(lambda kernel: kernel.centre, kernel, kernel.centre + 0.4)


def normal(shape, seed=0, scale=1.0):
    return jnp.asarray(np.random.default_rng(seed).normal(scale=scale, size=shape), dtype=float)


def grid(dim, reach, count):
    """Midpoints of cells over [−reach, reach]^dim, and the volume of a cell."""
    axis = (np.arange(count) + 0.5) / count * 2 * reach - reach
    points = np.stack(np.meshgrid(*[axis] * dim, indexing="ij"), axis=-1).reshape(-1, dim)
    return jnp.asarray(points, dtype=float), (2 * reach / count) ** dim


@every_shape
def test_starts_as_the_standard_normal(shape):
    with jax.enable_x64(True):
        kernel = FlowKernel(jax.random.key(0), width=16, tails=False, **shape)
        new, old = normal((COUNT, kernel.dim), 1, 2.0), normal((COUNT, kernel.dim), 2)
        expected = np.sum(-0.5 * np.asarray(new) ** 2 - 0.5 * np.log(2 * np.pi), axis=1)
        np.testing.assert_allclose(log_densities(kernel, new, old), expected, **SAME)
        proposed, log_q = propose_with_density(kernel, jax.random.key(1), old)
        expected = np.sum(-0.5 * np.asarray(proposed) ** 2 - 0.5 * np.log(2 * np.pi), axis=1)
        np.testing.assert_allclose(log_q, expected, **SAME)


@every_shape
def test_is_a_bijection_with_its_log_determinant(shape):
    with jax.enable_x64(True):
        kernel = bent(shape, scale=0.1)
        noise, old = normal((COUNT, kernel.dim), 1, 1.5), normal((COUNT, kernel.dim), 2)

        @eqx.filter_jit
        def everything(kernel, noise, old):
            def one(noise, x):
                return kernel.from_noise(noise[None], x[None])[0][0]

            new, log_scale = kernel.from_noise(noise, old)
            jacobians = jax.vmap(jax.jacfwd(one))(noise, old)
            return new, log_scale, jacobians, kernel.log_densities(new, old)

        new, log_scale, jacobians, found = everything(kernel, noise, old)
        assert np.max(np.abs(new - noise)) > 0.3, "the weights must bend something"
        log_determinant = np.linalg.slogdet(np.asarray(jacobians))[1]
        np.testing.assert_allclose(log_scale, log_determinant, atol=1e-8)
        base = np.sum(-0.5 * np.asarray(noise) ** 2 - 0.5 * np.log(2 * np.pi), axis=1)
        np.testing.assert_allclose(found, base - log_determinant, atol=1e-6)
        back, inverse_log_scale = to_noise(kernel, new, old)
        np.testing.assert_allclose(back, noise, atol=1e-8)
        np.testing.assert_allclose(inverse_log_scale, -log_scale, atol=1e-6)


@pytest.mark.parametrize(
    ("shape", "count", "tolerance"),
    [
        # Tolerances: the midpoint rule for a density with kinks, at these spacings.
        (SHAPES["1-d"], 20_000, 1e-3),
        (SHAPES["1-d conditional"], 20_000, 1e-3),
        (SHAPES["2-d"], 300, 5e-3),
        (SHAPES["2-d conditional"], 300, 5e-3),
    ],
)
def test_density_integrates_to_one(shape, count, tolerance):
    kernel = bent(shape)
    points, volume = grid(kernel.dim, 8.0, count)
    old = jnp.broadcast_to(normal(kernel.dim, 3), points.shape)
    density = np.exp(np.asarray(log_densities(kernel, points, old), np.float64))
    assert np.sum(density) * volume == pytest.approx(1.0, abs=tolerance)


@pytest.mark.parametrize("name", ["1-d", "2-d", "2-d conditional"])
def test_proposals_have_the_density(name):
    kernel, draws = bent(SHAPES[name]), 100_000
    x = normal(kernel.dim, 3)
    fine, cells, reach = 300, 20, 8.0
    points, volume = grid(kernel.dim, reach, fine)
    old = jnp.broadcast_to(x, points.shape)
    density = np.exp(np.asarray(log_densities(kernel, points, old), np.float64))
    edges = [np.linspace(-reach, reach, cells + 1)] * kernel.dim
    weights = density * volume
    expected = np.histogramdd(np.asarray(points), bins=edges, weights=weights)[0]
    start = jnp.broadcast_to(x, (draws, kernel.dim))
    new = propose_with_density(kernel, jax.random.key(5), start)[0]
    found = np.histogramdd(np.asarray(new), bins=edges)[0] / draws
    # Five standard errors of a binomial share, and 1e-3 for the integral over a cell.
    assert np.all(np.abs(found - expected) < 5 * np.sqrt(expected / draws) + 1e-3)


@pytest.mark.parametrize("name", ["1-d conditional", "2-d"])
def test_one_point_and_batches_agree(name):
    with jax.enable_x64(True):
        kernel = bent(SHAPES[name])
        points, key = normal((COUNT, kernel.dim), 1), jax.random.key(1)
        new, log_q = propose_with_density(kernel, key, points)
        found = log_densities(kernel, new, points)
        np.testing.assert_allclose(found, log_q, **SAME)
        singly = eqx.filter_jit(jax.vmap(lambda a, b: kernel.log_densities(a[None], b[None])[0]))
        np.testing.assert_allclose(singly(new, points), found, **SAME)


@pytest.mark.parametrize("name", ["1-d conditional", "2-d"])
def test_single_precision_has_the_density_of_double_precision(name):
    """Within rounding times the condition number of each point, which reaches 500 here.

    A knot is the sum of up to K bins, of numbers up to `interval`: it is off by K · interval · ε/2,
    in each layer. That acts as a shift of x', which changes log q by |∇ log q| times as much, and
    as a change of widths, which are about 1, by about as much itself.
    """
    kernel = bent(SHAPES[name])
    points = normal((COUNT, kernel.dim), 1)
    new, _ = propose_with_density(kernel, jax.random.key(1), points)
    found = log_densities(kernel, new, points)
    assert found.dtype == jnp.float32
    with jax.enable_x64(True):
        kernel, new, points = jax.tree.map(
            lambda leaf: jnp.asarray(np.asarray(leaf, np.float64)), (kernel, new, points)
        )
        exact, slopes = eqx.filter_jit(
            lambda kernel, new, old: (
                kernel.log_densities(new, old),
                jax.vmap(jax.grad(lambda a, b: kernel.log_densities(a[None], b[None])[0]))(
                    new, old
                ),
            )
        )(kernel, new, points)
        assert exact.dtype == jnp.float64
    shift = kernel.layers * kernel.knots * kernel.interval * np.finfo(np.float32).eps / 2
    allowed = shift * (1 + np.linalg.norm(slopes, axis=1))
    assert np.all(np.abs(found - np.asarray(exact)) < allowed)


@pytest.mark.parametrize("dim", [2, 11])
def test_proposals_made_ahead_are_those_of_each_step(dim):
    with jax.enable_x64(True):
        kernel, noise = bent({"dim": dim, "layers": 2}), normal((3, COUNT, dim), 1)
        new, log_q = eqx.filter_jit(lambda kernel: kernel.propose_ahead(noise))(kernel)
        points = jnp.zeros((COUNT, dim))
        step = eqx.filter_jit(lambda kernel, *given: kernel.propose_with_density(*given))
        for i in range(3):
            expected, expected_log_q = step(kernel, points, noise[i])
            np.testing.assert_allclose(new[i], expected, **SAME)
            np.testing.assert_allclose(log_q[i], expected_log_q, **SAME)


@every_shape
def test_looks_at_the_state_only_if_it_says_so(shape):
    with jax.enable_x64(True):
        kernel = bent(shape)
        near, far = normal((COUNT, kernel.dim), 1), normal((COUNT, kernel.dim), 2)
        key = jax.random.key(1)
        new, _ = propose_with_density(kernel, key, near)
        from_elsewhere, _ = propose_with_density(kernel, key, far)
        assert np.array_equal(new, from_elsewhere) == kernel.independent
        assert kernel.independent is not kernel.looks_at_state


@pytest.mark.parametrize("name", ["1-d", "2-d conditional"])
def test_gradients_are_finite_far_out_and_at_the_origin(name):
    """Beyond that a tail overflows on the way from the noise, and the proposal is refused."""
    kernel = bent(SHAPES[name])
    places = np.array([0.0, 1e-20, 1e-6, 1.0, 5.0, -5.0, 50.0, -50.0, 1e4])
    points = jnp.asarray(np.tile(places[:, None], (1, kernel.dim)), dtype=float)
    if kernel.centre is not None:
        points = jnp.concatenate([points, kernel.centre[None]])

    def total(weights, points, method):
        values, log_scale = getattr(weights, method)(points, points)
        return jnp.sum(values) + jnp.sum(log_scale)

    for method, most in (("to_noise", 1e4), ("from_noise", 50.0)):
        points = jnp.clip(points, -most, most)
        differentiate = eqx.filter_jit(jax.value_and_grad(total, argnums=(0, 1)))
        for leaf in jax.tree.leaves(differentiate(kernel, points, method)):
            assert np.all(np.isfinite(leaf))


def test_far_points_stay_where_they_are():
    kernel = eqx.tree_at(
        lambda kernel: kernel.centre, bent(SHAPES["2-d"] | {"tails": False}), jnp.zeros(2)
    )
    points = jnp.array([[50.0, -50.0], [0.0, 60.0]])
    new, log_scale = from_noise(kernel, points, points)
    np.testing.assert_allclose(new[0], points[0], rtol=1e-6)
    np.testing.assert_allclose(log_scale[0], 0.0, atol=1e-6)


def test_the_radial_layer_alone_makes_a_shell():
    """A ring is what the layer is for: one constant, and all directions have the radius pushed."""
    kernel = FlowKernel(jax.random.key(0), 2, layers=1)
    bias = kernel.radial_network.biases[-1].at[:3].set(3.0)  # wide first bins in x, data to noise
    kernel = eqx.tree_at(lambda kernel: kernel.radial_network.biases[-1], kernel, replace=bias)
    kernel = eqx.tree_at(
        lambda kernel: kernel.couplings.weights[-1], kernel, replace_fn=jnp.zeros_like
    )
    new = propose_with_density(kernel, jax.random.key(1), jnp.zeros((10_000, 2)))[0]
    # 0.32 for N(0, I).
    assert np.quantile(np.linalg.norm(new, axis=1), 0.05) > 1.5


def test_three_sets_of_weights_share_one_trace():
    traces = []

    @eqx.filter_jit
    def traced(kernel, points):
        traces.append(None)
        return kernel.log_densities(points, points)

    points = normal((10, 2), 1)
    values = [np.asarray(traced(bent(SHAPES["2-d"], seed), points)) for seed in range(3)]
    assert len(traces) == 1
    assert not np.allclose(values[0], values[1])


@every_shape
def test_is_rebuilt_from_its_description(shape):
    kernel = bent(shape)
    rebuilt = FlowKernel.from_description(kernel.description())
    assert rebuilt.description() == kernel.description()
    assert jax.tree.structure(rebuilt) == jax.tree.structure(kernel)
    assert [leaf.shape for leaf in jax.tree.leaves(rebuilt)] == [
        leaf.shape for leaf in jax.tree.leaves(kernel)
    ]
