"""A plot of the overview: seconds to 10,000 effective draws, a row for each target."""

from pathlib import Path
from typing import Any

from benchmarks.peers.plan import PEERS, TARGETS
from benchmarks.peers.results import Row

_MARKERS = "oDsv^<>PXhp*"


def overview_picture(rows: list[Row], path: Path, effective: int = 10_000) -> None:
    """Filled markers are right; hollow ones are wrong or stuck, and their time means nothing."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import LogLocator, NullFormatter

    targets = [name for name in TARGETS if any(row.target == name for row in rows)]
    figure, axes = plt.subplots(figsize=(9.0, 0.42 * len(targets) + 1.6), layout="constrained")
    colours = plt.get_cmap("tab10")
    for index, (name, peer) in enumerate(PEERS.items()):
        colour = "black" if name == "salmc" else colours((index - 1) % 10)
        style: dict[str, Any] = {"marker": _MARKERS[index], "color": colour, "linestyle": "none"}
        filled, hollow = _points(rows, name, targets, effective)
        if not filled[0] and not hollow[0]:
            continue
        size = 9 if name == "salmc" else 6
        axes.plot(*filled, markersize=size, label=peer.title, **style)
        axes.plot(*hollow, markersize=size, fillstyle="none", **style)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_yticks(range(len(targets)), [TARGETS[name] for name in targets])
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=0.3)
    axes.set_xlabel(f"CPU seconds to {effective:,} effective draws; hollow: wrong or stuck")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    figure.savefig(path, dpi=120, metadata={"Software": None})
    plt.close(figure)


def _points(
    rows: list[Row], peer: str, targets: list[str], effective: int
) -> tuple[tuple[list[float], list[int]], tuple[list[float], list[int]]]:
    """Seconds and places of what is right, and of what came out and is not."""
    filled: tuple[list[float], list[int]] = ([], [])
    hollow: tuple[list[float], list[int]] = ([], [])
    for row in rows:
        time = row.time_to(effective)
        if row.peer != peer or time is None:
            continue
        right = row.right_at(effective)
        # A time that is extrapolated from chains that are stuck would stretch the axis for nothing.
        seconds = time.seconds if right else row.at(effective)["cpu_seconds"]
        chosen = filled if right else hollow
        chosen[0].append(seconds)
        chosen[1].append(targets.index(row.target))
    return filled, hollow
