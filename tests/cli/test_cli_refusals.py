"""One sentence for every bad input, and nothing written."""

import os
from pathlib import Path

import pytest

import salmc.sampling.move
from command import MOVER, QUICK, call, refused
from salmc.sampling.files.folder import open_run


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "mog7"], ["no built-in target `mog7`", "mog6"]),
        (["run", "mog6", "--method", "sgdl"], ["no method `sgdl`", "sgld"]),
        (["run", "mog6", "--method", "zzz"], ["no method `zzz`", "There are"]),
        (["run", "mog2", *QUICK, "--set", "stepsize=1"], ["no setting `stepsize`", "step_size"]),
        (["run", "mog2", *QUICK, "--set", "step_size"], ["NAME=VALUE"]),
        (["run", "mog2", *QUICK, "--set", "step_size="], ["NAME=VALUE"]),
        (["run", "mog2", *QUICK, "--set", "decay=1", "--set", "decay=2"], ["given twice"]),
        (["run", "mog2", *QUICK, "--set", "step_size=-0.1"], ["`step_size`", "above 0", "-0.1"]),
        (["run", "mog2", *QUICK, "--set", "step_size=nan"], ["`step_size`", "finite", "nan"]),
        (["run", "mog2", *QUICK, "--set", "step_size=fast"], ["`step_size`", "'fast'"]),
        (["run", "mog2", *MOVER, "--particles", "0"], ["`particles`", "Got 0"]),
        (["run", "mog2", *QUICK, "--particles", "0"], ["`particles`", "Got 0"]),
        (["run", "mog2", *QUICK, "--steps", "0"], ["`steps`", "Got 0"]),
        (["run", "mog2", *QUICK, "--keep", "0"], ["`keep`", "Got 0"]),
        (["run", "mog2", *QUICK, "--seed", "-1"], ["`seed`", "Got -1"]),
        (["run", "mog2", *QUICK, "--start", "normal:-1"], ["--start", "normal:2.5"]),
        (["run", "mog2", *QUICK, "--start", "normal:nan"], ["--start", "normal:2.5"]),
        (["run", "mog2", *QUICK, "--start", "cauchy"], ["--start", "normal:2.5"]),
        (["run", "nowhere.py:target"], ["nowhere.py", "does not exist"]),
        (["compare", "mog2", "--methods", "sgld,nope"], ["no method `nope`"]),
        (["compare", "mog2", "--methods", ","], ["--methods"]),
        (["compare", "mog2", "--methods", "sgld", "--particles", "0"], ["`particles`"]),
        (["compare", "mog2", "--methods", "sgld", "--steps", "0"], ["`steps`"]),
        (["show", "nowhere"], ["no run folder", "nowhere"]),
    ],
)
def test_bad_arguments(arguments, words):
    refused(call(*arguments), *words)


@pytest.mark.parametrize(
    "arguments", [["run"], ["run", "mog2", "--steps", "many"], ["run", "mog2", "--no-such"], ["x"]]
)
def test_usage_errors_exit_with_2(arguments):
    result = call(*arguments)
    assert result.exit_code == 2
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import no_such_module", ["Cannot import", "no_such_module"]),
        ("target = (", ["Cannot import", "SyntaxError"]),
        ("other = Target(lambda x: -jnp.sum(x**2), 2)", ["no `target`", "other"]),
        ("target = 3", ["must be a Target", "int 3"]),
        ("target = Target(lambda x: jnp.nan * x[0], 2)", ["NaN"]),
        ("target = Target(lambda x: jnp.inf + 0 * x[0], 2)", ["+inf"]),
        ("target = Target(lambda x: -jnp.inf + 0 * x[0], 2)", ["zero"]),
        ("target = Target(lambda x: -x**2, 2)", ["scalar", "(2,)"]),
        ("target = Target(lambda x: -x[0] @ x[1:, None], 2)", ["failed in", "my_model.py"]),
        ("target = Target(lambda x: 1 / 0, 2)", ["failed in", "ZeroDivisionError"]),
        ("target = Target(lambda x: -jnp.sum(x**2), dim=0)", ["`dim`", "Got 0"]),
    ],
)
@pytest.mark.parametrize("start", ["auto", "normal:1"])
def test_bad_targets(own_target, code, words, start):
    refused(call("run", own_target(code), *QUICK, "--start", start), *words)


def test_a_method_that_needs_a_gradient(own_target):
    spec = own_target("target = Target.from_numpy(lambda x: -(x**2).sum(1), 2)")
    refused(call("run", spec, *QUICK), "sgld needs the gradient", "gradient-free")


def test_folders_that_cannot_be_written_are_found_before_the_run(monkeypatch):
    monkeypatch.setattr(salmc.sampling.move, "move", lambda *_, **__: pytest.fail("it ran"))
    Path("file").write_text("")
    refused(call("run", "mog2", *QUICK, "--out", "file/out"), "Cannot write", "file/out")
    refused(call("compare", "mog2", "--methods", "sgld", "--out", "file/out"), "Cannot write")
    refused(call("run", "mog2", *QUICK, "--out", "file"), "exists already")
    Path("precious").mkdir()
    Path("precious/thesis.tex").write_text("years of work")
    refused(call("run", "mog2", *QUICK, "--out", "precious"), "exists already")
    refused(call("run", "mog2", *QUICK, "--out", "precious", "--overwrite"), "not written by salmc")
    refused(call("run", "mog2", *QUICK, "--out", ".", "--overwrite"), "not written by salmc")
    assert Path("precious/thesis.tex").exists()


def test_overwrite_replaces_a_run():
    for seed, options in (("1", []), ("2", ["--overwrite"])):
        result = call("run", "mog2", *QUICK, "--seed", seed, "--out", "out", *options)
        assert result.exit_code == 0, result.output
    assert open_run("out").draws.settings["seed"] == 2
    assert os.listdir() == ["out"]


def test_a_corrupt_run_folder_is_one_sentence():
    call("run", "mog2", *QUICK, "--out", "out")
    Path("out/settings.json").write_text("{")
    result = call("show", "out")
    assert result.exit_code == 2
    assert "damaged" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_debug_keeps_the_traceback():
    result = call("run", "mog7", "--debug")
    assert type(result.exception).__name__ == "TargetError"
