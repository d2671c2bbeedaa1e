"""NumPyro's models as targets.

The log density is minus NumPyro's potential energy: the log joint density of parameters and data,
with the log Jacobian of the map from unconstrained variables. So its integral is the evidence.
"""

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from salmc import checks
from salmc.annotations import Annotations
from salmc.errors import TargetError
from salmc.models.common import (
    PRIOR_DRAWS,
    coordinate_names,
    need,
    reason,
    vector,
    without_tails,
)
from salmc.target import Point, Scalar, Target


def from_numpyro(model: Any, /, *args: Any, **kwargs: Any) -> Target:
    """A NumPyro model, with its data, as a target.

    Args:
        model: the function that you would give to `NUTS`.
        args, kwargs: what you would give to `mcmc.run` after the key.

    Returns:
        A target whose `name` is the model's. `draws.to_arviz()` then has the model's sites, axes
        named by its plates, observed data, log likelihood and posterior predictive draws. Labels
        along the axes: `from_numpyro(…).labelled(coords={"school": names})`.

    Raises:
        MissingPackageError: without NumPyro: pip install "salmc[numpyro]".
        TargetError: if the model has discrete variables or data that are NaN, takes minibatches,
            or does not run.
    """
    need("numpyro", "NumPyro", "from_numpyro")
    from numpyro.infer.util import constrain_fn, potential_energy, unconstrain_fn

    if not callable(model):
        checks.fail("model", "a function, as NumPyro's NUTS takes it", model)
    name = _name(model)
    trace = _trace(model, args, kwargs, name)
    _check(trace, name)
    sampled = _sampled(trace)
    unconstrained = jax.eval_shape(lambda: unconstrain_fn(model, args, kwargs, sampled))
    _, unravel = vector({site: np.zeros(like.shape) for site, like in unconstrained.items()})

    def log_density(x: Point) -> Scalar:
        return -potential_energy(model, args, kwargs, unravel(x))

    def constrain(x: Point) -> dict[str, Any]:
        values = constrain_fn(model, args, kwargs, unravel(x), return_deterministic=True)
        return {site: values[site] for site in trace if site in values}

    return Target(
        log_density,
        sum(int(np.size(value)) for value in unconstrained.values()),
        name=name,
        names=coordinate_names(unconstrained),
        constrain=constrain,
        start=_prior(model, args, kwargs, list(sampled)),
        annotations=_annotations(model, args, kwargs, trace, constrain),
    )


def _name(model: Any) -> str:
    """The function's own name, inside of handlers (`fn`) and `functools.partial` (`func`) too."""
    while not hasattr(model, "__name__"):
        model = getattr(model, "fn", None) or getattr(model, "func", None)
        if model is None:
            return "model"
    return model.__name__


def _trace(model: Callable[..., Any], args: Any, kwargs: Any, name: str) -> dict[str, Any]:
    """What the model does, once."""
    from numpyro import handlers
    from numpyro.infer.initialization import init_to_uniform

    # `init_to_uniform`: improper priors cannot be drawn from, and others take long to compile.
    seeded = handlers.substitute(handlers.seed(model, 0), substitute_fn=init_to_uniform)
    try:
        return handlers.trace(seeded).get_trace(*args, **kwargs)
    except Exception as error:
        raise TargetError(f"The model `{name}` does not run: {reason(error)}") from error


def _check(trace: dict[str, Any], name: str) -> None:
    discrete = [
        site["name"]
        for site in trace.values()
        if site["type"] == "sample" and not site["is_observed"] and site["fn"].support.is_discrete
    ]
    if discrete:
        raise TargetError(
            f"The model `{name}` has discrete variables, {', '.join(discrete)}, and salmc samples "
            "continuous ones. Sum them out, such as by numpyro.distributions.MixtureSameFamily."
        )
    small = [
        site["name"]
        for site in trace.values()
        if site["type"] == "plate" and site["args"][1] not in (None, site["args"][0])
    ]
    if small:
        raise TargetError(
            f"The model `{name}` takes minibatches in the plate {', '.join(small)}, so its density "
            "is random. Leave subsample_size out."
        )
    for site in trace.values():
        if site["type"] == "sample" and site["is_observed"] and _is_nan(site):
            raise TargetError(
                f"The data `{site['name']}` of the model `{name}` have values that are NaN, so its "
                "density is zero everywhere. Leave them out, or mask them by numpyro.handlers.mask."
            )


def _is_nan(site: dict[str, Any]) -> bool:
    """Whether data are NaN and count: behind a mask they do not."""
    value = np.asarray(site["value"])
    if value.dtype.kind != "f" or not np.any(np.isnan(value)):
        return False
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Out-of-support")
        return not np.all(np.isfinite(site["fn"].log_prob(site["value"])))


def _sampled(trace: dict[str, Any]) -> dict[str, Any]:
    """The values of the sites that are not given."""
    return {
        name: site["value"]
        for name, site in trace.items()
        if site["type"] == "sample" and not site["is_observed"]
    }


def _prior(
    model: Callable[..., Any], args: Any, kwargs: Any, sites: list[str]
) -> np.ndarray | None:
    """Unconstrained draws of the prior; None where there are none, as of an improper one."""
    from numpyro import handlers
    from numpyro.distributions import constraints
    from numpyro.infer.initialization import init_to_sample, init_to_uniform
    from numpyro.infer.util import unconstrain_fn

    # Unconstrained, these are of size 1 in every model; to draw from them takes long to compile.
    plain = (constraints.simplex, constraints.corr_cholesky, constraints.corr_matrix)

    def value(site: dict[str, Any]) -> Any:
        of_size_one = site["type"] == "sample" and site["fn"].support in plain
        return init_to_uniform(site) if of_size_one else init_to_sample(site)

    def one(key: Any) -> Any:
        seeded = handlers.substitute(handlers.seed(model, key), substitute_fn=value)
        found = handlers.trace(seeded).get_trace(*args, **kwargs)
        values = {site: found[site]["value"] for site in sites}
        return vector(unconstrain_fn(seeded, args, kwargs, values))[0]

    try:
        keys = jax.random.split(jax.random.key(1), PRIOR_DRAWS)
        return without_tails(np.asarray(jax.jit(jax.vmap(one))(keys)))
    # Models may do in their priors what does not vectorise: a start is a help and no need.
    except Exception:
        return None


def _annotations(
    model: Callable[..., Any],
    args: Any,
    kwargs: Any,
    trace: dict[str, Any],
    constrain: Callable[[Point], dict[str, Any]],
) -> Annotations:
    from arviz_base.io_numpyro import infer_dims
    from numpyro import handlers
    from numpyro.distributions import Unit
    from numpyro.infer import Predictive

    # `numpyro.factor` is a site of the kind Unit, which has no data.
    observed = {
        name: np.asarray(site["value"])
        for name, site in trace.items()
        if site["type"] == "sample" and site["is_observed"] and not isinstance(site["fn"], Unit)
    }
    latent = _sampled(trace)

    def log_likelihood(x: Point) -> dict[str, Any]:
        values = {name: value for name, value in constrain(x).items() if name in latent}
        given = handlers.substitute(handlers.seed(model, 0), data=values)
        found = handlers.trace(given).get_trace(*args, **kwargs)
        return {name: found[name]["fn"].log_prob(found[name]["value"]) for name in observed}

    def predict(seed: int, variables: Mapping[str, Any]) -> dict[str, Any]:
        values = {name: value for name, value in variables.items() if name in latent}
        predictive = Predictive(
            _as_many(handlers.uncondition(model), observed),
            values,
            return_sites=list(observed),
            parallel=True,
        )
        return dict(predictive(jax.random.key(seed), *args, **kwargs))

    return Annotations(
        dims={name: tuple(names) for name, names in infer_dims(model, args, kwargs).items()},
        observed=observed,
        log_likelihood=log_likelihood if observed else None,
        predict=predict if observed else None,
        predicted=None,  # one program predicts all at once
    )


def _as_many(model: Callable[..., Any], observed: Mapping[str, np.ndarray]) -> Callable[..., Any]:
    """The model, with as many new data as there are observed ones.

    Without a plate around it, `sample("y", Normal(μ, 1), obs=y)` would predict a single number.
    """
    from numpyro.primitives import Messenger

    class AsMany(Messenger):
        def process_message(self, msg: Any) -> None:
            if msg["type"] != "sample" or msg["name"] not in observed or msg["value"] is not None:
                return
            shape, distribution = observed[msg["name"]].shape, msg["fn"]
            if tuple(distribution.shape()) != shape:
                batch = shape[: len(shape) - distribution.event_dim]
                msg["fn"] = distribution.expand(batch)

    return AsMany(model)
