"""Pictures, the page and the notebook's view of draws in hand."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

import salmc
from salmc.errors import ArgumentError, OutputError
from salmc.kernels import FlowKernel, Whitening
from salmc.report import dark, style
from salmc.report.draws_page import KINDS
from salmc.report.words import counted
from salmc.sampling.draws import Draws

EVIL = "<script>alert('x')</script>"


def make_draws(kind="chains", names=("rate", "skew"), name="hills", **fields):
    generator = np.random.default_rng(0)
    left = generator.random((24, 100, 1)) < 0.3
    centre = np.where(left, np.array([-4.0, 0.0]), np.array([4.0, 1.0]))
    positions = (centre + generator.normal(size=(24, 100, 2))).astype(np.float32)

    def log_density(x):
        one = jnp.log(0.3) - 0.5 * jnp.sum((x - jnp.array([-4.0, 0.0])) ** 2)
        return jnp.logaddexp(one, jnp.log(0.7) - 0.5 * jnp.sum((x - jnp.array([4.0, 1.0])) ** 2))

    target = salmc.Target(log_density, 2, name=name, names=list(names))
    return Draws(positions, None, 1.0, kind, target=target, method="test", **fields)


@pytest.fixture(scope="module")
def judged():
    draws = make_draws()
    draws.summary(hunt=False)
    return draws


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_a_figure_that_notebooks_show(kind):
    figure = make_draws().plot(kind)
    assert isinstance(figure, Figure)
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_pictures_are_in_the_users_variables():
    target = salmc.Target(
        lambda x: -0.5 * jnp.sum(jnp.log(x[0]) ** 2) - jnp.log(x[0]) - 0.5 * x[1] ** 2,
        dim=2,
        bounds=[(0, None), (None, None)],
        names=["tau", "mu"],
    )
    positions = np.random.default_rng(0).normal(size=(8, 50, 2))
    positions[..., 0] = np.exp(positions[..., 0])
    figure = Draws(positions, None, 1.0, target=target).plot("corner")
    assert [figure.axes[i].get_xlabel() for i in (1, 2)] == ["tau", "mu"]


def test_pictures_of_a_sampler_and_of_particles():
    target = salmc.Target(lambda x: -0.5 * jnp.sum(x**2), dim=2)
    kernel = FlowKernel(jax.random.key(0), dim=2, layers=1, width=4, knots=4, radial_knots=4)
    sampler = salmc.Sampler(kernel, target, Whitening.identity(2), np.zeros((1, 2)))
    draws = sampler.sample(chains=4, draws=30, progress=False)
    assert isinstance(draws.plot("rank"), Figure)
    assert "Draws are judged, not kernels" in sampler._repr_html_()
    assert repr(sampler) == "<Sampler of sal-mc on target: kernel flow, 2 dimensions, exact>"
    moved = salmc.move(salmc.movers.SGLD(target), particles=30, steps=20, seed=0, progress=False)
    assert isinstance(moved.plot("trace"), Figure)
    with pytest.raises(ArgumentError, match="no ranks"):
        make_draws("particles").plot("rank")


def test_bad_requests_are_one_sentence(judged, tmp_path):
    with pytest.raises(ArgumentError, match=r"kind.*scatter.*pie"):
        make_draws().plot("pie")
    with pytest.raises(ArgumentError, match=r"page\.html"):
        make_draws().report(tmp_path)
    with pytest.raises(OutputError):
        judged.report(tmp_path / "nowhere" / "page.html")


def test_the_page_of_draws(judged, tmp_path):
    path = judged.report(tmp_path / "page.html")
    assert path == tmp_path / "page.html"
    text = path.read_text(encoding="utf-8")
    assert text.index('class="verdict') < text.index("<h2>Numbers") < text.index("<h2>Pictures")
    assert not re.search(r"https?://|@import|url\(|<script", text)
    for heading in ("The draws", "Modes", "Ranks", "Autocorrelation", "Trace"):
        assert f"<b>{heading}.</b>" in text
    assert "the density of the target" in text
    alternatives = re.findall(r'<img alt="([^"]+)"', text)
    weights = re.search(r"Two modes: at .*? with weight (0\.\d+) ± (0\.\d+)", alternatives[0])
    # Weight 0.7 of 2400 independent draws: one standard error is 0.0094.
    assert float(weights[1]) == pytest.approx(0.7, abs=4 * 0.0094)
    assert float(weights[2]) == pytest.approx(0.0094, rel=0.3)
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]


def test_captions_promise_only_what_is_drawn(judged, tmp_path):
    bare = Draws(judged.positions, None, 1.0)
    text = bare.report(tmp_path / "bare.html", judged.judged).read_text(encoding="utf-8")
    assert "the density of the target" not in text
    assert "true mean" not in text


def test_the_view_of_a_notebook(judged):
    shown = judged._repr_html_()
    assert shown == judged.judged._repr_html_()
    assert shown.index("No problem found") < shown.index("rate") < shown.index("bias: KSD²")
    fresh = make_draws(warnings=(EVIL,), names=(EVIL, "skew"), name=EVIL)
    shown = fresh._repr_html_()
    assert fresh.judged is None
    assert shown.index("Not judged yet") < shown.index("draws.summary()") < shown.index("mean")
    # ESS is nothing without a figure of bias beside it.
    assert "ess" not in shown.lower().replace("message", "")
    assert "<script" not in shown
    assert shown.count("&lt;script&gt;") == 3
    assert "not judged yet" in repr(fresh)
    assert "no problem found" in repr(judged)


def test_dark_paper_keeps_what_differs_apart():
    ink, faint, grid = (sum(dark.turned(c)[:3]) for c in (style.INK, style.FAINT_INK, style.GRID))
    paper = sum(dark.turned("white")[:3])
    assert paper < grid < faint < ink
    assert dark.turned("white")[:3] == to_rgba(dark.PAPER)[:3]
    with style.look():
        figure = make_draws().plot("rank", dark=True)
    assert to_rgba(figure.get_facecolor()) == to_rgba(dark.PAPER)
    assert sum(to_rgba(figure.axes[0].title.get_color())[:3]) > 1.8


def test_counts_in_words():
    assert [counted(n, "mode") for n in (0, 1, 2, 14)] == [
        "no modes",
        "one mode",
        "two modes",
        "14 modes",
    ]
