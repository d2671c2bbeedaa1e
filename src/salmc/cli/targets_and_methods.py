"""`salmc targets` and `salmc methods`: what there is, one line each."""

import dataclasses
from typing import Annotated

import typer

from salmc.cli.console import one_sentence, output
from salmc.cli.tables import plain_table


def list_targets() -> None:
    """List the built-in targets."""
    with one_sentence(debug=False):
        from salmc.targets import TARGETS

        table = plain_table("target", "dim", "what it is", whole=2)
        for name, entry in TARGETS.items():
            table.add_row(name, str(entry.dim), entry.explanation)
        output().print(table)
        output().print("[dim]Your own: salmc run my_model.py:target[/]")


def list_methods(
    settings: Annotated[
        bool, typer.Option("--settings", help="Also list what --set can set.")
    ] = False,
) -> None:
    """List the methods, whether they need a gradient, and the kernels that can be learned."""
    with one_sentence(debug=False):
        from salmc.cli.options import setting_names
        from salmc.kernels import KERNELS
        from salmc.learning.fit import METHODS, default_kernel, method_settings
        from salmc.movers import MOVERS

        more_columns = ["settings"] if settings else []
        table = plain_table("method", "gradient", "what it is", *more_columns, whole=2)
        for name, explanation in METHODS.items():
            defaults = method_settings(name, default_kernel(name), 2)
            learning = [field.name for field in dataclasses.fields(defaults)]
            more = [f"[dim]{', '.join(learning)}[/]"] if settings else []
            table.add_row(name, "[green]not needed[/]", explanation, *more)
        for name, mover in MOVERS.items():
            gradient = "needed" if mover.requires_gradient else "[green]not needed[/]"
            more = [f"[dim]{', '.join(setting_names(mover))}[/]"] if settings else []
            table.add_row(name, gradient, mover.explanation, *more)
        output().print(table)
        kernels = plain_table("kernel", "exact draws", "what it is", whole=2)
        for name, kernel in KERNELS.items():
            kernels.add_row(name, "[green]yes[/]" if kernel.exact else "no", kernel.explanation)
        output().print()
        output().print(kernels)
        output().print(
            "[dim]sal-mc and al-mc learn any, a-nice-mc learns nice: salmc run mog6 --kernel mlp[/]"
        )
