"""The benchmarks are jobs of the harness, and the results that are there count."""

import json
import sys
import types

import pytest

from benchmarks import __main__ as command
from salmc_paper.harness.jobs import Job


@pytest.mark.parametrize("name", command.NAMES)
def test_jobs_have_keys_and_entries_of_their_own_and_results_count(name):
    jobs = command.jobs_of(name)
    assert {job.experiment for job in jobs} == {name}
    assert len({job.key for job in jobs}) == len({job.file_entry for job in jobs}) == len(jobs)
    json.dumps([job.arguments for job in jobs])
    store = command.results()
    if store.place(name).exists():
        assert any(store.read(job).done for job in jobs)


def test_every_file_of_results_belongs_to_a_benchmark():
    assert {path.stem for path in command.RESULTS.glob("*.json")} <= set(command.NAMES)


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    """A benchmark of two jobs, the second of which may be made to fail."""
    module = types.ModuleType("benchmarks.tiny")
    module.calls, module.broken = [], False

    def run(context):
        module.calls.append(context["x"])
        if module.broken and context["x"] == 1:
            raise ValueError("it broke")
        return {"x": context["x"]}

    module.jobs = lambda: [Job("tiny", f"job {x}", {"x": x}, run) for x in range(2)]
    monkeypatch.setitem(sys.modules, "benchmarks.tiny", module)
    monkeypatch.setattr(command, "NAMES", ("tiny",))
    store = command.results(tmp_path)
    monkeypatch.setattr(command, "results", lambda: store)
    return module


def test_what_has_a_result_runs_again_only_when_asked_for(tiny, tmp_path, capsys):
    assert command.main(["tiny"]) == 0
    assert command.main([]) == 0
    assert tiny.calls == [0, 1]
    assert command.main(["tiny", "--again"]) == 0
    assert tiny.calls == [0, 1, 0, 1]
    content = json.loads((tmp_path / "tiny.json").read_text())
    assert content["command"] == "python -m benchmarks tiny"
    assert content["job 1"] == {"x": 1}
    assert str(tmp_path / "tiny.json") in capsys.readouterr().out


def test_a_failure_and_an_unknown_name_are_told_by_the_exit_code(tiny, capsys):
    tiny.broken = True
    assert command.main(["tiny"]) == 1
    assert command.main(["tinny"]) == 2
    assert "No benchmark is called 'tinny'; there are tiny." in capsys.readouterr().out
