"""Results as rows, times to other numbers of draws, tables, the page, limits of processes."""

import json
import sys

import numpy as np
import pytest

from benchmarks import __main__ as command
from benchmarks.peers import page, plan, tables
from benchmarks.peers.compilations import merged
from benchmarks.peers.processes import explained, run_worker
from benchmarks.peers.references import cauchy, log_prior, normal, secant, uniform
from benchmarks.peers.results import Row, best_peer, ratio, rows
from salmc.errors import SalmcError
from salmc_paper.harness.jobs import Record


def figures(**changes):
    return {
        "outcome": "right",
        "sentence": "",
        "ess": 10_000.0,
        "cpu_seconds": 12.0,
        "ready_cpu_seconds": 10.0,
        "compile_cpu_seconds": 4.0,
        "evaluations": 50_000,
        "gradients": 50_000,
        "peak_memory_bytes": 5e8,
        "errors": {"mean": 0.012, "tails": 0.003, "modes": None},
        "floor": {"mean": 0.011, "tails": 0.002, "modes": None},
        **changes,
    }


ENDED = {"outcome": "limit", "sentence": "Not done within 120 s of CPU time.", "wall_seconds": 9.0}


def row(peer="salmc", target="mog6", **changes):
    return Row(target, peer, {10_000: figures(**changes)})


def test_times_are_measured_or_extrapolated_and_say_so():
    one = row()
    assert str(one.time_to(10_000)) == "12.0"
    assert str(one.time_to(1_000_000)) == "~210"  # 10 s, and 2 s for each 10,000
    assert str(one.time_to(1_000)) == "~10.2"
    short = row(outcome="short", ess=5_000.0)
    assert str(short.time_to(10_000)) == "~14.0"
    assert Row("mog6", "emcee", {10_000: ENDED}).time_to(10_000) is None


def test_dear_evaluations_are_added_and_never_extrapolated():
    box = row(target="black-box3", evaluations=10_000)
    assert str(box.time_to(10_000)) == "62.0"
    assert box.time_to(1_000_000) is None


def test_only_peers_that_are_right_are_the_best():
    found = [
        row(cpu_seconds=12.0),
        row("emcee", cpu_seconds=1.0, outcome="wrong", sentence="mean off"),
        row("smc", cpu_seconds=3.0),
        row("numpyro", cpu_seconds=30.0),
        Row("mog6", "dynesty", {10_000: ENDED}),
    ]
    assert best_peer(found, "mog6", 10_000)[0] == "smc"
    assert ratio(found, "mog6", 10_000) == pytest.approx(4.0)
    assert np.isnan(ratio(found, "ring", 10_000))
    shown = tables.overview(found)
    assert "| Mog6 | 12.0 | 30.0 | 3.0 | *limit* | *wrong* | 4 × tempered SMC |" in shown
    detailed = tables.details(found, "mog6")
    assert (
        "| salmc | right | ~10.2 | 12.0 | ~210 | 4.0 | 50,000 with gradient | 10,000 |" in detailed
    )
    assert "0.012 (0.011) | 0.003 (0.002) | – | 0.50 GB |" in detailed
    assert "limit: Not done within 120 s of CPU time. | – | – | – |" in detailed
    stuck = tables.details([row(outcome="stuck", sentence="R-hat 2.41", ess=5.0)], "mog6")
    assert "| stuck: R-hat 2.41 | – | – | – |" in stuck


def test_records_become_rows_by_target_and_peer():
    chosen = [job for job in plan.jobs() if job.arguments["target"] == "ring"]
    records = [Record(job, "done", figures()) for job in chosen]
    records[0] = Record(chosen[0])
    found = rows(records)
    assert [one.peer for one in found if len(one.runs) == 2] == list(plan.PEERS)[1:]


def test_the_page_is_changed_between_its_markers_only():
    before = f"# A\n\n{page.BEGIN}\nold\n{page.END}\n\nmore\n"
    after = page.put(before, "new")
    assert after == f"# A\n\n{page.BEGIN}\n\nnew\n\n{page.END}\n\nmore\n"
    assert page.put(after, "new") == after
    with pytest.raises(SalmcError, match="markers"):
        page.put("no markers", "new")


def test_the_docs_show_the_results_that_are_kept():
    found = page.kept(command.RESULTS)
    shown = page.PAGE.read_text(encoding="utf-8")
    assert page.put(shown, page.section(found)) == shown, "run python -m benchmarks.peers.page"


def test_every_peer_has_its_files_and_gradients_are_not_asked_of_black_boxes():
    folder = page.ROOT / "benchmarks" / "peers"
    for peer in plan.PEERS.values():
        assert (folder / "samplers" / f"{peer.module}.py").exists()
        if peer.environment:
            pins = (folder / "requirements" / f"{peer.environment}.txt").read_text().split()
            assert all("==" in pin for pin in pins)
    asked = [job.arguments for job in plan.jobs() if job.arguments["target"] == "black-box3"]
    assert not any(plan.PEERS[one["peer"]].gradient for one in asked)


def test_quick_is_a_small_part_and_of_these_alone(capsys):
    quick, full = plan.jobs(quick=True), plan.jobs()
    assert len(quick) < len(full) / 10
    assert {job.arguments["effective"] for job in quick} == {1_000}
    assert command.main(["tuning", "--quick"]) == 2
    assert "no quick run of 'tuning'" in capsys.readouterr().out


@pytest.mark.parametrize(
    "one", [normal(1.0, 2.0), uniform(-1.0, 3.0), cauchy(0.5, 2.0), secant(1, 3)]
)
def test_references_are_those_of_scipy(one):
    levels = np.linspace(0.01, 0.99, 9)
    points, same = one.at(levels), one.scipy()
    np.testing.assert_allclose(same.cdf(points), levels, atol=1e-12)
    np.testing.assert_allclose(log_prior((one,), points[:, None], np), same.logpdf(points))


def test_time_is_counted_once():
    assert merged([(3.0, 4.0), (0.0, 2.0), (1.0, 2.5)]) == [(0.0, 2.5), (3.0, 4.0)]


def test_ends_are_explained():
    request = {"cpu_limit": 60.0}
    assert explained(-24, "", request) == ("limit", "Not done within 60 s of CPU time.")
    assert explained(-9, "", request)[0] == "limit"
    assert explained(1, "Traceback\nValueError: no\n", request) == ("failed", "ValueError: no")
    assert explained(1, "", request)[0] == "failed"


@pytest.fixture
def request_of(monkeypatch, tmp_path):
    """A worker whose sampler is made up, in a process of its own."""

    def run(body, limit=20.0):
        (tmp_path / "made_up.py").write_text(body)
        folder = tmp_path / "sitecustomize.py"
        folder.write_text(
            "import importlib.util, sys\n"
            "name = 'benchmarks.peers.samplers.made_up'\n"
            f"place = {str(tmp_path / 'made_up.py')!r}\n"
            "spec = importlib.util.spec_from_file_location(name, place)\n"
            "class Finder:\n"
            "    @staticmethod\n"
            "    def find_spec(wanted, *_):\n"
            "        return spec if wanted == name else None\n"
            "sys.meta_path.insert(0, Finder)\n"
        )
        starter = tmp_path / "python"
        starter.write_text(
            f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{tmp_path}" exec {sys.executable} "$@"\n'
        )
        starter.chmod(0o755)
        request = {
            "module": "made_up",
            "options": {},
            "jax": False,
            "target": "mog2",
            "effective": 100,
            "seed": 0,
            "cpu_limit": limit,
        }
        json.dumps(request)
        return run_worker(str(starter), request, tmp_path)

    return run


_HEAD = "import numpy as np\nfrom benchmarks.peers.problem import Answer\ndef run(problem):\n"


def test_a_worker_hands_over_draws_and_figures(request_of):
    body = "    x = problem.start(800).reshape(4, 200, 2)\n    problem.log_density(x[0])\n"
    ended = request_of(_HEAD + body + "    return Answer(x, None, 0.1, problem.evaluations)\n")
    assert ended.outcome == "done", ended.sentence
    assert ended.draws["points"].shape == (800, 2)
    assert 100 < ended.draws["ess"] < 3000
    assert ended.figures["evaluations"] == 200
    assert ended.figures["peak_memory_bytes"] > 1e7
    assert ended.figures["process_cpu_seconds"] >= ended.figures["cpu_seconds"]


def test_a_worker_that_fails_says_why_and_one_that_hangs_is_ended(request_of):
    ended = request_of(_HEAD + "    raise ValueError('no such thing')\n")
    assert (ended.outcome, ended.sentence) == ("failed", "ValueError: no such thing")
    ended = request_of(_HEAD + "    while True: pass\n", limit=2.0)
    assert (ended.outcome, ended.sentence) == ("limit", "Not done within 2 s of CPU time.")
