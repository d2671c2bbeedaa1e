"""Commands that other packages add to `salmc`, found by their entry points.

A package declares a function that Typer can make a command of in the group `salmc.commands`:

    [project.entry-points."salmc.commands"]
    reproduce = "salmc_paper.command:reproduce"

Entry points are read when help lists all commands or a name is none of our own, and no sooner.
"""

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any

import typer
from typer.core import TyperGroup

from salmc.cli.console import BAD_INPUT, complain, remembering
from salmc.errors import reason

GROUP = "salmc.commands"
SETTINGS = {"help_option_names": ["-h", "--help"]}

_KNOWN = {"reproduce": "salmc_paper"}
"""Commands that documentation speaks of, and the packages that they come with."""


class FurtherCommands(TyperGroup):
    """Our own commands, and those of other packages after them.

    Contexts and commands are click's own, or those of the click that newer Typer has inside.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        own = super().list_commands(ctx)
        return [*own, *sorted(name for name in _found() if name not in own)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        found = _found().get(cmd_name)
        if found is not None:
            return _made(found)
        if cmd_name in _KNOWN:
            return _refusing(
                cmd_name,
                f"The command {cmd_name} comes with the package {_KNOWN[cmd_name]}, which is not "
                "installed: install the complete wheel with pip install --force-reinstall salmc.",
            )
        return None


def _found() -> dict[str, Any]:
    """Entry points: Python's own, or those of `importlib_metadata`, which takes its place."""
    return {point.name: point for point in entry_points(group=GROUP)}


def _made(point: Any) -> Any:
    """The command; one that says why if its package cannot be loaded, so that help goes on."""
    try:
        function = point.load()
    except Exception as error:
        sentence = f"The command {point.name} cannot be loaded from {point.module}: "
        return _refusing(point.name, f"{sentence}{reason(error).rstrip('.')}.")
    return _command(point.name, remembering(function))


def _refusing(name: str, sentence: str) -> Any:
    def refuse() -> None:
        complain(sentence)
        raise typer.Exit(BAD_INPUT)

    refuse.__doc__ = sentence
    # Whatever is asked of it, the answer is the same.
    anything = {"ignore_unknown_options": True, "allow_extra_args": True}
    return _command(name, refuse, **anything)


def _command(name: str, function: Callable[..., None], **settings: bool) -> Any:
    app = typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={**SETTINGS, **settings},
    )
    app.command(name)(function)
    return typer.main.get_command(app)
