"""Files are written whole or not at all, and what cannot be written is said before the run."""

import errno
import os
import re
import resource
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from callmark.errors import BadInput, CannotWrite, OutputFailed
from callmark.records.results import Result
from callmark.store import files
from callmark.store.files import (
    atomic_writer,
    check_writable,
    decode_record,
    encode_record,
    filled_lines,
    output_failed,
    read_input,
)


@contextmanager
def files_no_larger_than(size):
    """A real limit of the system: writing beyond it fails as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a37_a38_folders_are_made_and_the_file_appears_at_the_end(tmp_path):
    target = tmp_path / "a" / "b" / "out.jsonl"
    with atomic_writer(target) as stream:
        stream.write(b"one\n")
        stream.flush()
        assert not target.exists()
    assert target.read_bytes() == b"one\n"
    assert names(target.parent) == ["out.jsonl"]


def test_the_file_is_as_readable_as_the_umask_says(tmp_path):
    before = os.umask(0o027)
    try:
        with atomic_writer(tmp_path / "out") as stream:
            stream.write(b"x")
    finally:
        os.umask(before)
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o640


def test_an_error_in_between_leaves_the_old_file(tmp_path):
    target = tmp_path / "out"
    target.write_bytes(b"old")
    with pytest.raises(KeyError), atomic_writer(target) as stream:
        stream.write({b"new": b""}[b"old"])
    assert target.read_bytes() == b"old"
    assert names(tmp_path) == ["out"]


def test_a_foreign_os_error_is_not_taken_for_a_failing_write(tmp_path):
    with pytest.raises(FileNotFoundError), atomic_writer(tmp_path / "out"):
        (tmp_path / "other").read_bytes()


def test_a_write_that_fails_leaves_the_old_file_and_says_what_next(tmp_path):
    target = tmp_path / "out"
    target.write_bytes(b"old")
    with (
        files_no_larger_than(100_000),
        pytest.raises(OutputFailed) as caught,
        atomic_writer(target, what_next="Go on with --resume.") as stream,
    ):
        stream.write(b"x" * 200_000)
    assert target.read_bytes() == b"old"
    assert names(tmp_path) == ["out"]
    assert str(caught.value) == (
        f"{target}: could not be written: File too large."
        " What stood there before is unchanged. Go on with --resume."
    )
    assert caught.value.exit_code == 4


def test_a_failure_that_shows_only_at_the_last_flush(tmp_path):
    target = tmp_path / "out"
    with files_no_larger_than(10), pytest.raises(OutputFailed), atomic_writer(target) as stream:
        stream.write(b"x" * 20)
    assert names(tmp_path) == []


def test_a_full_disk_is_called_that(tmp_path):
    """/dev/full is a real device on which every write fails for want of space."""
    link = tmp_path / "out"
    link.symlink_to("/dev/full")
    with pytest.raises(OutputFailed) as caught, atomic_writer(link) as stream:
        stream.write(b"x")
    assert str(caught.value) == (
        f"{link}: could not be written: the disk is full (No space left on device)."
        " Free some space or choose another place, then run it again."
    )
    assert link.is_symlink()
    assert names(tmp_path) == ["out"]


def test_a_replacement_that_fails_leaves_what_is_there(tmp_path):
    target = tmp_path / "out"
    with pytest.raises(OutputFailed, match="Is a directory"), atomic_writer(target):
        target.mkdir()
    assert names(tmp_path) == ["out"]


def test_a_disk_that_fails_to_keep_what_was_written_leaves_what_is_there(tmp_path, monkeypatch):
    def fails(fd):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    target = tmp_path / "out"
    target.write_bytes(b"old")
    monkeypatch.setattr(files.os, "fsync", fails)
    with pytest.raises(OutputFailed, match="Input/output error"), atomic_writer(target) as stream:
        stream.write(b"new")
    assert target.read_bytes() == b"old"
    assert names(tmp_path) == ["out"]


def test_a_file_that_cannot_be_read_to_its_end_is_named():
    """A regular file of the system whose first page nobody may read."""
    path = Path("/proc/self/mem")
    with pytest.raises(BadInput, match=r"^/proc/self/mem: cannot be read: Input/output error$"):
        read_input(path)
    with pytest.raises(BadInput, match=r"^/proc/self/mem:1: cannot be read: Input/output error$"):
        list(filled_lines(path))


def test_what_no_codec_takes_is_written_and_read(make_result):
    answer = make_result(metadata={"large": 10**30, "torn": "a\ud800"})
    line = encode_record(answer)
    assert decode_record(line, Result).metadata == {"large": 10**30, "torn": "a\ufffd"}
    with pytest.raises(msgspec.ValidationError, match="index"):
        decode_record(line.replace(b'"index":0', b'"index":"0"'), Result)


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "there").write_bytes(b"old")
    link = tmp_path / "link"
    link.symlink_to("there")
    with atomic_writer(link) as stream:
        stream.write(b"new")
    assert link.is_symlink()
    assert (tmp_path / "there").read_bytes() == b"new"


def test_a_device_is_written_and_stays():
    with atomic_writer(Path("/dev/null")) as stream:
        stream.write(b"x")
    assert Path("/dev/null").is_char_device()


def test_what_is_checked_before_a_run(tmp_path):
    check_writable(tmp_path / "new" / "out.jsonl")
    assert names(tmp_path / "new") == []
    (tmp_path / "old").write_bytes(b"old")
    check_writable(tmp_path / "old")
    assert (tmp_path / "old").read_bytes() == b"old"
    check_writable(Path("/dev/null"))


def test_places_that_cannot_be_written_are_refused(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    cases = {
        tmp_path: "is a folder: give the name of a file in it",
        tmp_path / "file" / "out": "cannot be written: ",
        Path("/proc/no/out"): "cannot be written: ",
        tmp_path / "a\0b": "cannot be written: embedded null byte",
        tmp_path / "a\0b" / "out": "cannot be written: embedded null byte",
    }
    for path, text in cases.items():
        with pytest.raises(CannotWrite) as caught:
            check_writable(path)
        assert str(caught.value).startswith(f"{path}: {text}")
        assert caught.value.exit_code == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_permissions_are_respected(tmp_path):
    (tmp_path / "file").touch(0o400)
    with pytest.raises(CannotWrite, match="Permission denied"):
        check_writable(tmp_path / "file")
    tmp_path.chmod(0o500)
    with pytest.raises(CannotWrite, match="Permission denied"):
        check_writable(tmp_path / "other")
    tmp_path.chmod(0o700)


def test_a_quota_counts_as_a_full_disk(tmp_path):
    error = OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))
    assert "the disk is full" in str(output_failed(tmp_path, error, ""))


WRITER = """
import sys
from pathlib import Path
from callmark.store.files import atomic_writer

with atomic_writer(Path(sys.argv[1])) as stream:
    stream.write(b"half")
    stream.flush()
    print("writing", flush=True)
    sys.stdin.read()
"""


@contextmanager
def a_writer_of(path: Path):
    """Another process in the middle of writing this file."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3] / "src")}
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, path],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as writer:
        assert writer.stdout.readline() == b"writing\n"
        yield writer
        writer.kill()


class TestLeftovers:
    @pytest.fixture
    def leftover(self, tmp_path):
        with a_writer_of(tmp_path / "out"):
            pass
        [name] = names(tmp_path)
        assert re.fullmatch(r"\.callmark-[0-9a-f]{12}-[0-9a-f]{12}\.tmp", name)
        return tmp_path / name

    def test_what_a_killed_process_leaves_goes_with_the_next_writing(self, tmp_path, leftover):
        with atomic_writer(tmp_path / "out") as stream:
            assert not leftover.exists()
            stream.write(b"whole")
        assert names(tmp_path) == ["out"]
        assert (tmp_path / "out").read_bytes() == b"whole"

    def test_it_goes_before_a_run_begins(self, tmp_path, leftover):
        check_writable(tmp_path / "out")
        assert names(tmp_path) == []

    def test_what_others_left_stays(self, tmp_path, leftover):
        (tmp_path / ".callmark-note.tmp").write_bytes(b"mine")
        (tmp_path / "out2").write_bytes(b"old")
        for other in ("out2", "ou", leftover.name):
            check_writable(tmp_path / other)
            with atomic_writer(tmp_path / other):
                pass
        assert ".callmark-note.tmp" in names(tmp_path)
        assert leftover.exists()

    def test_what_is_being_written_stays(self, tmp_path):
        with a_writer_of(tmp_path / "out") as writer:
            check_writable(tmp_path / "out")
            with atomic_writer(tmp_path / "out") as stream:
                stream.write(b"mine")
            writer.communicate(b"")
            assert writer.returncode == 0
        assert names(tmp_path) == ["out"]
        assert (tmp_path / "out").read_bytes() == b"half"

    def test_a_name_may_be_as_long_as_a_name_can_be(self, tmp_path):
        target = tmp_path / ("n" * 255)
        with atomic_writer(target) as stream:
            stream.write(b"x")
        assert names(tmp_path) == [target.name]


def test_standard_output_is_written_to_whatever_it_is_and_never_replaced(tmp_path):
    """A file that is gone from its folder looks like any other file to who follows the link."""
    script = (
        "from pathlib import Path\n"
        "from callmark.store.files import atomic_writer, check_writable, has_place\n"
        "out = Path('/dev/stdout')\n"
        "check_writable(out)\n"
        "assert not has_place(out)\n"
        "print('before', flush=True)\n"
        "with atomic_writer(out) as stream:\n"
        "    stream.write(b'report')\n"
    )
    with (tmp_path / "gone").open("w+b") as gone:
        (tmp_path / "gone").unlink()
        subprocess.run([sys.executable, "-c", script], stdout=gone, check=True)
        gone.seek(0)
        assert gone.read() == b"before\nreport"
    assert Path("/dev/stdout").is_symlink()
    assert not list(tmp_path.iterdir())
