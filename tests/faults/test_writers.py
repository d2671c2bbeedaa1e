"""Two writers of one place, planted links, and locks."""

import os
import threading

import pytest

from salmc.errors import OutputError
from salmc.sampling.files.atomic import new_file, new_folder
from salmc.sampling.files.lock import only_writer


def test_what_two_writers_leave_is_whole(tmp_path):
    """Each read is all of one writer; with one temporary name for both, most were damaged."""
    place, failures, ended = tmp_path / "file.salmc", [], threading.Event()
    contents = [letter * 200_000 for letter in (b"a", b"b")]

    def write(content):
        while not ended.is_set():
            with new_file(place) as file:
                for first in range(0, len(content), 10_000):
                    file.write(content[first : first + 10_000])

    writers = [threading.Thread(target=write, args=(content,)) for content in contents]
    for writer in writers:
        writer.start()
    reads = 0
    while reads < 100:
        if place.exists():
            reads += 1
            if place.read_bytes() not in contents:
                failures.append(reads)
    ended.set()
    for writer in writers:
        writer.join()
    assert failures == []
    assert os.listdir(tmp_path) == ["file.salmc"]


def test_links_are_replaced_and_not_followed(tmp_path):
    precious, place = tmp_path / "precious", tmp_path / "file.salmc"
    precious.write_text("years of work")
    place.symlink_to(precious)
    # Names that a temporary file had before they were unique.
    for name in (".file.salmc", ".file.salmc.tmp", "..file.salmc.tmp"):
        (tmp_path / name).symlink_to(precious)
    with new_file(place) as file:
        file.write(b"new")
    assert precious.read_text() == "years of work"
    assert place.read_bytes() == b"new"
    assert not place.is_symlink()


def test_a_name_that_is_taken_is_not_opened(tmp_path, monkeypatch):
    """Even one who could guess the name gets nothing overwritten."""
    monkeypatch.setattr("secrets.token_hex", lambda _: "guessed")
    precious = tmp_path / "precious"
    precious.write_text("years of work")
    (tmp_path / ".file.tmp-guessed").symlink_to(precious)
    with pytest.raises(OutputError, match="File exists"), new_file(tmp_path / "file") as file:
        file.write(b"new")
    assert precious.read_text() == "years of work"


def test_names_may_be_as_long_as_they_can(tmp_path):
    place = tmp_path / ("ä" * 120)
    with new_file(place) as file:
        file.write(b"new")
    with new_folder(tmp_path / ("b" * 250)) as folder:
        (folder / "file").touch()
    assert place.read_bytes() == b"new"


def test_a_second_run_into_a_place_is_refused(tmp_path):
    with only_writer(tmp_path / "run"):
        refused = pytest.raises(OutputError, match="Another run is writing")
        with refused, only_writer(tmp_path / "run"):
            pytest.fail("two writers")
        with only_writer(tmp_path / "other"):
            pass
    assert os.listdir(tmp_path) == []
    with only_writer(tmp_path / "run"):
        pass


def test_a_lock_that_a_killed_run_left_is_no_obstacle(tmp_path):
    (tmp_path / ".run.lock").touch()
    with only_writer(tmp_path / "run"):
        pass
    assert os.listdir(tmp_path) == []


def test_what_a_killed_run_left_is_removed_by_the_next(tmp_path):
    """Old and locked by nobody; not what is being written, was made just now, or is of others."""
    token = "0" * 32
    left, others = tmp_path / f".file.tmp-{token}", tmp_path / ".file.tmp-precious"
    folder = tmp_path / f".run.tmp-{token}"
    folder.mkdir()
    (folder / "half").touch()
    for file in (left, others):
        file.touch()
    for file in (left, others, folder):
        os.utime(file, (0, 0))
    with new_file(tmp_path / "file"), new_folder(tmp_path / "run"):
        pass
    assert sorted(os.listdir(tmp_path)) == [".file.tmp-precious", "file", "run"]


def test_what_another_is_writing_is_left_alone(tmp_path):
    with new_file(tmp_path / "file") as slow, new_folder(tmp_path / "run") as working:
        for file in (slow.name, working):
            os.utime(file, (0, 0))
        with new_file(tmp_path / "file") as quick, new_folder(tmp_path / "run", overwrite=True):
            quick.write(b"quick")
        slow.write(b"slow")
        (tmp_path / "run").rmdir()
    assert (tmp_path / "file").read_bytes() == b"slow"
    assert sorted(os.listdir(tmp_path)) == ["file", "run"]
