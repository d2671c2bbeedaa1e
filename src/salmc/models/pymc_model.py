"""PyMC's models as targets, by PyTensor's own translation to JAX.

The log density is PyMC's `model.logp()`: the log joint density over its value variables, with the
log Jacobians of their transforms. So its integral is the evidence.
"""

import contextlib
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from salmc import checks
from salmc.annotations import Annotations
from salmc.errors import TargetError
from salmc.models import pytensor_functions
from salmc.models.common import (
    PRIOR_DRAWS,
    coordinate_names,
    need,
    reason,
    vector,
    without_tails,
)
from salmc.target import Point, Scalar, Target


def from_pymc(model: Any) -> Target:
    """A PyMC model as a target.

    Args:
        model: the `pm.Model`.

    Returns:
        A target with the model's name. `draws.to_arviz()` then has the model's variables, its
        `dims` and `coords`, observed and constant data, log likelihood and posterior predictive
        draws, as `pm.sample` and `pm.sample_posterior_predictive` would give them.

    Raises:
        MissingPackageError: without PyMC: pip install "salmc[pymc]".
        TargetError: if the model has discrete variables, or PyTensor has no JAX for it.
    """
    pymc = need("pymc", "PyMC", "from_pymc")

    from pymc.util import get_default_varnames

    if not isinstance(model, pymc.Model):
        checks.fail("model", "a PyMC model", model)
    name = model.name or "pymc"
    _check(model, name)
    initial = model.initial_point()
    unconstrained = {variable.name: initial[variable.name] for variable in model.value_vars}
    # τ, and not τ_log__, which is PyMC's own affair.
    called = {value.name: variable.name for variable, value in model.rvs_to_values.items()}
    _, unravel = vector(unconstrained)
    shown = get_default_varnames(model.unobserved_value_vars, include_transformed=False)
    translate = _Translation(model, name, list(unconstrained), unravel)
    density = translate(lambda: [model.logp()])
    variables = translate(lambda: shown)
    names = [variable.name for variable in shown]

    def log_density(x: Point) -> Scalar:
        return density(x)[0]

    def constrain(x: Point) -> dict[str, Any]:
        return dict(zip(names, variables(x), strict=True))

    return Target(
        log_density,
        sum(int(np.size(value)) for value in unconstrained.values()),
        name=name,
        names=coordinate_names(unconstrained, called),
        constrain=constrain,
        start=_prior(model, list(unconstrained)),
        annotations=_annotations(model, translate),
    )


def _check(model: Any, name: str) -> None:
    discrete = [variable.name for variable in model.discrete_value_vars]
    if not discrete:
        return
    # Of missing counts PyMC makes variables, which nobody wrote and a mixture does not sum out.
    missing = all(variable.endswith("_unobserved") for variable in discrete)
    raise TargetError(
        f"The model `{name}` has discrete variables, {', '.join(discrete)}, and salmc samples "
        "continuous ones. "
        + (
            "They stand for data that are missing: leave those out of `observed`."
            if missing
            else "Sum them out, such as by pymc_extras.marginalize or pm.Mixture."
        )
    )


class _Translation:
    """PyTensor graphs over the value variables as JAX functions of one vector."""

    def __init__(self, model: Any, name: str, order: list[str], unravel: Callable[..., Any]):
        self._model, self._name, self._order, self._unravel = model, name, order, unravel

    def __call__(self, outputs: Callable[[], list[Any]]) -> Callable[[Point], list[Any]]:
        with _own_precision(), pytensor_functions.translated():
            try:
                from pymc.sampling.jax import get_jaxified_graph

                graph = get_jaxified_graph(inputs=self._model.value_vars, outputs=outputs())
            except Exception as error:
                raise TargetError(
                    f"PyTensor cannot turn the model `{self._name}` into JAX: {reason(error)} "
                    "Write that part with functions that it can, or give the density to "
                    "salmc.Target.from_numpy."
                ) from error

        def function(x: Point) -> list[Any]:
            values = self._unravel(x)
            # The constants of a graph are of 64 bits: JAX would tell at each that it makes 32.
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message=".*requested dtype.*")
                found = graph(*(values[name] for name in self._order))
            return [jnp.asarray(value, dtype=x.dtype) for value in found]

        return function


@contextlib.contextmanager
def _own_precision() -> Iterator[None]:
    """PyTensor sets JAX's precision for the whole process when it is imported: set it back."""
    before = bool(jax.config.read("jax_enable_x64"))
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", before)


@contextlib.contextmanager
def _without_a_word() -> Iterator[None]:
    """PyMC tells of each prediction what it samples, and that potentials count for nothing."""
    logger = logging.getLogger("pymc.sampling.forward")
    before = logger.level
    logger.setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*[Pp]otentials")
            yield
    finally:
        logger.setLevel(before)


def _prior(model: Any, order: list[str]) -> np.ndarray | None:
    """Unconstrained draws of the prior; None where there are none, as of a flat one."""
    from pymc.initial_point import make_initial_point_fn

    try:
        draw = make_initial_point_fn(model=model, default_strategy="prior", return_transformed=True)
        points = [draw(seed) for seed in range(PRIOR_DRAWS)]
        flat = [np.concatenate([np.ravel(point[n]) for n in sorted(order)]) for point in points]
        return without_tails(np.asarray(flat, dtype=float))
    # A prior that cannot be drawn from fails in as many ways as there are distributions.
    except Exception:
        return None


def _annotations(model: Any, translate: _Translation) -> Annotations:
    from pymc.backends.arviz import find_constants, find_observations

    observed = find_observations(model)
    likelihood = None
    if observed:
        sites = [v for v in model.observed_RVs if v.name in observed]
        names = [site.name for site in sites]
        parts = translate(lambda: model.logp(vars=sites, sum=False))

        def likelihood(x: Point) -> dict[str, Any]:
            return dict(zip(names, parts(x), strict=True))

    frozen = _frozen(model)

    def predict(seed: int, variables: Mapping[str, Any]) -> dict[str, Any]:
        return _predict(frozen, seed, variables, list(observed))

    coords = {name: labels for name, labels in model.coords.items() if labels is not None}
    return Annotations(
        dims={name: tuple(dims) for name, dims in model.named_vars_to_dims.items() if all(dims)},
        coords={name: np.asarray(labels) for name, labels in coords.items()},
        observed=observed,
        constants=find_constants(model),
        log_likelihood=likelihood,
        predict=predict if observed else None,
    )


def _frozen(model: Any) -> Any:
    """The model with all data and lengths of axes as they are.

    Where they could change, PyMC would draw whatever depends on them anew, from the prior.
    """
    from pymc.model.transform.optimization import freeze_dims_and_data

    # PyMC refuses to copy a model with an `initval`, which predictions have no use for.
    values = model.rvs_to_initial_values
    try:
        model.rvs_to_initial_values = dict.fromkeys(values)
        return freeze_dims_and_data(model)
    finally:
        model.rvs_to_initial_values = values


def _predict(
    model: Any, seed: int, variables: Mapping[str, Any], sites: list[str]
) -> dict[str, Any]:
    """New data of the observed sites, by `pm.sample_posterior_predictive`."""
    import pymc
    import xarray

    free = {variable.name for variable in model.free_RVs}
    points = {
        name: (("chain", "draw", *(f"{name}_{i}" for i in range(np.ndim(value) - 1))), value[None])
        for name, value in variables.items()
        if name in free
    }
    with model, _without_a_word():
        found = pymc.sample_posterior_predictive(
            xarray.Dataset(points),
            var_names=sites,
            random_seed=seed,
            progressbar=False,
            return_inferencedata=False,
        )
    return {name: np.asarray(found[name])[0] for name in sites}
