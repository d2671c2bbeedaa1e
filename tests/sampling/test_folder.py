"""A run folder is there in full or not at all, and opens again."""

import json
import os

import jax.numpy as jnp
import numpy as np
import pytest

from salmc.diagnostics.summary import summarize
from salmc.errors import OutputError
from salmc.sampling.draws import Draws
from salmc.sampling.files.folder import open_run, write_run
from salmc.target import Target

TARGET = Target(lambda x: -0.5 * jnp.sum(x**2), 2, name="normal", mean=[0, 0], std=[1, 1])


def make_draws(target=TARGET):
    positions = np.random.default_rng(0).normal(size=(50, 4, 2)).astype(np.float32)
    log_density = -0.5 * np.sum(positions**2, axis=-1)
    return Draws(
        positions,
        log_density,
        seconds=0.5,
        kind="particles",
        method="test",
        target=target,
        settings={"step_size": 0.1},
    )


def fake_plots(draws, folder):
    (folder / "one.png").write_bytes(b"not really a picture")
    return ("The picture two.png could not be drawn: no ink",)


def test_what_is_written_opens_again(tmp_path):
    draws = make_draws()
    summary = summarize(draws)
    path = write_run(draws, tmp_path / "run", summary=summary, spec="my.py:t", plots=fake_plots)
    assert sorted(os.listdir(path)) == [
        "checksums.json",
        "diagnostics.json",
        "draws.zarr",
        "plots",
        "settings.json",
        "summary.txt",
    ]
    opened = open_run(path, TARGET)
    np.testing.assert_array_equal(opened.draws.positions, draws.positions)
    assert opened.draws.warnings == ("The picture two.png could not be drawn: no ink",)
    assert opened.settings["target_spec"] == "my.py:t"
    assert opened.settings["settings"] == {"step_size": 0.1}
    assert opened.summary == str(summary)
    assert opened.diagnostics["verdict"]["trustworthy"] == summary.verdict.trustworthy
    assert opened.diagnostics["table"]["rows"] == [list(row) for row in summary.rows()]
    assert [plot.name for plot in opened.plots] == ["one.png"]


def test_built_in_targets_come_back_by_name_and_others_do_not_run(tmp_path):
    write_run(make_draws(), tmp_path / "built-in", spec="mog6")
    assert open_run(tmp_path / "built-in").draws.target.name.lower() == "mog6"
    write_run(make_draws(), tmp_path / "own", spec="os.py:system")
    assert open_run(tmp_path / "own").draws.target is None


def test_no_summary_is_no_obstacle(tmp_path):
    opened = open_run(write_run(make_draws(None), tmp_path / "run"))
    assert opened.diagnostics == {}
    assert "interrupted" in opened.summary


def test_numbers_json_lacks_become_null(tmp_path):
    draws = make_draws()
    draws.settings["bandwidth"] = float("nan")
    write_run(draws, tmp_path / "run")
    content = json.loads(
        (tmp_path / "run" / "settings.json").read_text(), parse_constant=pytest.fail
    )
    assert content["settings"]["bandwidth"] is None


def test_overwriting(tmp_path):
    write_run(make_draws(), tmp_path / "run", spec="first")
    with pytest.raises(OutputError, match="exists already"):
        write_run(make_draws(), tmp_path / "run")
    write_run(make_draws(), tmp_path / "run", spec="second", overwrite=True)
    assert open_run(tmp_path / "run").settings["target_spec"] == "second"
    assert os.listdir(tmp_path) == ["run"]


def test_a_folder_of_someone_else_is_not_overwritten(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("years of work")
    with pytest.raises(OutputError, match="not written by salmc"):
        write_run(make_draws(), tmp_path / "thesis", overwrite=True)
    assert (tmp_path / "thesis" / "chapter.tex").exists()


def test_left_over_temporary_folders_do_not_confuse(tmp_path):
    left_over = tmp_path / ".run.tmp-0123456789ab"
    left_over.mkdir()
    (left_over / "settings.json").write_text("{")
    write_run(make_draws(), tmp_path / "run")
    assert open_run(tmp_path / "run").draws.method == "test"


def test_an_error_while_writing_leaves_nothing(tmp_path):
    def fail(draws, folder):
        raise OSError(28, "No space left on device")

    with pytest.raises(OutputError, match="No space left"):
        write_run(make_draws(), tmp_path / "run", plots=fail)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("settings.json", None),
        ("settings.json", "{"),
        ("settings.json", "[]"),
        ("settings.json", '{"format": "salmc-run-99"}'),
        ("settings.json", "\x00\x00"),
        ("diagnostics.json", None),
        ("diagnostics.json", "nonsense"),
        ("summary.txt", None),
        ("draws.zarr", None),
    ],
)
def test_damage_is_one_sentence(tmp_path, file, content):
    import shutil

    write_run(make_draws(), tmp_path / "run")
    place = tmp_path / "run" / file
    if content is None:
        shutil.rmtree(place) if place.is_dir() else place.unlink()
    else:
        place.write_text(content)
    with pytest.raises(OutputError) as caught:
        open_run(tmp_path / "run")
    assert "\n" not in str(caught.value)


def test_no_folder_and_a_file(tmp_path):
    with pytest.raises(OutputError, match="no run folder"):
        open_run(tmp_path / "absent")
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="no run folder"):
        open_run(tmp_path / "file")
