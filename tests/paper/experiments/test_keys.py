"""Results that were computed long ago are found again: keys of jobs stay what they are.

Moving code, renaming a function or telling a job's name in other words must not change a key. A
new version of a job does, and so does a new default of the library, on purpose: then all results
that rest on it are void, and the new key belongs here.
"""

import pytest

from salmc_paper.harness.jobs import Plan, in_order
from salmc_paper.registry import load

PLAIN = {
    "table1": {("chains", "floor of MMD² on ring"): "ring-floor10-points2000-901f637182"},
    "table2": {
        ("nuts", "NUTS on heart"): "heart-nuts-chains32-draws2000-warmup1000-fe198d59d7",
        (
            "split",
            "NUTS on heart split 0",
        ): "heart-split0-nuts-chains32-draws2000-warmup1000-f169de6080",
    },
    "mog10": {
        (
            "mog10",
            "AG-SVGD, 50 particles, 20 runs",
        ): "ag-svgd-particles50-runs20-steps500-ab71892065"
    },
    "mog4": {("mog4", "AG-SVGD, run 0"): "ag-svgd-run0-particles400-steps500-c1ffd0524c"},
}
"""Experiment ↦ (folder, name) ↦ key, of jobs that rest on no default of a training."""

TRAINED = {
    "table1": {
        ("train", "SAL-MC, MLP on ring, seed 0"): "ring-sal-mc-mlp-seed0-e06259d374",
        ("train", "SAL-MC, flow on ring, seed 0"): "ring-sal-mc-flow-seed0-11b16c598b",
        ("train", "SAL-MC, NICE on ring, seed 0"): "ring-sal-mc-nice-seed0-e8801e653a",
        ("train", "A-NICE-MC on ring, seed 0"): "ring-a-nice-mc-nice-seed0-569b422792",
        ("race", "race on ring"): "ring-chains32-draws2000-08828c6c2e",
    },
    "table2": {
        ("train", "SAL-MC, MLP on heart, seed 0"): "heart-sal-mc-mlp-seed0-60c34f41bd",
        (
            "chains",
            "SAL-MC, MLP on heart, seed 0",
        ): "heart-sal-mc-mlp-seed0-metropolisfalse-chains32-draws2000-11c90f4918",
        ("race", "race on heart"): "heart-warmup1000-chains32-draws2000-ac60f40eee",
    },
    "mog6": {
        (
            "six-modes",
            "SAL-MC, MLP on Mog6 from N(0, I)",
        ): "sal-mc-mlp-metropolisfalse-chains32-draws2000-3321b0e370",
    },
    "ring-chains": {
        ("ring-chains", "SAL-MC, MLP, one chain against many, 20 runs"): "mlp-runs20-e803c9da5c"
    },
    "german-epochs": {
        (
            "train",
            "SAL-MC, MLP on german split 0, seed 0, 125 steps",
        ): "german-sal-mc-mlp-seed0-steps125-split0-06215ac146"
    },
    "mnist": {
        ("mnist", "classifier of MNIST"): "classifier-epochs4-seed0-807750e07e",
        (
            "train-images",
            "train AL-MC, conv kernel, on mnist, seed 0",
        ): "mnist-conv-seed0-steps16000-augmentation0.0-93c80e1cbf",
    },
    "faces": {
        (
            "train-images",
            "train AL-MC, conv kernel, on faces, seed 0",
        ): "faces-conv-seed0-steps6000-size32-colourfalse-augmentation1.-1c88457258",
        (
            "faces",
            "chain over faces, ξ ~ N(0, 0.5 I), seed 0",
        ): "noise0.5-seed0-chains40-draws500-fbabf24ffc",
    },
}
"""The same of trainings with the defaults, and of what rests on them."""


def keys_of(name):
    return {(job.experiment, job.name): job.key for job in in_order(load(name).jobs(Plan()))}


@pytest.mark.parametrize("name", PLAIN)
def test_keys_stay(name):
    assert PLAIN[name].items() <= keys_of(name).items()


@pytest.mark.parametrize("name", TRAINED)
def test_keys_of_trainings_stay_while_the_defaults_do(name):
    assert TRAINED[name].items() <= keys_of(name).items()
