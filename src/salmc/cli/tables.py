"""What the commands print, as Rich tables. Everything comes from what is in the folder."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from salmc.json_values import printable

if TYPE_CHECKING:
    from salmc.report.comparison import Result
    from salmc.report.comparison_folder import Comparison
    from salmc.sampling.files.folder import RunFolder

MOST_ROWS = 30
_LEAST_NAME = 12
"""Characters of a name before it is folded."""
_GAP = 2

_STYLES = {"trustworthy": "bold green", "no problem found": "bold yellow"}


def print_run(console: Console, run: "RunFolder") -> None:
    """The summary: coordinates, figures, the verdict in colour."""
    from salmc.report.run_content import shown_table, target_name, untold_warnings

    draws, name = run.draws, target_name(run.settings)
    steps = 0 if draws.steps is None else int(draws.steps[-1])
    shape = f"{len(draws.positions):,} {draws.kind}, {steps:,} steps"
    console.print(f"\n[bold]{escape(draws.method)} on {escape(name)}[/]  [dim]{shape}[/]\n")
    shown = shown_table(run.settings, run.diagnostics, MOST_ROWS)
    if shown is None:
        console.print(escape(run.summary))
    else:
        print_numbers(console, shown.columns, shown.rows)
        if shown.more:
            console.print(f"[dim]… and {shown.more} more in diagnostics.json[/]")
        figures = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
        figures.add_column(style="dim")
        for label, value in shown.figures:
            figures.add_row(escape(label), escape(value))
        console.print()
        console.print(figures)
        verdict = run.diagnostics["verdict"]
        opening, *others = verdict["sentences"]
        console.print()
        # Runs of earlier versions have no degree.
        degree = verdict.get("degree", "trustworthy" if verdict["trustworthy"] else "")
        console.print(Text(opening, style=_STYLES.get(degree, "bold red")))
        for sentence in others:
            console.print(Text(f"  {sentence}"))
    for warning in untold_warnings({"warnings": draws.warnings}, run.diagnostics):
        console.print(f"[yellow]Warning:[/] {escape(warning)}")


def print_numbers(console: Console, columns: list[str], rows: list[list[str]]) -> None:
    """A table whose numbers are always whole, however narrow the terminal is.

    Long names are folded first; where that is not enough, columns go on in a second table below.
    """
    widths = [max(map(cell_len, cells)) for cells in zip(columns, *rows, strict=True)]
    name = min(widths[0], max(_LEAST_NAME, console.width - sum(w + _GAP for w in widths[1:])))
    parts: list[list[int]] = [[]]
    for column in range(1, len(columns)):
        used = name + sum(widths[i] + _GAP for i in (*parts[-1], column))
        if parts[-1] and used > console.width:
            parts.append([])
        parts[-1].append(column)
    if len(parts) > 1:
        # Room that one table lacked is there in two: names need no folding for nothing.
        most = max(sum(widths[i] + _GAP for i in part) for part in parts)
        name = min(widths[0], max(_LEAST_NAME, console.width - most))
    for number, part in enumerate(parts):
        if number:
            console.print()
        table = plain_table(columns[0], *(columns[i] for i in part), numbers_from=1)
        table.columns[0].width = name
        for row in rows:
            table.add_row(escape(row[0]), *(escape(row[i]) for i in part))
        for place, index in enumerate(part, start=1):
            table.columns[place].width, table.columns[place].no_wrap = widths[index], True
        console.print(table)


def plain_table(*columns: str, numbers_from: int | None = None, whole: int = 0) -> Table:
    """A table without lines, its first column in colour.

    Args:
        columns: the headings.
        numbers_from: the first of the columns that hold numbers, which stand at the right.
        whole: how many of the first columns are never broken into lines.
    """
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for position, column in enumerate(columns):
        at_right = numbers_from is not None and position >= numbers_from
        table.add_column(
            column,
            style="cyan" if position == 0 else None,
            justify="right" if at_right else "left",
            no_wrap=position < whole,
            overflow="fold",
        )
    return table


def print_files(console: Console, folder: Path) -> None:
    """Where everything is."""
    console.print(f"\n[bold]{escape(printable(str(folder)))}[/]", soft_wrap=True)
    entries = sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
    names = []
    for entry in entries:
        if entry.is_dir() and entry.suffix != ".zarr":
            inside = sorted(entry.iterdir())
            names += [f"{entry.name}/{item.name}" for item in inside]
        else:
            names.append(entry.name)
    console.print("[dim]" + escape(printable("  ".join(names))) + "[/]")
    if (folder / "report.html").is_file():
        page = printable(str(folder / "report.html"))
        console.print(f"Report: [bold]{escape(page)}[/]", soft_wrap=True)


def print_comparison(console: Console, compared: "Comparison") -> None:
    """One line for each method, bias always beside ESS; then what is wrong with each."""
    console.print(f"\n[bold]Methods on {escape(compared.target)}[/]\n")
    headings = "method|MMD²\n(floor)|KSD²\n(floor)|mean\nerror|sd ratio|ESS|seconds\n(+training)"
    table = plain_table(*headings.split("|"), "trust-\nworthy", numbers_from=1)
    for result in compared.results:
        table.add_row(result.method, *_comparison_cells(result))
    console.print(table)
    console.print()
    for result in compared.results:
        for sentence in _troubles(result):
            console.print(Text.assemble((f"{result.method}: ", "cyan"), sentence))
    console.print(
        "\n[dim]Mean error: the largest, in true sd. sd ratio: sample sd / true sd, smallest and "
        "largest. ESS: the smallest over coordinates, all chains together; it does not see bias, "
        "and is not defined for particles.[/]"
    )


def _comparison_cells(result: "Result") -> list[Text]:
    figures = result.diagnostics
    if not figures:
        return [Text("–", style="dim")] * 6 + [Text("no", style="bold red")]
    moments = figures.get("moments") or {}
    errors = [abs(v) for v in moments.get("mean_error", []) if v is not None]
    ratios = [v for v in moments.get("sd_ratio", []) if v is not None]
    return [
        _with_floor(figures.get("mmd") or {}),
        _with_floor(figures.get("ksd") or {}),
        Text(_number(max(errors, default=None))),
        Text(f"{min(ratios):.2f}–{max(ratios):.2f}" if ratios else "–"),
        Text(_number(figures.get("smallest_ess"))),
        _seconds(figures.get("seconds"), result.training_seconds),
        Text("yes", style="bold green") if result.trustworthy else Text("no", style="bold red"),
    ]


def _troubles(result: "Result") -> list[str]:
    verdict = result.diagnostics.get("verdict") or {}
    if not verdict:
        return [result.trouble or "not judged"]
    # The first sentence is the finding, which the table shows; the next says why.
    return [] if result.trustworthy else list(verdict.get("sentences", []))[1:2]


def _with_floor(judged: dict[str, Any]) -> Text:
    value, floor = judged.get("value"), judged.get("floor")
    if value is None or floor is None:
        return Text(_number(value))
    style = "green" if value <= floor else "red"
    return Text.assemble((_number(value), style), (f" ({_number(floor)})", "dim"))


def _seconds(drawing: float | None, training: float) -> Text:
    more = f" (+{_number(training)})" if training else ""
    return Text.assemble(_number(drawing), (more, "dim"))


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    if value and abs(value) < 1e-2:
        return f"{value:.1e}".replace("e-0", "e-")
    return f"{value:.2g}"
