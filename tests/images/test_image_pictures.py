import numpy as np
import pytest
from PIL import Image

from salmc.errors import ArgumentError, OutputError
from salmc.images.pictures import save_gif, save_png, sheet, stacked, strip


def numbered(*axes, side=4, channels=1):
    """Images of one brightness each, which counts up."""
    count = int(np.prod(axes))
    values = np.arange(count, dtype=np.uint8).reshape(*axes, 1, 1, 1)
    return np.broadcast_to(values, (*axes, side, side, channels)).copy()


def tile(picture, row, column, side=4):
    pixels = np.asarray(picture)
    return pixels[row * (side + 1) + 1 :, column * (side + 1) + 1 :][:side, :side]


def test_sheet_goes_row_by_row_with_paper_between_and_where_images_end():
    picture = sheet(numbered(7), columns=3, scale=1)
    assert picture.size == (3 * 5 + 1, 3 * 5 + 1)
    for i in range(7):
        np.testing.assert_array_equal(tile(picture, *divmod(i, 3)), i)
    np.testing.assert_array_equal(tile(picture, 2, 1), 255)
    pixels = np.asarray(picture)
    assert (pixels[::5] == 255).all()
    assert (pixels[:, ::5] == 255).all()


def test_strip_has_a_row_for_each_chain():
    picture = strip(numbered(3, 6), scale=1)
    for chain in range(3):
        for step in range(6):
            np.testing.assert_array_equal(tile(picture, chain, step), 6 * chain + step)


def test_scale_repeats_pixels_and_colour_stays():
    images = numbered(4, channels=3)
    images[..., 0] = 200
    picture = sheet(images, scale=3)
    assert picture.mode == "RGB"
    assert picture.size == (33, 33)
    assert picture.getpixel((3, 3)) == (200, 0, 0)
    # Small images are enlarged by themselves.
    assert sheet(numbered(4)).width > 33


def test_gif_has_a_frame_for_each_step(tmp_path):
    draws = 20 * numbered(2, 5)
    path = save_gif(draws, tmp_path / "chains.gif", columns=2, seconds_per_step=0.1, scale=1)
    with Image.open(path) as film:
        assert film.n_frames == 5
        assert film.info["duration"] == 100
        assert film.info["loop"] == 0
        for step in range(5):
            film.seek(step)
            frame = film.convert("L")
            np.testing.assert_array_equal(tile(frame, 0, 0), 20 * step)
            np.testing.assert_array_equal(tile(frame, 0, 1), 20 * (5 + step))


def test_gif_in_colour_keeps_colours(tmp_path):
    draws = np.zeros((1, 3, 4, 4, 3), np.uint8)
    for step in range(3):
        draws[0, step, ..., step] = 250
    with Image.open(save_gif(draws, tmp_path / "colour.gif", scale=1)) as film:
        for step in range(3):
            film.seek(step)
            found = np.array(film.convert("RGB").getpixel((2, 2)))
            assert np.abs(found - draws[0, step, 0, 0]).max() < 10


def test_png_is_whole_or_not_there(tmp_path):
    picture = sheet(numbered(4))
    path = save_png(picture, tmp_path / "sheet.png")
    with Image.open(path) as read:
        np.testing.assert_array_equal(np.asarray(read), np.asarray(picture))
    with pytest.raises(OutputError, match="Cannot write"):
        save_png(picture, tmp_path / "nowhere" / "sheet.png")
    assert [entry.name for entry in tmp_path.iterdir()] == ["sheet.png"]


def test_stacked_pictures_are_under_each_other():
    pictures = [sheet(numbered(4), scale=1), sheet(numbered(9), scale=1)]
    both = stacked(pictures, gap=2)
    assert both.size == (16, 11 + 2 + 16)
    np.testing.assert_array_equal(np.asarray(both)[13:], np.asarray(pictures[1]))


def test_bad_images_are_told():
    with pytest.raises(ArgumentError, match="chains, steps"):
        strip(numbered(4))
    with pytest.raises(ArgumentError, match="bytes"):
        sheet(numbered(4).astype(float))
    with pytest.raises(ArgumentError, match="columns"):
        sheet(numbered(4), columns=0)
