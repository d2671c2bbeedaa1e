"""NUTS, the sampler that users would pick instead: BlackJAX's, 32 chains in one program.

Warm-up is BlackJAX's window adaptation, for each chain on its own; afterwards all chains share the
geometric mean of the step sizes and the mean of the inverse mass matrices. Sharing makes NUTS
quicker here: chains that run in step wait for the longest trajectory among them, which one small
step size would set for all. Vectorised chains keep to one core or little more; `threads` runs them
in groups, as our own sampler does.

Reference: Hoffman & Gelman, "The No-U-Turn sampler", 2014. BlackJAX is in the extra `bench`.
"""

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from salmc import checks
from salmc.errors import SalmcError
from salmc.movers.base import check_at
from salmc.progress import AbstractReporter, SilentReporter
from salmc.sampling.draws import Draws
from salmc.sampling.executor import Threads
from salmc.target import AbstractTarget

_BLOCK = 250
"""Draws between two reports of progress, and between two moments to stop."""


class Adapted(NamedTuple):
    """What the warm-up found, for all chains."""

    step_size: Float[Array, ""]
    inverse_mass_matrix: Float[Array, "..."]


class _Kept(NamedTuple):
    """Of each draw and chain."""

    positions: Any
    log_density: Any
    leapfrogs: Any
    acceptance: Any
    diverged: Any


def nuts(
    target: AbstractTarget,
    *,
    chains: int = 32,
    draws: int = 2000,
    warmup: int = 1000,
    seed: int = 0,
    mass_matrix: str = "diagonal",
    threads: int = 1,
    target_acceptance: float = 0.8,
    start: Any = None,
    progress: AbstractReporter | None = None,
) -> Draws:
    """Draws by NUTS after window adaptation.

    Args:
        target: differentiable.
        chains: chains run together.
        draws: draws of each, all kept; those of the warm-up are not among them.
        warmup: steps of adaptation of each chain.
        seed: of everything random.
        mass_matrix: "diagonal", BlackJAX's and Stan's default, or "dense".
        threads: on which groups of chains run side by side after the warm-up; a divisor of
            `chains`.
        target_acceptance: what the step size is adapted to.
        start: (chains, dim); uniform on (−2, 2) in each coordinate, as in Stan, where it is None.
        progress: told how far it is.

    Returns:
        Draws of method "nuts". `seconds` is the time of sampling alone, `compile_seconds` that of
        compiling both parts; `settings` has "warmup_seconds", "step_size", "leapfrogs" (mean per
        draw), "acceptance" (mean) and "divergences" (their number).
    """
    _require_blackjax()
    target.require_gradient("nuts")
    for name, value, least in (("chains", chains, 1), ("draws", draws, 1), ("seed", seed, 0)):
        checks.integer(name, value, least)
    checks.integer("warmup", warmup, 20)
    checks.real("target_acceptance", target_acceptance, at_least=0.1, at_most=0.99)
    checks.integer("threads", threads, 1)
    if chains % threads:
        checks.fail("threads", f"a divisor of the {chains} chains", threads)
    checks.choice("mass_matrix", mass_matrix, ("diagonal", "dense"))
    start_key, warmup_key, key = jax.random.split(jax.random.key(seed), 3)
    if start is None:
        start = jax.random.uniform(start_key, (chains, target.dim), minval=-2.0, maxval=2.0)
    positions = jnp.asarray(start, dtype=float)
    if positions.shape != (chains, target.dim):
        checks.fail("start", f"an array of shape ({chains}, {target.dim})", positions.shape)
    check_at(target, positions)

    dense, began = mass_matrix == "dense", time.perf_counter()
    arguments = (target, warmup_key, positions, warmup, dense, target_acceptance)
    to_compile: Any = eqx.filter_jit(_adapt)
    adapt = to_compile.lower(*arguments).compile()
    compile_seconds = time.perf_counter() - began
    began = time.perf_counter()
    state, parameters = jax.block_until_ready(adapt(*arguments))
    warmup_seconds = time.perf_counter() - began
    began = time.perf_counter()
    size = chains // threads
    states = [_some(state, slice(i * size, (i + 1) * size)) for i in range(threads)]
    keys = [key] if threads == 1 else list(jax.random.split(key, threads))
    first = (target, states[0], parameters, key, _count(0), _count(1))
    to_compile = eqx.filter_jit(_advance)
    advance = to_compile.lower(*first).compile()
    compile_seconds += time.perf_counter() - began

    def group(state: Any, key: PRNGKeyArray) -> Iterator[_Kept]:
        for done in range(0, draws, _BLOCK):
            now = min(_BLOCK, draws - done)
            state, block = advance(target, state, parameters, key, _count(done), _count(now))
            yield _Kept(*(np.asarray(array)[:now] for array in block))

    report = SilentReporter() if progress is None else progress
    kept: list[_Kept] = []
    with report:
        report.start(f"nuts on {target.name}", draws)
        began = time.perf_counter()
        for blocks in Threads().run([group(*pair) for pair in zip(states, keys, strict=True)]):
            kept.append(_joined(blocks, axis=1))
            report.advance(len(kept[-1].positions))
        seconds = time.perf_counter() - began
    whole = _joined(kept, axis=0)
    return Draws(
        positions=np.moveaxis(whole.positions, 0, 1),
        log_density=whole.log_density.T,
        seconds=seconds,
        method="nuts",
        target=target,
        settings={
            "chains": chains,
            "draws": draws,
            "warmup": warmup,
            "seed": seed,
            "mass_matrix": mass_matrix,
            "threads": threads,
            "target_acceptance": target_acceptance,
            "warmup_seconds": warmup_seconds,
            "step_size": float(parameters.step_size),
            "leapfrogs": float(np.mean(whole.leapfrogs)),
            "acceptance": float(np.mean(whole.acceptance)),
            "divergences": int(np.sum(whole.diverged)),
        },
        compile_seconds=compile_seconds,
    )


def _count(value: int) -> np.ndarray:
    """Of one type on every thread, whatever precision JAX is set to there."""
    return np.array(value, np.int32)


def _some(state: Any, chains: slice) -> Any:
    return jax.tree.map(lambda values: values[chains], state)


def _joined(blocks: list[_Kept], axis: int) -> _Kept:
    return _Kept(*(np.concatenate(arrays, axis=axis) for arrays in zip(*blocks, strict=True)))


def _require_blackjax() -> None:
    try:
        import blackjax  # noqa: F401, only whether it is there
    except ImportError:
        raise SalmcError(
            "NUTS needs BlackJAX, which is not installed. Install it with "
            "pip install 'salmc[bench]'."
        ) from None


def _adapt(
    target: AbstractTarget,
    key: PRNGKeyArray,
    positions: Float[Array, "chains dim"],
    steps: int,
    dense: bool,
    target_acceptance: float,
) -> tuple[Any, Adapted]:
    """The state of each chain after the warm-up, and what all of them share from there on."""
    import blackjax
    from blackjax.adaptation.base import get_filter_adapt_info_fn

    warmup = blackjax.window_adaptation(
        blackjax.nuts,
        target.log_density,
        is_mass_matrix_diagonal=not dense,
        target_acceptance_rate=target_acceptance,
        adaptation_info_fn=get_filter_adapt_info_fn(),
    )

    def one_chain(key: PRNGKeyArray, position: Float[Array, " dim"]) -> Any:
        (state, parameters), _ = warmup.run(key, position, steps)
        return state, parameters["step_size"], parameters["inverse_mass_matrix"]

    keys = jax.random.split(key, len(positions))
    state, step_sizes, inverse_mass_matrices = jax.vmap(one_chain)(keys, positions)
    step_size = jnp.exp(jnp.mean(jnp.log(step_sizes)))
    return state, Adapted(step_size, jnp.mean(inverse_mass_matrices, axis=0))


def _advance(
    target: AbstractTarget,
    state: Any,
    adapted: Adapted,
    key: PRNGKeyArray,
    done: Array,
    steps: Array,
) -> tuple[Any, _Kept]:
    """`steps` draws of every chain, the first rows of arrays of `_BLOCK` rows."""
    import blackjax

    kernel = blackjax.nuts.build_kernel()
    chains, dim = state.position.shape

    def one_chain(key: PRNGKeyArray, state: Any) -> Any:
        return kernel(key, state, target.log_density, *adapted)

    def step(i: Array, carry: tuple[Any, _Kept]) -> tuple[Any, _Kept]:
        state, kept = carry
        keys = jax.random.split(jax.random.fold_in(key, done + i), chains)
        state, info = jax.vmap(one_chain)(keys, state)
        new = _Kept(
            state.position,
            state.logdensity,
            info.num_integration_steps,
            info.acceptance_rate,
            info.is_divergent,
        )
        return state, _Kept(*(old.at[i].set(row) for old, row in zip(kept, new, strict=True)))

    empty = _Kept(
        jnp.zeros((_BLOCK, chains, dim), state.position.dtype),
        jnp.zeros((_BLOCK, chains), state.logdensity.dtype),
        jnp.zeros((_BLOCK, chains), int),
        jnp.zeros((_BLOCK, chains), state.logdensity.dtype),
        jnp.zeros((_BLOCK, chains), bool),
    )
    return jax.lax.fori_loop(0, steps, step, (state, empty))
