"""The way of one chain, step by step, as numbers for a drawing that moves.

It moves by styles alone, without a script, and only for those whose system does not ask for less
motion; for others it stands still and shows the whole way.
"""

from typing import Any

import numpy as np

from salmc.diagnostics.summary import number
from salmc.report import style
from salmc.report.found_modes import FoundModes, found_modes
from salmc.report.words import counted
from salmc.sampling.draws import Draws

STEPS = 48
"""Draws of the way: at half a second for each the whole takes 24 seconds."""

SECONDS = 0.5
MOST_POINTS = 700
WIDTH, HEIGHT = 640.0, 420.0
LEFT, RIGHT, TOP, BOTTOM = 58.0, 12.0, 12.0, 44.0


def chain_path(draws: Draws) -> dict[str, Any] | None:
    """JSON values for the page; None for particles, and where there are too few draws."""
    found = found_modes(draws)
    if draws.kind != "chains" or found is None:
        return None
    kept = draws.chains().shape[1]
    shown = draws.shown.moving()
    values = shown.values[: len(found.labels), -kept:]
    if kept < 8:
        return None
    steps = min(STEPS, kept)
    chain, first, crossings = _stretch(found, steps)
    numbers = found.telling()
    sample = found.values.reshape(-1, found.values.shape[-1])
    labels = found.labels.ravel()
    if numbers[0] == numbers[1]:
        # One number: its value over the steps, above the values of all draws.
        way = np.stack([np.arange(steps), values[chain, first : first + steps, 0]], axis=1)
        generator = np.random.default_rng(0)
        cloud = np.stack([generator.uniform(0, steps - 1, len(sample)), sample[:, 0]], axis=1)
        names = ("step of the chain", found.names[0])
    else:
        way = values[chain, first : first + steps][:, list(numbers)]
        cloud = sample[:, list(numbers)]
        names = (found.names[numbers[0]], found.names[numbers[1]])
    windows = [style.window(np.concatenate([cloud, way])[:, i], margin=0.08) for i in (0, 1)]
    chosen = np.random.default_rng(1).permutation(len(cloud))[:MOST_POINTS]
    low, high = np.array(windows).T
    inside = chosen[np.all((cloud[chosen] >= low) & (cloud[chosen] <= high), axis=1)]
    placed = _placed(np.concatenate([way, cloud[inside]]), windows)
    telling = _words(found, draws, chain, first, steps, crossings)
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "frame": [LEFT, TOP, WIDTH - RIGHT, HEIGHT - BOTTOM],
        "names": [style.short(name, 40) for name in names],
        "ticks": [_ticks(windows[0], 0), _ticks(windows[1], 1)],
        "way": placed[:steps].tolist(),
        "cloud": [
            [*point, int(labels[i]) % len(style.SERIES)]
            for point, i in zip(placed[steps:].tolist(), inside, strict=True)
        ],
        "seconds": SECONDS,
        **telling,
    }


def _stretch(found: FoundModes, steps: int) -> tuple[int, int, int]:
    """Chain, first draw and crossings of the stretch that changes mode most often."""
    if found.stride > 1 or len(found.modes) < 2:
        # What lies between counted draws is not known: the beginning is as good as any.
        inside = found.labels[0, : max(1, steps // found.stride)]
        return 0, 0, int(np.sum(inside[1:] != inside[:-1])) if found.stride == 1 else -1
    changes = (found.labels[:, 1:] != found.labels[:, :-1]).astype(int)
    sums = np.concatenate([np.zeros((len(changes), 1), int), np.cumsum(changes, axis=1)], axis=1)
    counts = sums[:, steps - 1 :] - sums[:, : sums.shape[1] - steps + 1]
    chain, first = np.unravel_index(int(np.argmax(counts)), counts.shape)
    return int(chain), int(first), int(counts[chain, first])


def _words(
    found: FoundModes, draws: Draws, chain: int, first: int, steps: int, crossings: int
) -> dict[str, str]:
    of = f"{steps} consecutive draws of chain {chain + 1} of {len(draws.positions):,}, from draw"
    of = f"{of} {first + 1:,} on"
    several = len(found.modes) > 1 and crossings >= 0
    change = f" It changes mode {crossings} times." if several else ""
    choice = (
        " Of all chains, this is the stretch with the most changes"
        f" (in all, {found.crossings or 0.0:.1%} of steps change mode)."
        if several
        else ""
    )
    colours = ""
    if len(found.modes) > 1:
        colours = f", coloured by the {counted(len(found.modes), 'mode')} that they fall into"
    return {
        "alt": f"A dot that jumps through {of}.{change}",
        "caption": f"{of[0].upper()}{of[1:]}.{choice} The points behind it are draws{colours}.",
    }


def _placed(points: np.ndarray, windows: list[tuple[float, float]]) -> np.ndarray:
    """In units of the drawing, y downwards; what is outside stays at the edge."""
    (x0, x1), (y0, y1) = windows
    across = np.clip((points[:, 0] - x0) / (x1 - x0), 0, 1)
    up = np.clip((points[:, 1] - y0) / (y1 - y0), 0, 1)
    x = LEFT + across * (WIDTH - LEFT - RIGHT)
    y = HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)
    return np.round(np.stack([x, y], axis=1), 1)


def _ticks(window: tuple[float, float], axis: int) -> list[list[Any]]:
    """(place, text) of some round values."""
    from matplotlib.ticker import MaxNLocator

    values = [v for v in MaxNLocator(5).tick_values(*window) if window[0] <= v <= window[1]]
    places = _placed(np.stack([values, values], axis=1), [window, window])[:, axis]
    return [[float(p), _short(float(v))] for p, v in zip(places, values, strict=True)]


def _short(value: float) -> str:
    return f"{value:.4g}".replace("-", "−") if abs(value) < 1e5 else number(value)
