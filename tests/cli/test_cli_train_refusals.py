"""Methods that learn: one sentence for every bad input, and nothing written."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from command import call, refused


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--kernel", "flwo"], ["`kernel`", "'flow', 'mixture', 'nice', 'mlp'", "'flwo'"]),
        (["--mover", "smd"], ["`mover`", "'auto'", "'smd'"]),
        (["--set", "learningrate=1"], ["no setting `learningrate`", "`learning_rate`"]),
        (["--set", "learning_rate=0"], ["`learning_rate`", "above 0"]),
        (["--set", "pool_size=1000"], ["`pool_size`", "multiple of `batch`"]),
        (["--kernel", "mlp", "--set", "likelihood=1"], ["`likelihood`", "flow"]),
        (["--steps", "0"], ["`steps`", "Got 0"]),
        (["--steps", "5", "--set", "steps=6"], ["`steps`", "twice"]),
        (["--chains", "0"], ["`chains`", "Got 0"]),
        (["--draws", "0"], ["`draws`", "Got 0"]),
        (["--draws", "100000000"], ["too many to keep in memory", "salmc sample"]),
        (["--seed", "-1"], ["`seed`", "Got -1"]),
        (["--particles", "10"], ["`--particles`", "for movers", "--chains"]),
        (["--start", "auto"], ["`--start`", "for movers"]),
        (["--keep", "10"], ["`--keep`", "for movers"]),
        (["--resume"], ["`--resume`", "needs --out"]),
        (["--method", "sgld", "--kernel", "flow"], ["`--kernel`", "sgld is a mover"]),
        (["--method", "sgld", "--resume"], ["`--resume`", "sgld is a mover"]),
        (["--method", "sgld", "--no-metropolis"], ["`--metropolis`", "sgld is a mover"]),
        (["--method", "sal"], ["no method `sal`", "sal-mc"]),
        (["--method", "al-mc"], ["no file mog2", ".npy"]),
        (["--method", "al-mc", "--metropolis"], ["`--metropolis`", "needs a density"]),
        (["--method", "al-mc", "--mover", "smc"], ["`--mover`", "needs a density"]),
    ],
)
def test_bad_arguments(arguments, words):
    refused(call("run", "mog2", *arguments), *words)


@pytest.mark.parametrize(
    ("methods", "words"),
    [
        ("sal-mc:flwo", ["`kernel`", "'flwo'"]),
        ("sgld:flow", ["sgld is a mover"]),
        ("al-mc", ["al-mc learns from samples"]),
    ],
)
def test_bad_comparisons(methods, words):
    refused(call("compare", "mog2", "--methods", methods), *words)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.npy", b"nonsense", ["Cannot read samples"]),
        ("a.csv", b"a,b\n1,2\n3\n", ["Cannot read samples"]),
        ("a.csv", b"a,b\n1,x\n", ["Cannot read samples", "x"]),
        ("a.csv", b"1,2\n3,4\n", ["n ≥ 20", "(2, 2)"]),
        ("a.xlsx", b"1,2", ["must end in .npy or .csv"]),
    ],
)
def test_bad_samples(name, content, words):
    Path("file").mkdir()
    (Path("file") / name).write_bytes(content)
    refused(call("run", f"file/{name}", "--method", "al-mc"), *words)


def test_samples_are_never_unpickled():
    class Trap:
        def __reduce__(self):
            return os.mkdir, ("trapped",)

    Path("file").mkdir()
    np.save("file/a.npy", np.array([Trap()], dtype=object), allow_pickle=True)
    refused(call("run", "file/a.npy", "--method", "al-mc"), "Cannot read samples")
    assert not Path("trapped").exists()


def test_resume_tells_which_folders_there_are():
    Path("runs").mkdir()
    Path("runs/.mine.checkpoint").touch()
    result = call("run", "mog2", "--resume")
    assert result.exit_code == 2
    assert str(Path("runs") / "mine") in result.stderr
    shutil.rmtree("runs")
