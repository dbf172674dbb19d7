"""Fingerprints of weights: by their bytes, remembered only as long as the file is the same."""

import os

import pytest

from callmark.errors import UsageError
from callmark.runners.hf.loading import HashCache, fingerprint

LARGE = b"w" * (1 << 20)


@pytest.fixture
def weights(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(LARGE)
    return path


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "callmark" / "file-hashes.json"


def settle(path):
    """As if the file had been there for a while."""
    old = path.stat().st_mtime_ns - 10**10
    os.utime(path, ns=(old, old))


def of(path):
    return fingerprint([("model/weights", path)])


def at_once(cache):
    """A memory that does not wait until a file is old."""
    return HashCache(cache, settled_ns=-1)


def test_a62_another_byte_is_another_model_also_with_the_same_size_and_time(weights, cache):
    settle(weights)
    before, stamp = of(weights), weights.stat()
    with weights.open("r+b") as stream:
        stream.write(b"x")
    os.utime(weights, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert of(weights) != before


def test_the_role_of_a_file_counts_and_its_folder_does_not(weights, cache, tmp_path):
    copy = tmp_path / "elsewhere" / weights.name
    copy.parent.mkdir()
    copy.write_bytes(LARGE)
    assert of(copy) == of(weights)
    assert fingerprint([("adapter/weights", weights)]) != of(weights)


def test_what_was_hashed_is_remembered_once_the_file_is_old_enough(weights, cache):
    first = of(weights)
    assert not cache.exists()  # it could still be changed within the same tick of the clock
    assert at_once(cache).fingerprint([("model/weights", weights)]) == first
    remembered = cache.read_bytes()
    assert str(weights).encode() in remembered
    cache.write_bytes(remembered.replace(b'"sha256":"', b'"sha256":"0'))
    assert of(weights) != first  # so it was not read again


@pytest.mark.parametrize("spoilt", [b"", b"\xff", b"[]", b'{"a": 1}', b'{"a": {"stamp": "x"}}'])
def test_a_spoilt_memory_is_ignored(weights, cache, spoilt):
    before = of(weights)
    cache.parent.mkdir(parents=True, exist_ok=True)
    cache.write_bytes(spoilt)
    assert of(weights) == before
    assert at_once(cache).fingerprint([("model/weights", weights)]) == before
    assert of(weights) == before


def test_a_memory_that_cannot_be_written_does_no_harm(weights, cache, tmp_path):
    (tmp_path / "file").write_text("")
    blocked = at_once(tmp_path / "file" / "hashes.json")
    assert blocked.fingerprint([("model/weights", weights)]) == of(weights)


def test_a_file_that_is_gone_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"gone: cannot be read: No such file"):
        of(tmp_path / "gone")
