"""What the words on the command line mean: options that commands share, and how they are read."""

import dataclasses
import difflib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from salmc.errors import ArgumentError

if TYPE_CHECKING:
    import jax

    from salmc.movers.base import AbstractMover
    from salmc.target import AbstractTarget

MOVER_STEPS = 1000
"""Steps of a mover where none are asked for."""

Steps = Annotated[
    int | None,
    typer.Option(
        help="Number of steps.", show_default=f"as the kernel needs; {MOVER_STEPS} for movers"
    ),
]
Seed = Annotated[int, typer.Option(help="The same seed gives the same results.")]
METROPOLIS = ("Reject some proposals.", "--metropolis/--no-metropolis")
METROPOLIS_DEFAULT = "where that makes draws exact"
Metropolis = Annotated[
    bool | None,
    typer.Option(METROPOLIS[1], help=METROPOLIS[0], show_default=METROPOLIS_DEFAULT),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A setting of the method; repeatable."),
]
Out = Annotated[Path | None, typer.Option(help="The folder to write.", show_default="runs/…")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what salmc wrote before.")]
NoPlots = Annotated[bool, typer.Option("--no-plots", help="Draw no pictures.")]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print the name of what was written only.")
]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks.")]

_START_STREAM = 1_000_003
"""Keeps the random numbers of a given start apart from those of the run of the same seed."""


def parse_settings(pairs: list[str]) -> dict[str, Any]:
    """["step_size=0.1"] ↦ {"step_size": 0.1}."""
    settings: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name or not text.strip():
            raise ArgumentError(
                f"The `--set` option must be NAME=VALUE, as in --set step_size=0.1. "
                f"Got {pair!r} instead."
            )
        if name in settings:
            raise ArgumentError(f"The setting `{name}` was given twice.")
        settings[name] = _value(text.strip())
    return settings


def with_changes(defaults: Any, changes: dict[str, Any]) -> Any:
    """Settings of training with some of them changed; on the command line 1 and 1.0 are equal."""
    for name, value in changes.items():
        if isinstance(getattr(defaults, name, None), float) and type(value) is int:
            changes = {**changes, name: float(value)}
    return defaults.replace(**changes)


def find_method(name: str) -> "type[AbstractMover] | None":
    """The mover called `name`; None for a method that learns a kernel."""
    from salmc.movers import MOVERS

    if name in MOVERS:
        return MOVERS[name]
    from salmc.learning.fit import METHODS

    if name in METHODS:
        return None
    known = [*METHODS, *MOVERS]
    near = difflib.get_close_matches(name.lower(), known, n=2, cutoff=0.6)
    remedy = f"Did you mean {' or '.join(near)}?" if near else f"There are {', '.join(known)}."
    raise ArgumentError(f"There is no method `{name}`. {remedy}")


def refuse(why: str, **given: Any) -> None:
    """Options that mean nothing here are an error that names the first; None was not given."""
    for name, value in given.items():
        if value is not None:
            raise ArgumentError(f"The `--{name.replace('_', '-')}` option {why}")


def setting_names(method: "type[AbstractMover]") -> tuple[str, ...]:
    """What `--set` may set."""
    fields = dataclasses.fields(method)
    return tuple(field.name for field in fields if field.init and field.name != "target")


def make_mover(
    method: "type[AbstractMover]", target: "AbstractTarget", settings: dict[str, Any]
) -> "AbstractMover":
    """A mover with its settings; an unknown one is an error that lists what there is."""
    names = setting_names(method)
    for name in settings:
        if name not in names:
            there = f"Its settings are {', '.join(names)}." if names else "It has no settings."
            raise ArgumentError(f"The method {method.name} has no setting `{name}`. {there}")
    return method(target, **settings)


def parse_start(text: str) -> float | None:
    """ "auto" ↦ None; "normal:2.5" ↦ 2.5, the variance."""
    if text == "auto":
        return None
    kind, colon, number = text.partition(":")
    variance = _value(number) if colon and kind == "normal" else None
    if isinstance(variance, (int, float)) and not isinstance(variance, bool):
        variance = float(variance)
        if 0 < variance < float("inf"):
            return variance
    raise ArgumentError(
        "The `--start` option must be auto, or normal:V with a variance V above 0, as in "
        f"normal:2.5. Got {text!r} instead."
    )


def normal_start(
    target: "AbstractTarget", variance: float, particles: int, seed: int
) -> "jax.Array":
    """Particles from N(0, variance I)."""
    import jax

    from salmc import checks

    checks.integer("particles", particles, 1)
    checks.integer("seed", seed, 0)
    key = jax.random.fold_in(jax.random.key(seed), _START_STREAM)
    return variance**0.5 * jax.random.normal(key, (particles, target.dim))


def _value(text: str) -> Any:
    words: dict[str, Any] = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
