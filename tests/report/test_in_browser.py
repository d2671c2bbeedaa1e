"""The page as a browser shows it: wide and narrow, light and dark."""

import io
import os
from pathlib import Path

import browser
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

from salmc.sampling.draws import Draws
from salmc.target import Target

pytestmark = pytest.mark.skipif(browser.find() is None, reason="chromium is not installed")

HEIGHTS = {1280: 800, 390: 844}
LONG = "a_parameter_with_a_rather_long_name"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Two modes of three numbers, one of which has a long name."""
    generator = np.random.default_rng(0)
    left = generator.random((8, 300, 1)) < 0.3
    centre = np.where(left, np.array([-4.0, 0.0, 0.0]), np.array([4.0, 1.0, 0.0]))
    positions = (centre + generator.normal(size=(8, 300, 3))).astype(np.float32)

    def log_density(x):
        one = jnp.log(0.3) - 0.5 * jnp.sum((x - jnp.array([-4.0, 0.0, 0.0])) ** 2)
        return jnp.logaddexp(
            one, jnp.log(0.7) - 0.5 * jnp.sum((x - jnp.array([4.0, 1.0, 0.0])) ** 2)
        )

    target = Target(log_density, 3, name="two hills", names=["rate", "skew", LONG])
    draws = Draws(positions, None, 1.0, target=target, method="sal-mc")
    place = tmp_path_factory.mktemp("page") / "page.html"
    return draws.report(place, draws.summary(hunt=False))


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    opened = browser.Browser(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", HEIGHTS)
def test_the_page_in_a_browser(page, chromium, width, dark):
    chromium.open(page, width=width, height=HEIGHTS[width], dark=dark)
    assert chromium.complaints() == []
    elsewhere = [url for url in chromium.requests() if not url.startswith("data:")]
    assert elsewhere == [page.resolve().as_uri()]

    # The verdict, its mark and its first sentence, without scrolling.
    box = chromium.evaluate(
        "(() => { const b = document.querySelector('.verdict p').getBoundingClientRect();"
        " return [b.top, b.bottom, b.left, b.right] })()"
    )
    assert 0 <= box[0] < box[1] <= HEIGHTS[width]
    assert 0 <= box[2] < box[3] <= width
    # Nothing is wider than the page; tables have a place of their own to scroll in.
    assert chromium.evaluate("document.documentElement.scrollWidth") <= width
    scroll = chromium.evaluate(
        "(() => { const s = document.querySelector('.scroll');"
        " return [s.scrollWidth, s.clientWidth,"
        " getComputedStyle(document.querySelector('.hint')).display] })()"
    )
    assert (scroll[0] > scroll[1]) == (scroll[2] == "block") == (width == 390)
    # Names are whole words, or folded at a length at which they can be read.
    name = "document.querySelector('.coordinates tbody tr:last-child span').offsetWidth"
    assert chromium.evaluate(name) > 100
    # All pictures are there, on the paper that was asked for.
    assert chromium.evaluate("[...document.images].every(i => i.complete && i.naturalWidth > 300)")
    used = chromium.evaluate(
        "[...document.images].filter(i => i.currentSrc !== i.src).length / document.images.length"
    )
    assert used == (1.0 if dark else 0.0)
    shot = chromium.screenshot()
    brightness = np.asarray(Image.open(io.BytesIO(shot)).convert("L")).mean()
    assert (brightness < 80) if dark else (brightness > 200)
    if folder := os.environ.get("SALMC_SCREENSHOTS"):
        name = f"{width}-{'dark' if dark else 'light'}.png"
        (Path(folder) / name).write_bytes(chromium.screenshot(whole=True))


@pytest.mark.parametrize("still", [False, True])
def test_a_chain_moves_only_for_those_who_want_it(page, chromium, still):
    chromium.open(page, width=1280, height=800, still=still)
    running = "document.getAnimations().filter(a => a.playState === 'running').length"
    assert (chromium.evaluate(running) > 10) == (not still)
    dot = "getComputedStyle(document.querySelector('.path .dot')).visibility"
    assert chromium.evaluate(dot) == ("hidden" if still else "visible")
    if not still:
        chromium.evaluate("document.querySelector('#pause').click()")
        assert chromium.evaluate(running) == 0


def test_alternative_texts_say_what_is_seen(page, chromium):
    chromium.open(page, width=1280, height=800)
    texts = chromium.evaluate("[...document.images].map(i => i.alt)")
    assert len(set(texts)) == len(texts) >= 5
    assert "Two modes: at rate = " in texts[0]
    heaviest = float(texts[0].split(" with weight ")[1].split()[0])
    # Of 2400 independent draws: one standard error is 0.0094.
    assert heaviest == pytest.approx(0.7, abs=4 * 0.0094)
    label = chromium.evaluate("document.querySelector('.path').getAttribute('aria-label')")
    assert "changes mode" in label
