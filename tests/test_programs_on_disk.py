"""Programs that one process compiled are found by the next, and nothing ever fails by it."""

import os
import shutil
import subprocess
import sys
import zlib

import pytest

from salmc.programs_on_disk import remove_oldest, remove_unfinished

PROGRAM = """
import sys
{early}
import logging, jax, salmc
logging.getLogger("jax._src.compiler").addHandler(logging.StreamHandler(sys.stdout))
logging.getLogger("jax._src.compiler").setLevel(logging.DEBUG)
folder = salmc.remember_programs(sys.argv[1])
print("folder", folder)
print("value", float(jax.jit(lambda x: (x ** 3).sum())(jax.numpy.arange(5.0))))
"""


def run(folder, early="", **variables):
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM.format(early=early), str(folder)],
        capture_output=True,
        text=True,
        check=True,
        env={**inherited, **variables},
    )
    assert "value 100.0" in done.stdout
    return done.stdout


def programs(folder):
    return [path for path in folder.rglob("*-cache") if path.is_file()]


def make_older(paths, seconds):
    for path in paths:
        told = path.stat().st_mtime - seconds
        os.utime(path, (told, told))


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """What the first of all processes kept."""
    folder = tmp_path_factory.mktemp("kept") / "here"
    assert "Persistent compilation cache hit" not in run(folder)
    assert programs(folder)
    return folder


def test_a_second_process_finds_them(kept):
    assert "Persistent compilation cache hit" in run(kept)


def test_one_that_compiled_before_finds_them_too(kept):
    early = "import jax; jax.jit(lambda x: x + 1)(1.0)"
    assert "Persistent compilation cache hit" in run(kept, early)


def test_those_of_one_that_compiled_before_are_kept(tmp_path):
    run(tmp_path / "here", "import jax; jax.jit(lambda x: x + 1)(1.0)")
    assert programs(tmp_path / "here")


def test_unfinished_ones_are_compiled_and_kept_again(kept, tmp_path):
    """A killed process or a full disk left nothing of them, or a half; JAX would neither use nor
    replace them."""
    folder = tmp_path / "here"
    shutil.copytree(kept, folder)
    assert len(programs(folder)) > 1
    for number, path in enumerate(programs(folder)):
        path.write_bytes(path.read_bytes()[: number % 2 * path.stat().st_size // 2])
    make_older([*programs(folder), *folder.rglob(".checked")], 60)
    assert "Persistent compilation cache hit" not in run(folder)
    again = run(folder)
    assert again.count("Persistent compilation cache hit") >= len(programs(kept))


def test_whole_ones_and_what_may_still_be_written_are_left_alone(tmp_path):
    whole = zlib.compress(bytes(range(256)) * 10_000)
    names = {"whole": whole, "cut": whole[:-1], "other": b"not of zlib", "young": whole[:-1]}
    for name, content in names.items():
        (tmp_path / f"{name}-cache").write_bytes(content)
    make_older([tmp_path / f"{name}-cache" for name in ("whole", "cut", "other")], 60)
    remove_unfinished(tmp_path)
    assert {path.name for path in programs(tmp_path)} == {
        "whole-cache",
        "other-cache",
        "young-cache",
    }
    # What was young then is looked at the next time, what was found whole is not.
    make_older(tmp_path.glob(".checked"), 60)
    make_older([tmp_path / "young-cache"], 30)
    (tmp_path / "whole-cache").write_bytes(whole[:-1])
    make_older([tmp_path / "whole-cache"], 300)
    remove_unfinished(tmp_path)
    assert {path.name for path in programs(tmp_path)} == {"whole-cache", "other-cache"}
    remove_unfinished(tmp_path / "nowhere")


def test_a_folder_that_cannot_be_is_done_without(tmp_path):
    (tmp_path / "file").write_text("in the way")
    assert "folder None" in run(tmp_path / "file")


def test_what_jax_was_told_before_is_left_alone(tmp_path):
    own = tmp_path / "own"
    told = run(tmp_path / "ours", JAX_COMPILATION_CACHE_DIR=str(own))
    assert f"folder {own}" in told
    assert not (tmp_path / "ours").exists()


def test_without_a_home_folder_commands_work_as_before(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", "import salmc; print(salmc.remember_programs())"],
        capture_output=True,
        text=True,
        check=True,
        # There is no such user, so that "~" means nothing.
        env={"PATH": os.environ["PATH"], "SALMC_CACHE": "~nobody-of-that-name/cache"},
        cwd=tmp_path,
    )
    assert done.stdout.strip() == "None"


def test_the_oldest_go_first(tmp_path):
    for age in range(4):
        path = tmp_path / f"{age}-cache"
        path.write_bytes(bytes(100))
        os.utime(path, (1e9 - age, 1e9 - age))
    remove_oldest(tmp_path, most_bytes=250)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0-cache", "1-cache"]
    remove_oldest(tmp_path / "nowhere", most_bytes=0)
