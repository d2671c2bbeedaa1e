"""The draws themselves, over the density they should follow.

One dimension: a histogram. Two: points over contours of the density, with both marginals.
More: pairs of the first few coordinates, over exact draws where the target has them.
"""

import jax
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from salmc.report import density_grid, style
from salmc.sampling.draws import Draws
from salmc.target import AbstractTarget

MOST_COORDINATES = 5
MOST_POINTS = 3000
GRID_SIZE = 181


def figure(draws: Draws) -> Figure:
    """The picture for the number of the user's variables."""
    count = len(draws.shown.moving().names)
    if count == 1:
        return histogram(draws)
    return plane(draws) if count == 2 and draws.shown.own else pairs(draws)


def numbers(draws: Draws) -> tuple[tuple[str, ...], np.ndarray, np.ndarray | None]:
    """Names, the points that stand for the target, and exact ones where there are any.

    In the user's variables, as far as they change at all.
    """
    shown = draws.shown.moving()
    if draws.kind == "particles":
        sample = shown.values[:, -1]
    else:
        sample = shown.values[:, -draws.chains().shape[1] :].reshape(-1, len(shown.names))
    if draws.target is None or not draws.target.can_sample:
        return shown.names, sample, None
    exact = np.asarray(draws.target.sample(jax.random.key(0), MOST_POINTS))
    if not shown.own:
        there = Draws(exact[None], None, 0.0, target=draws.target).shown
        exact = there.values[0][:, ~draws.shown.fixed]
    return shown.names, sample, exact


def histogram(draws: Draws) -> Figure:
    """One coordinate: a histogram over the density."""
    result = style.new_figure(6.4, 4.2)
    axes = result.add_subplot()
    names, sample, _ = numbers(draws)
    with_density = histogram_into(axes, draws, style.window(sample[:, 0], margin=0.25))
    axes.set(xlabel=style.short(names[0], 40), ylabel="density")
    bars = Patch(color=style.DRAWS, alpha=0.45, label="draws")
    axes.legend(handles=[bars, *_legend(with_density=with_density)[1:]], loc="upper right")
    style.title(axes, _heading(draws), _detail(draws))
    return result


def histogram_into(axes: Axes, draws: Draws, limits: tuple[float, float]) -> bool:
    """A histogram of the first coordinate; tells whether the density is drawn over it."""
    _histogram(axes, numbers(draws)[1][:, 0], limits)
    x = np.linspace(*limits, 801)
    known = draws.target is not None and draws.shown.own
    density = density_grid.density(draws.target, x[:, None]) if known and draws.target else None
    if density is not None:
        _density_line(axes, x, density)
    axes.set_xlim(limits)
    return density is not None


def plane(draws: Draws) -> Figure:
    """Two coordinates: points over contours of the density, marginals at the sides."""
    sample = draws.sample()
    x_range, y_range = plane_window(draws)
    equal = comparable(x_range, y_range)
    shape_ratio = (y_range[1] - y_range[0]) / (x_range[1] - x_range[0]) if equal else 1.0
    # Paper that fits what equal scales make of the plane, whichever side is the longer one. The
    # title is on an inset, whose text the arrangement does not see in full.
    width, height = 5.2 * min(1.0, 1.0 / shape_ratio), 5.2 * min(1.0, shape_ratio)
    result = style.new_figure(max(1.16 * width + 0.8, 4.6), 1.16 * height + 1.5, headroom=0.12)
    axes = result.add_subplot()
    shape = density_background(axes, draws, x_range, y_range)
    points(axes, sample)
    names = [style.short(name, 30) for name in draws.shown.names]
    axes.set(xlabel=names[0], ylabel=names[1], xlim=x_range, ylim=y_range)
    if equal:
        axes.set_aspect("equal")

    top = axes.inset_axes((0, 1.02, 1, 0.14), sharex=axes)
    right = axes.inset_axes((1.02, 0, 0.14, 1), sharey=axes)
    _histogram(top, sample[:, 0], x_range)
    _histogram(right, sample[:, 1], y_range, horizontal=True)
    if shape is not None:
        _density_line(top, np.linspace(*x_range, shape.shape[1]), shape.sum(axis=0))
        _density_line(
            right, np.linspace(*y_range, shape.shape[0]), shape.sum(axis=1), horizontal=True
        )
    for side in (top, right):
        side.axis("off")
    style.title(top, _heading(draws), _detail(draws))
    result.legend(
        handles=_legend(with_density=shape is not None), loc="outside lower center", ncols=2
    )
    return result


def pairs(draws: Draws) -> Figure:
    """More coordinates: each pair of the first few, marginals on the diagonal."""
    names, sample, exact = numbers(draws)
    count = min(len(names), MOST_COORDINATES)
    result = style.new_figure(1.9 * count + 0.8, 1.9 * count + 0.9)
    panels = result.subplots(count, count, squeeze=False, sharex="col")
    seen = sample if exact is None else np.concatenate([sample, exact])
    windows = [style.window(seen[:, i]) for i in range(count)]
    for row in range(count):
        for column in range(count):
            axes = panels[row, column]
            if column > row:
                axes.remove()
            elif column == row:
                _marginal(axes, draws, sample, exact, row, windows[row])
            else:
                if exact is not None:
                    points(axes, exact[:, [column, row]], color=style.TRUTH, alpha=0.25)
                points(axes, sample[:, [column, row]], most=1500)
                axes.set(xlim=windows[column], ylim=windows[row])
            axes.locator_params(nbins=4)
            if column == 0 and row > 0:
                axes.set_ylabel(style.short(names[row]))
            elif column < row:
                axes.tick_params(labelleft=False)
            if row == count - 1:
                axes.set_xlabel(style.short(names[column]))
            else:
                axes.tick_params(labelbottom=False)
    more = f", first {count} of {len(names)} coordinates" if len(names) > count else ""
    result.suptitle(_heading(draws), x=0.02, ha="left")
    handles: list[Patch | Line2D] = [Patch(color=style.DRAWS, alpha=0.5, label="draws")]
    if exact is not None:
        handles.append(Patch(color=style.TRUTH, alpha=0.5, label="exact draws"))
    elif draws.shown.own and draws.target is not None and draws.target.mean is not None:
        handles.append(Line2D([], [], color=style.TRUTH, label="known mean ± sd"))
    result.legend(
        handles=handles,
        loc="upper right",
        bbox_to_anchor=(0.98, 0.93),
        title=f"{_detail(draws)}{more}",
        title_fontsize=8.8,
        alignment="right",
    )
    return result


def plane_window(draws: Draws) -> tuple[tuple[float, float], tuple[float, float]]:
    """What of the plane to show: the draws, and exact draws where there are any."""
    seen = draws.sample()
    if draws.target is not None and draws.target.can_sample:
        exact = np.asarray(draws.target.sample(jax.random.key(0), 1000))
        seen = np.concatenate([style.thin(seen, 1000), exact])
    return style.window(seen[:, 0]), style.window(seen[:, 1])


def density_background(
    axes: Axes, draws: Draws, x_range: tuple[float, float], y_range: tuple[float, float]
) -> np.ndarray | None:
    """Contours of the target's density; returns it on the grid, or None where it is too dear."""
    return None if draws.target is None else contours(axes, draws.target, x_range, y_range)


def contours(
    axes: Axes,
    target: AbstractTarget,
    x_range: tuple[float, float],
    y_range: tuple[float, float],
    size: int = GRID_SIZE,
) -> np.ndarray | None:
    """Contours of a density on the plane, by a grid of so many points a side, for points to lie on;
    as `density_background`."""
    x, y = np.linspace(*x_range, size), np.linspace(*y_range, size)
    shape = density_grid.plane(target, x, y)
    if shape is None:
        return None
    heights = density_grid.levels(shape)
    if len(heights) > 1:
        fill = style.DENSITY(np.linspace(0.15, 1, len(heights)))
        axes.contourf(x, y, shape, levels=[*heights, np.inf], colors=fill)
        axes.contour(x, y, shape, levels=heights, colors="white", linewidths=0.5)
    return shape


def points(
    axes: Axes,
    sample: np.ndarray,
    *,
    color: str = style.DRAWS,
    most: int = MOST_POINTS,
    alpha: float | None = None,
    size: float | None = None,
) -> None:
    """A cloud of points, fainter the more there are."""
    shown = style.thin(sample, most)
    few = len(shown) <= 600
    axes.scatter(
        shown[:, 0],
        shown[:, 1],
        s=size if size is not None else (11 if few else 5),
        color=color,
        alpha=alpha if alpha is not None else (0.8 if few else 0.5),
        linewidths=0.3 if few and size is None else 0,
        edgecolors="white",
        zorder=3,
    )


def _marginal(
    axes: Axes,
    draws: Draws,
    sample: np.ndarray,
    exact: np.ndarray | None,
    index: int,
    limits: tuple[float, float],
) -> None:
    _histogram(axes, sample[:, index], limits)
    if exact is not None:
        _histogram(axes, exact[:, index], limits, outline=True)
    elif draws.shown.own and draws.target is not None and draws.target.mean is not None:
        mean = float(draws.target.mean[index])
        axes.axvline(mean, color=style.TRUTH, linewidth=1.2)
        if draws.target.std is not None:
            spread = float(draws.target.std[index])
            axes.axvspan(mean - spread, mean + spread, color=style.TRUTH, alpha=0.12, linewidth=0)
    axes.set(xlim=limits, yticks=[])
    axes.spines["left"].set_visible(False)


def _histogram(
    axes: Axes,
    values: np.ndarray,
    limits: tuple[float, float],
    *,
    horizontal: bool = False,
    outline: bool = False,
) -> None:
    bins = int(np.clip(2 * np.sqrt(len(values)), 25, 80))
    axes.hist(
        values,
        bins=np.linspace(*limits, bins).tolist(),
        density=True,
        histtype="step" if outline else "stepfilled",
        color=style.TRUTH if outline else style.DRAWS,
        alpha=0.9 if outline else 0.45,
        linewidth=1.3 if outline else 0,
        orientation="horizontal" if horizontal else "vertical",
    )


def _density_line(
    axes: Axes, x: np.ndarray, density: np.ndarray, *, horizontal: bool = False
) -> None:
    area = np.trapezoid(density, x)
    if not area > 0:
        return
    line = (density / area, x) if horizontal else (x, density / area)
    axes.plot(*line, color=style.TRUTH, linewidth=1.5)


def _legend(*, with_density: bool) -> list[Line2D]:
    handles = [
        Line2D([], [], marker="o", linestyle="", markersize=5, color=style.DRAWS, label="draws")
    ]
    if with_density:
        handles.append(Line2D([], [], color=style.TRUTH, linewidth=2, label="target density"))
    return handles


def comparable(first: tuple[float, float], second: tuple[float, float]) -> bool:
    """Whether two axes can share one scale without one of them becoming a thin strip."""
    ratio = (first[1] - first[0]) / (second[1] - second[0])
    return 1 / 3 < ratio < 3


def _heading(draws: Draws) -> str:
    name = "draws" if draws.target is None else draws.target.name
    return f"{name} by {draws.method}"


def _detail(draws: Draws) -> str:
    if draws.kind == "particles":
        steps = int(np.asarray(draws.steps)[-1])
        return f"{len(draws.positions):,} particles after {steps:,} steps"
    kept = draws.chains().shape[1]
    return f"{len(draws.positions):,} chains × {kept:,} kept draws"
