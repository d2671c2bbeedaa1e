"""Pictures made of images: a sheet of samples, a strip of chains, and the chains in motion.

All of them are Pillow images, pixel for pixel: nothing is interpolated, so that what is seen is
what was drawn.
"""

import math
from pathlib import Path

import numpy as np
from PIL import Image

from salmc import checks
from salmc.sampling.files.atomic import new_file

_GAP = 1
"""Pixels of paper between two images, before enlarging."""
_PAPER = 255
_SMALLEST_SIDE = 40
"""Images are enlarged to about so many pixels a side, where there is room."""
_WIDEST = 2600
"""A picture is enlarged no further than this many pixels."""


def sheet(
    images: np.ndarray, *, columns: int | None = None, scale: int | None = None
) -> Image.Image:
    """Images side by side, row after row.

    Args:
        images: bytes (n, height, width, channels).
        columns: images in a row; by default as many as make the sheet about square.
        scale: pixels for each pixel; by default what makes small images easy to see.
    """
    _check(images, 4)
    if columns is None:
        columns = math.ceil(math.sqrt(len(images)))
    checks.integer("columns", columns, 1)
    rows = math.ceil(len(images) / columns)
    return _picture(_tiled(images, rows, columns), images.shape[1], scale)


def strip(draws: np.ndarray, *, scale: int | None = None) -> Image.Image:
    """Chains under each other: one row for each, its consecutive draws from left to right."""
    _check(draws, 5)
    chains, steps = draws.shape[:2]
    tiles = draws.reshape(-1, *draws.shape[2:])
    return _picture(_tiled(tiles, chains, steps), draws.shape[2], scale)


def stacked(pictures: list[Image.Image], gap: int = 12) -> Image.Image:
    """Pictures under each other, at the left."""
    width = max(picture.width for picture in pictures)
    height = sum(picture.height for picture in pictures) + gap * (len(pictures) - 1)
    mode = "L" if all(picture.mode == "L" for picture in pictures) else "RGB"
    paper = Image.new(mode, (width, height), "white")
    top = 0
    for picture in pictures:
        paper.paste(picture, (0, top))
        top += picture.height + gap
    return paper


def save_png(picture: Image.Image, path: str | Path) -> Path:
    """Write a PNG, in full or not at all."""
    with new_file(path) as file:
        picture.save(file, format="PNG", optimize=True)
    return Path(path)


def save_gif(
    draws: np.ndarray,
    path: str | Path,
    *,
    columns: int | None = None,
    seconds_per_step: float = 0.2,
    scale: int | None = None,
) -> Path:
    """Write a GIF that loops: each frame shows all chains at one step, in full or not at all.

    Args:
        draws: bytes (chains, steps, height, width, channels).
        path: of the file.
        columns: chains in a row; by default as many as make the frame about square.
        seconds_per_step: how long a frame is shown.
        scale: pixels for each pixel.
    """
    _check(draws, 5)
    checks.real("seconds_per_step", seconds_per_step, above=0.0)
    frames = [sheet(draws[:, i], columns=columns, scale=scale) for i in range(draws.shape[1])]
    if frames[0].mode == "RGB":
        # One palette for all frames: with one each, the colours flicker.
        palette = stacked(frames[:: max(1, len(frames) // 8)], gap=0).quantize(256)
        frames = [frame.quantize(palette=palette) for frame in frames]
    milliseconds = max(20, round(1000 * seconds_per_step))
    with new_file(path) as file:
        frames[0].save(
            file,
            format="GIF",
            save_all=True,
            append_images=frames[1:],
            duration=milliseconds,
            loop=0,
        )
    return Path(path)


def _check(images: np.ndarray, axes: int) -> None:
    expectation = "bytes (n, height, width, channels)"
    if axes == 5:
        expectation = "bytes (chains, steps, height, width, channels)"
    right = images.ndim == axes and images.dtype == np.uint8 and images.shape[-1] in (1, 3)
    if not right or images.size == 0:
        checks.fail("images", expectation, f"{images.dtype} {images.shape}")


def _tiled(tiles: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """(n, h, w, c) ↦ one image, with paper between the tiles and where there are none."""
    height, width, channels = tiles.shape[1:]
    padded = np.full((rows * columns, height + _GAP, width + _GAP, channels), _PAPER, np.uint8)
    padded[: len(tiles), _GAP:, _GAP:] = tiles
    grid = padded.reshape(rows, columns, height + _GAP, width + _GAP, channels)
    grid = grid.transpose(0, 2, 1, 3, 4).reshape(
        rows * (height + _GAP), columns * (width + _GAP), channels
    )
    return np.pad(grid, ((0, _GAP), (0, _GAP), (0, 0)), constant_values=_PAPER)


def _picture(pixels: np.ndarray, side: int, scale: int | None) -> Image.Image:
    if scale is None:
        wanted = max(1, round(_SMALLEST_SIDE / side))
        scale = max(1, min(wanted, _WIDEST // max(pixels.shape[:2])))
    checks.integer("scale", scale, 1)
    enlarged = pixels.repeat(scale, axis=0).repeat(scale, axis=1)
    return Image.fromarray(enlarged[..., 0] if enlarged.shape[-1] == 1 else enlarged)
