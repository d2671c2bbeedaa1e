"""The command line: parse, call, write. No mathematics, and nothing heavy before a command runs."""

from typing import Annotated

import typer

from salmc.cli.compare import compare
from salmc.cli.console import remembering
from salmc.cli.further import SETTINGS, FurtherCommands
from salmc.cli.images import app as images
from salmc.cli.run import run
from salmc.cli.sample import sample
from salmc.cli.show import show
from salmc.cli.targets_and_methods import list_methods, list_targets

app = typer.Typer(
    name="salmc",
    cls=FurtherCommands,
    help="Learned Bayesian sampling: move particles onto a density, and judge what came of it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings=SETTINGS,
)
app.command("run")(remembering(run))
app.command("sample")(remembering(sample))
app.command("compare")(remembering(compare))
app.command("show")(show)
app.add_typer(images, name="images")
app.command("targets")(list_targets)
app.command("methods")(list_methods)


def _version(wanted: bool) -> bool:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"salmc {version('salmc')}")
        raise typer.Exit
    return wanted


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    del version


def main() -> None:
    """What the `salmc` command calls."""
    app()
