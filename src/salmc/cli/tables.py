"""What the commands print, as Rich tables. Everything comes from what is in the folder."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from salmc.report.comparison_folder import Comparison, Result
    from salmc.sampling.folder import RunFolder

MOST_ROWS = 30


def print_run(console: Console, run: "RunFolder") -> None:
    """The summary: coordinates, figures, the verdict in colour."""
    from salmc.report.figures import training_figures

    draws, table = run.draws, run.diagnostics.get("table")
    name = run.settings.get("target") or run.settings.get("target_spec") or "unknown target"
    steps = 0 if draws.steps is None else int(draws.steps[-1])
    shape = f"{len(draws.positions):,} {draws.kind}, {steps:,} steps"
    console.print(f"\n[bold]{escape(draws.method)} on {escape(name)}[/]  [dim]{shape}[/]\n")
    if not isinstance(table, dict):
        console.print(escape(run.summary))
    else:
        _print_coordinates(console, table)
        figures = [(label, value) for label, value in table["figures"]]
        _print_figures(console, [*figures, *training_figures(run.settings)])
        _print_verdict(console, run.diagnostics["verdict"])
    told = " ".join(run.diagnostics.get("verdict", {}).get("sentences", []))
    for warning in draws.warnings:
        if warning not in told:
            console.print(f"[yellow]Warning:[/] {escape(warning)}")


def print_files(console: Console, folder: Path) -> None:
    """Where everything is."""
    console.print(f"\n[bold]{escape(str(folder))}[/]", soft_wrap=True)
    entries = sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
    names = []
    for entry in entries:
        if entry.is_dir() and entry.suffix != ".zarr":
            inside = sorted(entry.iterdir())
            names += [f"{entry.name}/{item.name}" for item in inside]
        else:
            names.append(entry.name)
    console.print("[dim]" + escape("  ".join(names)) + "[/]")
    if (folder / "report.html").is_file():
        console.print(f"Report: [bold]{escape(str(folder / 'report.html'))}[/]", soft_wrap=True)


def print_comparison(console: Console, compared: "Comparison") -> None:
    """One line for each method, bias always beside ESS; then what is wrong with each."""
    console.print(f"\n[bold]Methods on {escape(compared.target)}[/]\n")
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("method", style="cyan", overflow="fold")
    columns = (
        "MMD²\n(floor)",
        "KSD²\n(floor)",
        "mean\nerror",
        "sd ratio",
        "ESS",
        "seconds\n(+training)",
    )
    for column in columns:
        table.add_column(column, justify="right", overflow="fold")
    table.add_column("trust-\nworthy")
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
    good = bool((figures.get("verdict") or {}).get("trustworthy"))
    return [
        _with_floor(figures.get("mmd") or {}),
        _with_floor(figures.get("ksd") or {}),
        Text(_number(max(errors, default=None))),
        Text(f"{min(ratios):.2f}–{max(ratios):.2f}" if ratios else "–"),
        Text(_number(figures.get("smallest_ess"))),
        _seconds(figures.get("seconds"), result.training_seconds),
        Text("yes", style="bold green") if good else Text("no", style="bold red"),
    ]


def _troubles(result: "Result") -> list[str]:
    verdict = result.diagnostics.get("verdict") or {}
    if not verdict:
        return [result.trouble or "not judged"]
    # The first sentence is the finding, which the table shows; the next says why.
    return [] if verdict.get("trustworthy") else list(verdict.get("sentences", []))[1:2]


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


def _print_coordinates(console: Console, content: dict[str, Any]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    rows = content["rows"]
    # A column in which nothing is defined, as R-hat of particles, only takes room.
    kept = [
        i for i in range(len(content["columns"])) if i == 0 or any(row[i] != "–" for row in rows)
    ]
    for i in kept:
        left = i == 0
        table.add_column(
            content["columns"][i],
            justify="left" if left else "right",
            style="cyan" if left else None,
            no_wrap=True,
        )
    for row in rows[:MOST_ROWS]:
        table.add_row(*(escape(row[i]) for i in kept))
    console.print(table)
    if len(rows) > MOST_ROWS:
        console.print(f"[dim]… and {len(rows) - MOST_ROWS} more in diagnostics.json[/]")


def _print_figures(console: Console, figures: list[tuple[str, str]]) -> None:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim")
    table.add_column()
    for label, value in figures:
        table.add_row(escape(label), escape(value))
    console.print()
    console.print(table)


def _print_verdict(console: Console, verdict: dict[str, Any]) -> None:
    opening, *others = verdict["sentences"]
    console.print()
    console.print(Text(opening, style="bold green" if verdict["trustworthy"] else "bold red"))
    for sentence in others:
        console.print(Text(f"  {sentence}"))
