import gzip
import hashlib
import os
import shutil
import stat
from pathlib import Path

import pytest

from salmc.cache_folder import cache_folder
from salmc.datasets import known_files
from salmc.datasets.fetch import SHIPPED, find
from salmc.datasets.known_files import KNOWN_FILES, KnownFile, gzip_digest, table_digest
from salmc.errors import ArgumentError, DataError

BLANKS = b"1 2.50 0\n0 -3 1\n"
COMMAS = b"a,b,y\n1,2.5,0\n0,-3.0,1\n"


@pytest.fixture(autouse=True)
def empty_machine(monkeypatch, tmp_path):
    """No folder of the user's, an empty cache, and any download fails unless a test allows it."""
    monkeypatch.delenv("SALMC_DATA", raising=False)
    monkeypatch.setenv("SALMC_CACHE", str(tmp_path / "cache"))

    def offline(*arguments, **options):
        raise ConnectionError("no network")

    monkeypatch.setattr("pooch.retrieve", offline)


@pytest.fixture
def small_file(monkeypatch):
    """A file that does not ship, of two rows and three columns."""
    known = KnownFile(
        ("small.csv", "small.dat"),
        table_digest(3)(COMMAS),
        table_digest(3),
        "https://example.org/small.dat",
    )
    monkeypatch.setitem(known_files.KNOWN_FILES, "small.csv", known)
    return known


@pytest.fixture
def network(monkeypatch):
    """What the network sends, and how often it was asked."""
    sent = {"content": BLANKS, "asked": 0}

    def retrieve(url, known_hash, fname, path, **options):
        sent["asked"] += 1
        place = Path(path) / fname
        place.write_bytes(sent["content"])
        return str(place)

    monkeypatch.setattr("pooch.retrieve", retrieve)
    return sent


def cached_files(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "cache").rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("heart.csv", "b8957d85799edbfa46ce6c6bae6041ea7a1b66093a4aea3e1d85e3f5a288c1e7"),
        ("german.csv", "957d3dcd068110f7f8ccc183b9070ceccd2c67b81d4aafb4edcf9ca475f052af"),
    ],
)
def test_two_files_ship_with_the_package_byte_by_byte(name, digest):
    path = find(name)
    assert path.parent == SHIPPED
    assert hashlib.sha256(path.read_bytes()).hexdigest() == digest
    assert "CC BY 4.0" in (SHIPPED / "ATTRIBUTION.md").read_text()


def test_the_users_folder_comes_first(monkeypatch, tmp_path):
    shutil.copy(SHIPPED / "heart.csv", tmp_path)
    monkeypatch.setenv("SALMC_DATA", str(tmp_path))
    assert find("heart.csv") == tmp_path / "heart.csv"
    assert find("german.csv").parent == SHIPPED


def test_a_corrupt_file_in_the_users_folder_is_not_passed_over(monkeypatch, tmp_path):
    text = (SHIPPED / "heart.csv").read_text()
    (tmp_path / "heart.csv").write_text(text.replace("70,1,4,130", "70,1,4,131", 1))
    monkeypatch.setenv("SALMC_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"heart.csv is not .*another SHA-256\. Replace it, or"):
        find("heart.csv")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\xff\xfe\x00", "not text"),
        (b"", "no rows"),
        (b"a,b,y\n", "no rows"),
        (b"a,y\n1,0\n", "2 names, not 3"),
        (b"a,b,y\n1,2\n", "line 2 has 2 values, not 3"),
        (b"1 2 0\n\n1 two 0\n", "line 3 has a value that is no number"),
        (b"1 nan 0\n", "line 1 has a value that is not finite"),
        (b"1 2 7\n", "values other than 0 and 1"),
    ],
)
def test_what_is_wrong_with_a_table_is_said(small_file, monkeypatch, tmp_path, content, reason):
    (tmp_path / "small.csv").write_bytes(content)
    monkeypatch.setenv("SALMC_DATA", str(tmp_path))
    with pytest.raises(DataError, match=f"is not the data file small.csv: .*{reason}"):
        find("small.csv")


def test_a_folder_that_is_not_there(monkeypatch, tmp_path):
    monkeypatch.setenv("SALMC_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match=r"SALMC_DATA names the folder .*nowhere, which does not"):
        find("heart.csv")


def test_offline_without_a_folder():
    with pytest.raises(DataError) as raised:
        find("australian.csv")
    message = str(raised.value)
    assert "could not be downloaded from https://archive.ics.uci.edu" in message
    assert "ConnectionError" in message
    assert "name that folder with the environment variable SALMC_DATA" in message
    assert "\n" not in message


def test_offline_with_a_folder_that_lacks_the_file(monkeypatch, tmp_path):
    monkeypatch.setenv("SALMC_DATA", str(tmp_path))
    with pytest.raises(DataError, match=f"Put it into {tmp_path}, which SALMC_DATA names"):
        find("australian.csv")


def test_without_permission_to_download_nothing_is_asked_of_the_network(small_file, network):
    with pytest.raises(DataError, match=r"small\.csv is not on this machine"):
        find("small.csv", download=False)
    assert network["asked"] == 0


def test_a_download_is_kept_and_found_again(small_file, network, tmp_path):
    path = find("small.csv")
    assert path == tmp_path / "cache" / "small.dat"
    assert path.read_bytes() == BLANKS
    assert find("small.csv") == path
    assert find("small.csv", download=False) == path
    assert network["asked"] == 1
    assert cached_files(tmp_path) == ["small.dat"]


def test_a_download_of_other_content_leaves_nothing_behind(small_file, network, tmp_path):
    network["content"] = BLANKS.replace(b"2.50", b"2.51")
    with pytest.raises(DataError, match=r"What https://example\.org/small\.dat sent is not .*SHA"):
        find("small.csv")
    assert cached_files(tmp_path) == []


def test_an_interrupted_download_leaves_nothing_behind(small_file, monkeypatch, tmp_path):
    def interrupted(url, known_hash, fname, path, **options):
        (Path(path) / fname).write_bytes(BLANKS[:5])
        raise KeyboardInterrupt

    monkeypatch.setattr("pooch.retrieve", interrupted)
    with pytest.raises(KeyboardInterrupt):
        find("small.csv")
    assert cached_files(tmp_path) == []


def test_a_file_that_went_bad_in_the_cache_is_downloaded_anew(small_file, network, tmp_path):
    path = find("small.csv")
    path.write_bytes(BLANKS[:-5])
    assert find("small.csv").read_bytes() == BLANKS
    assert network["asked"] == 2


def test_a_cache_that_cannot_be_written(small_file, network, monkeypatch, tmp_path):
    # A file in the folder's place stops everyone, root included.
    (tmp_path / "blocked").write_text("")
    monkeypatch.setenv("SALMC_CACHE", str(tmp_path / "blocked" / "cache"))
    with pytest.raises(DataError, match=r"cache folder .*cannot be written .*SALMC_CACHE"):
        find("small.csv")
    assert network["asked"] == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="permissions do not stop root")
def test_a_read_only_cache(small_file, network, tmp_path):
    cache = tmp_path / "cache"
    cache.mkdir()
    cache.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        with pytest.raises(DataError, match=r"cache folder .*cannot be written"):
            find("small.csv")
    finally:
        cache.chmod(stat.S_IRWXU)


def test_a_full_disk_is_one_sentence(small_file, monkeypatch, tmp_path):
    def full(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pooch.retrieve", full)
    with pytest.raises(DataError, match="could not be downloaded"):
        find("small.csv")
    assert cached_files(tmp_path) == []


def test_content_counts_and_not_how_it_is_written(small_file):
    assert table_digest(3)(BLANKS) == table_digest(3)(COMMAS)
    assert table_digest(3)(b"0 -3 1\n1 2.5 0\n") != table_digest(3)(BLANKS)
    content = b"digits" * 1000
    digests = {gzip_digest(gzip.compress(content, level)) for level in (1, 9)}
    assert digests == {hashlib.sha256(content).hexdigest()}
    with pytest.raises(DataError, match="not a whole gzip file"):
        gzip_digest(gzip.compress(content)[:-9])
    with pytest.raises(DataError, match="not a whole gzip file"):
        gzip_digest(content)


def test_unknown_names():
    with pytest.raises(ArgumentError, match=r"must be one of heart\.csv, .*Got 'hart\.csv'"):
        find("hart.csv")


def test_files_that_do_not_ship_say_where_to_get_them():
    for name, known in KNOWN_FILES.items():
        shipped = (SHIPPED / known.places[0]).is_file()
        assert shipped == (known.url is None), name
        assert len(known.digest) == 64


def test_the_default_cache_is_the_operating_systems(monkeypatch):
    monkeypatch.delenv("SALMC_CACHE")
    assert "salmc" in str(cache_folder())
