"""`salmc show`: open a folder again and print what is in it."""

from pathlib import Path
from typing import Annotated

import typer

from salmc.cli.console import one_sentence, output


def show(
    folder: Annotated[Path, typer.Argument(help="A folder that `run` or `compare` wrote.")],
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Open a run folder again and print its summary."""
    with one_sentence(debug=debug):
        from salmc.cli import tables
        from salmc.report.comparison_folder import FORMATS, open_comparison
        from salmc.sampling.files.archive import damaged
        from salmc.sampling.files.folder import open_run, read_json

        console = output()
        # Nothing is shown of a folder that cannot be shown in full.
        with damaged(folder, "it does not hold what it should"), console.capture() as shown:
            if read_json(folder / "settings.json", folder).get("format") in FORMATS:
                tables.print_comparison(console, open_comparison(folder))
            else:
                tables.print_run(console, open_run(folder))
            tables.print_files(console, folder)
        console.file.write(shown.get())
