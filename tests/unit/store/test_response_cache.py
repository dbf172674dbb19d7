"""The folder of replies: what is whole is found, what is torn or changed is not, and writers do not
meet. What is kept is found by the next one that opens it."""

import errno
import json
import os
import resource
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callmark.errors import BadInput, CannotWrite
from callmark.records.jsontext import sha256_hex
from callmark.store import response_cache
from callmark.store.response_cache import MARK, ResponseCache

SRC = Path(__file__).parents[3] / "src"
WRITER = """
import sys
from pathlib import Path
from callmark.records.jsontext import sha256_hex
from callmark.store.response_cache import ResponseCache
folder, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
with ResponseCache(folder) as cache:
    for number in range(count):
        cache.put(sha256_hex(f"{name}-{number}".encode()), b'{"text":"%d"}' % number)
    if len(sys.argv) > 4:
        print("ready", flush=True)
        sys.stdin.read()
"""


def key_of(name: str) -> str:
    return sha256_hex(name.encode())


def kept(folder: Path, *names: str) -> list[bytes | None]:
    with ResponseCache(folder) as cache:
        return [cache.get(key_of(name)) for name in names]


def keep(folder: Path, **replies: str) -> None:
    with ResponseCache(folder) as cache:
        for name, text in replies.items():
            cache.put(key_of(name), json.dumps(text).encode())


def segments(folder: Path) -> list[Path]:
    return sorted(folder.glob("answers-*.jsonl"))


def started(folder: Path, name: str, count: int, *more: str) -> subprocess.Popen:
    words = [sys.executable, "-c", WRITER, str(folder), name, str(count), *more]
    return subprocess.Popen(
        words, env={"PYTHONPATH": str(SRC)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


def test_what_is_kept_is_found_by_the_next_one(tmp_path):
    folder = tmp_path / "below" / "cache"
    keep(folder, a="one", b="two")
    assert kept(folder, "a", "b", "c") == [b'"one"', b'"two"', None]


def test_a_run_finds_only_what_was_there_before_it(tmp_path):
    """So what it finds does not depend on which of its requests came first."""
    with ResponseCache(tmp_path / "cache") as cache:
        cache.put(key_of("a"), b'"one"')
        assert cache.get(key_of("a")) is None
        assert (cache.entries, cache.stored) == (0, 1)


def test_of_two_replies_under_one_key_the_later_counts(tmp_path):
    keep(tmp_path / "cache", a="one", b="two")
    keep(tmp_path / "cache", a="three")
    assert kept(tmp_path / "cache", "a", "b") == [b'"three"', b'"two"']


def test_writers_at_once_have_segments_of_their_own_which_later_ones_use_again(tmp_path):
    folder = tmp_path / "cache"
    with ResponseCache(folder) as one, ResponseCache(folder) as two:
        one.put(key_of("a"), b'"one"')
        with ResponseCache(folder) as third:
            third.put(key_of("b"), b'"two"')
            two.put(key_of("c"), b'"three"')
    assert len(segments(folder)) == 3
    keep(folder, d="four")
    assert len(segments(folder)) == 3
    assert kept(folder, "a", "b", "c", "d") == [b'"one"', b'"two"', b'"three"', b'"four"']


def test_processes_write_at_the_same_time(tmp_path):
    folder = tmp_path / "cache"
    writers = [started(folder, name, 200) for name in "abc"]
    for writer in writers:
        writer.communicate(timeout=60)
        assert writer.returncode == 0
    names = [f"{name}-{number}" for name in "abc" for number in range(200)]
    assert kept(folder, *names) == [b'{"text":"%d"}' % (at % 200) for at in range(600)]


def test_a_killed_writer_leaves_what_it_kept_and_its_segment(tmp_path):
    folder = tmp_path / "cache"
    with started(folder, "a", 5, "wait") as writer:
        assert writer.stdout.readline() == b"ready\n"
        keep(folder, mine="here")
        writer.kill()
    keep(folder, later="there")
    assert len(segments(folder)) == 2
    assert None not in kept(folder, "a-0", "a-4", "mine", "later")


@settings(max_examples=60, deadline=None)
@given(cut=st.integers(0, 400))
def test_a_torn_end_costs_no_other_entry(tmp_path_factory, cut):
    folder = tmp_path_factory.mktemp("torn") / "cache"
    keep(folder, a="one", b="two")
    [path] = segments(folder)
    whole = path.read_bytes()
    path.write_bytes(whole[: min(cut, len(whole))])
    first, second = whole.index(b"\n"), len(whole) - 1
    expected = [b'"one"' if cut > first else None, b'"two"' if cut > second else None]
    assert kept(folder, "a", "b") == expected
    keep(folder, c="three")
    # What lacked nothing but its line end has one now.
    expected = [b'"one"' if cut >= first else None, b'"two"' if cut >= second else None]
    assert kept(folder, "a", "b", "c") == [*expected, b'"three"']


@settings(max_examples=60, deadline=None)
@given(at=st.integers(0, 399), bit=st.integers(0, 7))
def test_a_changed_byte_is_never_an_answer(tmp_path_factory, at, bit):
    folder = tmp_path_factory.mktemp("changed") / "cache"
    keep(folder, a="one", b="two")
    [path] = segments(folder)
    data = bytearray(path.read_bytes())
    data[at % len(data)] ^= 1 << bit
    path.write_bytes(data)
    for found, true in zip(kept(folder, "a", "b"), (b'"one"', b'"two"'), strict=True):
        assert found in (None, true)


def test_an_entry_that_was_put_under_another_key_is_not_found_there(tmp_path):
    keep(tmp_path / "cache", a="one")
    [path] = segments(tmp_path / "cache")
    data = path.read_bytes().replace(key_of("a").encode(), key_of("b").encode())
    with ResponseCache(tmp_path / "cache") as opened:
        path.write_bytes(data)
        assert opened.get(key_of("a")) is None


def test_what_is_withdrawn_is_gone_and_what_was_there_before_is_not(tmp_path):
    folder = tmp_path / "cache"
    keep(folder, a="one")
    with ResponseCache(folder) as cache:
        cache.put(key_of("b"), b'"two"')
        cache.withdraw()
        assert cache.stored == 0
    assert kept(folder, "a", "b") == [b'"one"', None]


def test_a_new_segment_that_another_process_took_first_is_left_to_it(tmp_path, monkeypatch):
    """Else one of them, taking back what it added, would take back what the other one did."""
    real, taken = response_cache.fcntl.flock, []

    def take_it_first(fd: int, how: int) -> None:
        if not taken and "answers-" in str(Path(f"/proc/self/fd/{fd}").readlink()):
            taken.append(os.open(f"/proc/self/fd/{fd}", os.O_RDWR))
            real(taken[0], how)
        real(fd, how)

    monkeypatch.setattr(response_cache.fcntl, "flock", take_it_first)
    with ResponseCache(tmp_path / "cache") as cache:
        cache.put(key_of("a"), b"1")
        assert os.fstat(taken[0]).st_size == 0
    os.close(taken[0])
    assert kept(tmp_path / "cache", "a") == [b"1"]


def test_more_segments_than_files_that_may_be_open(tmp_path):
    folder = tmp_path / "cache"
    keep(folder, a="one")
    [first] = segments(folder)
    for number in range(100):
        line = first.read_bytes().replace(key_of("a").encode(), key_of(f"n{number}").encode())
        (folder / f"answers-{number:012}.jsonl").write_bytes(line)
    assert kept(folder, *(f"n{number}" for number in range(100))) == [b'"one"'] * 100


# --- folders that are none


def test_a_folder_of_something_else_is_refused_and_left_as_it_is(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(
        BadInput, match=r"is not a cache: it holds 'thesis.txt'; name an empty folder"
    ):
        ResponseCache(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_cache_of_the_old_name_is_refused_in_one_sentence(tmp_path):
    (tmp_path / "answers-0123456789ab.jsonl").write_text("{}\n")
    (tmp_path / "another-cache.json").write_text('{"another_cache":1}\n')
    with pytest.raises(BadInput, match="an older version of this program wrote under another name"):
        ResponseCache(tmp_path)


def test_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(CannotWrite, match="file: cannot be used as a cache: Not a directory"):
        ResponseCache(tmp_path / "file")


@pytest.mark.parametrize(
    "mark", [b"", b"{", b"\xff", b"[]", b'{"callmark_cache":1}', b'{"callmark_cache":3}']
)
def test_the_mark_of_another_version_is_refused(tmp_path, mark):
    keep(tmp_path / "cache", a="one")
    (tmp_path / "cache" / MARK).write_bytes(mark)
    with pytest.raises(BadInput, match="not the mark of a cache of this version"):
        ResponseCache(tmp_path / "cache")


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
@pytest.mark.parametrize("mode", [stat.S_IRUSR | stat.S_IXUSR, stat.S_IWUSR | stat.S_IXUSR])
def test_a_folder_that_may_not_be_read_or_written_is_refused(tmp_path, mode):
    keep(tmp_path / "cache", a="one")
    (tmp_path / "cache").chmod(mode)
    with pytest.raises(CannotWrite, match="cannot be used as a cache: Permission denied"):
        ResponseCache(tmp_path / "cache")


def test_a_full_disk_ends_the_keeping_not_the_run(tmp_path):
    with ResponseCache(tmp_path / "cache") as cache:
        cache._writer = os.open("/dev/full", os.O_WRONLY)
        cache.put(key_of("a"), b'"one"')
        assert cache.trouble == "No space left on device"
        cache.put(key_of("b"), b'"two"')
    assert kept(tmp_path / "cache", "a", "b") == [None, None]


def test_a_line_that_is_cut_short_ends_the_keeping_too(tmp_path):
    folder = tmp_path / "cache"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with ResponseCache(folder) as cache:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
        try:
            cache.put(key_of("a"), b'"one"')
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert (cache.trouble, cache.stored) == ("No space left on device", 0)
    assert kept(folder, "a") == [None]


def test_where_there_are_no_locks_each_writer_has_a_segment(tmp_path, monkeypatch):
    def no_lock(fd, how):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    folder = tmp_path / "cache"
    monkeypatch.setattr(response_cache.fcntl, "flock", no_lock)
    keep(folder, a="one")
    keep(folder, b="two")
    assert len(segments(folder)) == 2
    assert kept(folder, "a", "b") == [b'"one"', b'"two"']


def test_a_segment_that_is_taken_away_holds_no_answer(tmp_path):
    folder = tmp_path / "cache"
    keep(folder, a="one")
    with ResponseCache(folder) as cache:
        segments(folder)[0].unlink()
        assert cache.get(key_of("a")) is None


def test_a_segment_that_cannot_be_read_is_named(tmp_path):
    folder = tmp_path / "cache"
    keep(folder, a="one")
    (folder / "answers-0123456789ab.jsonl").mkdir()
    with pytest.raises(BadInput, match=r"answers-0123456789ab.jsonl: cannot be read: Is a dir"):
        ResponseCache(folder)
