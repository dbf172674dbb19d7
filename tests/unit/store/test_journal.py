"""The journal: nothing that was finished is lost, whatever happens."""

import errno
import json
import os
import resource
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callmark.errors import BadInput, CannotWrite, FingerprintMismatch, OutputFailed, UsageError
from callmark.records.jsontext import sha256_hex
from callmark.records.seams import Observed
from callmark.store import journal
from callmark.store.files import encode_result
from callmark.store.journal import WrongTrials, journal_path, open_journal, stamp, unstamp

FINGERPRINTS = {"dataset_sha256": "d1", "limit": 10, "decoding": {"seed": 42}, "gates": "g"}


@pytest.fixture
def out(tmp_path):
    return tmp_path / "results.jsonl"


@pytest.fixture(scope="session")
def line(make_result):
    def encode(index, trial=0, status="ok", text="Integration: 1894."):
        return encode_result(
            make_result(
                index=index,
                sample_id=f"s{index}",
                trial=trial,
                status=status,
                model_output=text,
                turns=None,
                tool_trace=(),
                scores=None,
            )
        )

    return encode


def opened(out, mode="new", fingerprints=FINGERPRINTS, **options):
    return open_journal(out, fingerprints, mode=mode, **options)


def write_journal(out, *lines):
    with opened(out) as journal:
        for line in lines:
            journal.append(line)
    return journal_path(out)


def test_it_stands_beside_the_output_and_begins_with_the_fingerprints(out, line):
    path = write_journal(out, line(0))
    assert path == out.with_name("results.jsonl.journal")
    head, first = path.read_bytes().splitlines(keepends=True)
    assert json.loads(head) == {"journal": 2, "fingerprints": FINGERPRINTS}
    assert unstamp(first) == line(0)


def test_a_line_is_with_the_system_at_once(out, line):
    with opened(out) as journal:
        journal.append(line(0))
        assert journal_path(out).read_bytes().endswith(stamp(line(0)))


def test_finish_writes_in_dataset_order_and_the_journal_goes_last(out, line):
    out.write_bytes(b"an older run\n")
    with opened(out) as journal:
        for index, trial in [(9000, 1), (2, 1), (9000, 0), (0, 0), (2, 0)]:
            journal.append(line(index, trial))
        assert out.read_bytes() == b"an older run\n"
        journal.finish(out)
        assert journal_path(out).exists()
        journal.remove()
    order = [(0, 0), (2, 0), (2, 1), (9000, 0), (9000, 1)]
    assert out.read_bytes() == b"".join(line(*key) for key in order)
    assert not journal_path(out).exists()


@pytest.mark.parametrize(
    "order",
    [
        [(0, 0), (0, 1), (3, 0), (9000, 0)],
        [(0, 0), (0, 1), (9000, 0), (3, 0)],
        [(0, 0), (0, 1), (0, 1), (3, 0), (9000, 0)],
        [(9000, 0), (3, 0), (0, 1), (0, 0), (3, 0)],
    ],
    ids=["in order", "last ones swapped", "one twice", "backwards"],
)
def test_finish_writes_the_same_whatever_the_order_of_the_journal(out, line, order):
    """In order, no place is kept; else places are sorted. A resumed run's second head is no
    result, and of two lines of one trial the later counts."""
    lines = [line(*key, text=str(at)) for at, key in enumerate(order)]
    write_journal(out, *lines[:2])
    other = FINGERPRINTS | {"gates": "others"}
    with opened(out, "resume", other, may_differ=("gates",)) as journal:
        for later in lines[2:]:
            journal.append(later)
        journal.finish(out)
    latest = dict(zip(order, lines, strict=True))
    assert out.read_bytes() == b"".join(latest[key] for key in sorted(latest))


@pytest.mark.parametrize(
    "order",
    [
        [(0, 0), (0, 1), (3, 0), (9000, 0)],
        [(9000, 1), (2, 1), (9000, 0), (0, 0), (2, 0), (2, 1)],
    ],
    ids=["in order", "in none, one twice"],
)
@pytest.mark.parametrize("told", [1.0, 0.5], ids=["all places", "some places"])
def test_finish_writes_the_same_where_it_was_told_the_places(out, line, order, told):
    """A run that says which trial it appends need not have its journal read to find out; where it
    says so only of some, nothing of that counts. A second time all of it is read."""
    lines = [line(*key, text=str(at)) for at, key in enumerate(order)]
    latest = dict(zip(order, lines, strict=True))
    expected = b"".join(latest[key] for key in sorted(latest))
    with opened(out) as journal:
        for at, (key, one) in enumerate(zip(order, lines, strict=True)):
            journal.note_origin(Observed(provenance={"at": at}))  # lines that are no trials
            journal.append(one, place=key if at < told * len(order) else None)
        for _ in range(2):
            written = journal.finish(out, trials=len(latest))
            assert out.read_bytes() == expected
            assert written.sha256 == sha256_hex(expected)


def test_a_journal_that_somebody_changes_under_a_run_is_refused(out, line):
    with opened(out) as journal:
        for index in (1, 0):
            journal.append(line(index), place=(index, 0))
        path = journal_path(out)
        path.write_bytes(path.read_bytes().replace(b"1894", b"1895", 1))
        with pytest.raises(BadInput, match="was changed by somebody else"):
            journal.finish(out)
    assert not out.exists()


def test_a_journal_with_other_trials_than_the_run_has_makes_no_file(out, line, make_result):
    with opened(out) as journal:
        journal.append(line(0))
        with pytest.raises(WrongTrials, match="holds 1 trials, but this run has 2"):
            journal.finish(out, trials=2)
        journal.append(encode_result(make_result(index=0, sample_id="another")))
        with pytest.raises(WrongTrials, match="two samples claim one place in the dataset"):
            journal.finish(out)
    assert not out.exists()


def test_a_journal_that_was_never_begun_is_finished_all_the_same(out):
    with opened(out, "resume") as journal:
        assert journal.is_new
        journal.finish(out)
    assert out.read_bytes() == b""
    assert journal_path(out).read_bytes().startswith(b'{"journal":2')


def test_a_closed_journal_takes_nothing_more(out, line):
    path = write_journal(out, line(0))
    with opened(out, "resume") as journal:
        pass
    before = path.read_bytes()
    journal.close()
    with pytest.raises(ValueError, match="the journal is closed"):
        journal.append(line(1))
    assert path.read_bytes() == before


def test_what_belongs_to_no_line_can_only_be_started_over(out):
    with opened(out) as journal:
        assert str(journal.not_ours("is odd")) == (
            f"{journal_path(out)}: is odd. --restart starts over."
        )
        assert str(journal.not_ours("is odd", 7)).startswith(f"{journal_path(out)}:7: is odd. ")


def test_f7_a_journal_says_that_its_results_are_written_until_another_trial_is(out, line):
    with opened(out) as journal:
        journal.append(line(0, status="error"))
        written = journal.finish(out)
    with opened(out, "resume") as journal:
        assert journal.written == written.sha256 == sha256_hex(out.read_bytes())
        assert len(journal.done()) == 0
        journal.append(line(0))
        journal.finish(out)
    assert out.read_bytes() == line(0)


def test_an_empty_run_gives_an_empty_file(out):
    with opened(out) as journal:
        journal.finish(out)
    assert out.read_bytes() == b""


def test_resume_knows_what_is_done_and_tries_errors_again(out, line):
    write_journal(out, line(0), line(1, status="error"), line(2, 1), line(3), line(3, 0, "error"))
    with opened(out, "resume") as journal:
        done = journal.done()
        assert len(done) == 2
        assert ("s0", 0) in done
        assert ("s2", 1) in done
        assert ("s2", 0) not in done
        assert ("s1", 0) not in done
        assert ("s3", 0) not in done  # the later line of a trial wins


def test_results_are_all_lines_and_done_those_that_count(out, line, make_result):
    write_journal(out, line(5), line(1, status="error"), line(3), line(3, 0, "error"), line(0))
    with opened(out, "resume") as journal:
        done = journal.done()
        results = [result for _, result in journal.results()]
        assert [result.sample_id for result in results] == ["s5", "s1", "s3", "s3", "s0"]
        assert [(one, 0) in done for one in ("s5", "s1", "s3", "s0")] == [True, False, False, True]


def test_a_result_of_another_version_is_refused_with_its_line(out, line):
    path = write_journal(out, line(0), b'{"index":1,"sample_id":"s1","trial":0,"status":"ok"}\n')
    assert path.exists()
    with opened(out, "resume") as journal:
        (_, whole), (number, problem) = journal.results()
    assert whole.sample_id == "s0"
    assert (number, str(problem)) == (3, "prompt: is missing")


def test_the_later_line_of_a_trial_is_the_one_that_is_written(out, line):
    write_journal(out, line(0, status="error"), line(1))
    with opened(out, "resume") as journal:
        journal.append(line(0, text="second try"))
        journal.finish(out)
    assert out.read_bytes() == line(0, text="second try") + line(1)


@pytest.mark.slow
def test_torn_at_every_byte_the_last_line_is_cut_off(out, line):
    """kill -9 at any moment, then --resume: the same file, byte for byte."""
    path = write_journal(out, line(0), line(1))
    whole = path.read_bytes()
    expected = line(0) + line(1)
    last = len(whole) - len(stamp(line(1)))
    for end in range(last, len(whole) + 1):
        path.write_bytes(whole[:end])
        with opened(out, "resume") as journal:
            assert (("s1", 0) in journal.done()) == (end == len(whole))
            if ("s1", 0) not in journal.done():
                journal.append(line(1))
            assert path.read_bytes() == whole
            journal.finish(out)
        assert out.read_bytes() == expected


def test_torn_at_every_byte_of_the_first_line_it_begins_anew(out, line):
    path = write_journal(out, line(0))
    whole = path.read_bytes()
    head = whole.index(b"\n") + 1
    for end in range(head):
        path.write_bytes(whole[:end])
        with opened(out, "resume") as journal:
            assert len(journal.done()) == 0
            journal.append(line(0))
        assert path.read_bytes() == whole


@pytest.mark.parametrize("tail", [b"{broken}\n", b"\0\0\0\0", b"\xff\xfe\n", b"3\n", b"\n"])
def test_a_broken_last_line_is_cut_off(out, line, tail):
    path = write_journal(out, line(0))
    whole = path.read_bytes()
    path.write_bytes(whole + tail)
    with opened(out, "resume") as journal:
        journal.append(line(1))
    assert path.read_bytes() == whole + stamp(line(1))


GARBLED = (
    b"{broken}\n",
    b"\0\0\0\0\n",
    b"\xff\xfe\n",
    b"\n",
    b'{"index":9,"sample_id":"s9"}\n',
    b'{"segment":7,"provenance":{}}\n',
)


@pytest.mark.parametrize("garbled", GARBLED)
def test_f19_a_garbled_line_in_the_middle_is_named_and_can_be_left_out(out, line, garbled):
    path = write_journal(out, line(0))
    path.write_bytes(path.read_bytes() + garbled + stamp(line(1)))
    before = path.read_bytes()
    with pytest.raises(BadInput) as caught:
        opened(out, "resume")
    assert str(caught.value) == (
        f"{path}:3: is garbled: this is not what was written there. --resume --salvage keeps the"
        " whole lines before and after it and runs the rest; --restart starts over."
    )
    assert path.read_bytes() == before
    with opened(out, "resume", salvage=True) as journal:
        assert journal.left_out == (3,)
        assert len(journal.done()) == 2
        journal.append(line(2))
    with opened(out, "resume") as journal:  # once said, it holds
        assert journal.left_out == (3,)
        journal.finish(out, trials=3)
    assert out.read_bytes() == line(0) + line(1) + line(2)


def test_f19_an_altered_line_is_garbled_wherever_it_was_altered(out, line):
    path = write_journal(out, line(0, text="There live 1000."), line(1))
    whole = path.read_bytes()
    start = whole.index(b"\n") + 1
    end = start + len(stamp(line(0, text="There live 1000."))) - 1
    for at in range(start, end, 7):
        altered = bytes([whole[at] ^ 1])
        path.write_bytes(whole[:at] + altered + whole[at + 1 :])
        with pytest.raises(BadInput, match=":2: is garbled"):
            opened(out, "resume")


def test_f19_what_was_left_out_counts_no_more_although_it_could_be_read(out, line):
    write_journal(out, line(0), line(1))
    with opened(out, "resume", salvage=True) as journal:
        journal.leave_out([2])
        assert ("s0", 0) not in journal.done()
    with opened(out, "resume") as journal:
        assert [number for number, _ in journal.results()] == [3]
        assert ("s0", 0) not in journal.done()
        journal.append(line(0, text="again"))
        journal.finish(out, trials=2)
    assert out.read_bytes() == line(0, text="again") + line(1)


def test_a_garbled_head_is_beyond_help(out, line):
    path = write_journal(out, line(0))
    path.write_bytes(path.read_bytes().replace(b'"fingerprints"', b'"fingerprin', 1))
    with pytest.raises(BadInput, match=r":1: not a line of a journal.*--restart starts over"):
        opened(out, "resume", salvage=True)
    opened(out, "restart").close()


def test_f6_who_answered_is_kept_for_each_run_that_finished_a_trial(out, line):
    with opened(out) as journal:
        journal.note_origin(Observed(provenance={"base_url": "a", "models": []}))
        journal.append(line(0))
        journal.note_origin(Observed(provenance={"base_url": "a", "models": ["m"]}))
    with opened(out, "resume") as journal:
        journal.note_origin(Observed(provenance={"base_url": "b"}))
        journal.append(line(1, status="error"))
    with opened(out, "resume") as journal:
        journal.note_origin(Observed(provenance={"base_url": "c"}, warnings=("w",)))
        journal.append(line(1))
    with opened(out, "resume") as journal:
        assert journal.answered() == [
            Observed(provenance={"base_url": "a", "models": ["m"]}),
            Observed(provenance={"base_url": "c"}, warnings=("w",)),
        ]
        journal.finish(out, trials=2)
    assert out.read_bytes() == line(0) + line(1)


def test_a_journal_of_a_later_version_is_refused(out):
    journal_path(out).write_bytes(b'{"journal":3,"fingerprints":{}}\n')
    with pytest.raises(BadInput, match="that this version writes"):
        opened(out, "resume")


@given(st.data())
def test_cut_anywhere_a_resumed_run_gives_the_same_file(tmp_path_factory, line, data):
    out = tmp_path_factory.mktemp("run") / "results.jsonl"
    keys = [(index, trial) for index in range(4) for trial in range(2)]
    order = data.draw(st.permutations(keys))
    whole = write_journal(out, *(line(*key) for key in order)).read_bytes()
    journal_path(out).write_bytes(whole[: data.draw(st.integers(0, len(whole)))])
    with opened(out, "resume") as journal:
        done = journal.done()
        for index, trial in keys:
            if (f"s{index}", trial) not in done:
                journal.append(line(index, trial))
        journal.finish(out)
    assert out.read_bytes() == b"".join(line(*key) for key in keys)


def test_without_a_word_an_existing_journal_is_refused(out, line):
    path = write_journal(out, line(0))
    with pytest.raises(UsageError) as caught:
        opened(out)
    assert str(caught.value) == (
        f"{path}: an earlier run was not finished."
        " Go on with it (--resume) or throw its results away (--restart)."
    )
    assert path.read_bytes().endswith(stamp(line(0)))


def test_restart_throws_the_results_away(out, line):
    path = write_journal(out, line(0))
    with opened(out, "restart", {"dataset_sha256": "d2"}) as journal:
        assert len(journal.done()) == 0
    assert json.loads(path.read_bytes()) == {"journal": 2, "fingerprints": {"dataset_sha256": "d2"}}


def test_resume_without_a_journal_begins_one(out, line):
    with opened(out, "resume") as journal:
        journal.append(line(0))
        journal.finish(out)
    assert out.read_bytes() == line(0)


def test_a_file_that_is_no_journal_is_never_touched(out):
    path = journal_path(out)
    for content in (b"my diary\n", b"my diary", b'{"a": 1}\n'):
        path.write_bytes(content)
        for mode in ("new", "resume", "restart"):
            with pytest.raises(UsageError, match="is not a journal of callmark"):
                opened(out, mode)
        assert path.read_bytes() == content


def test_a67_another_runs_journal_is_refused_by_name_with_both_values(out, line):
    path = write_journal(out, line(0))
    other = {**FINGERPRINTS, "dataset_sha256": "d2", "decoding": {"seed": 1}, "gates": "h"}
    with pytest.raises(FingerprintMismatch) as caught:
        opened(out, "resume", other, may_differ=("gates",))
    assert str(caught.value) == (
        f"{path}:1: belongs to another run:\n"
        '  dataset_sha256: the journal has "d1", this run "d2"\n'
        '  decoding: the journal has {"seed":42}, this run {"seed":1}\n'
        "Use the earlier settings, or throw its results away (--restart)."
    )
    assert caught.value.exit_code == 3
    assert path.read_bytes().endswith(stamp(line(0)))


def test_a_fingerprint_that_is_new_or_gone_is_a_difference(out):
    write_journal(out)
    for other in ({**FINGERPRINTS, "model": "m"}, {"dataset_sha256": "d1"}):
        with pytest.raises(FingerprintMismatch):
            opened(out, "resume", other)


def test_what_may_differ_is_remembered_for_the_next_resume(out, line):
    path = write_journal(out, line(0))
    wider = {**FINGERPRINTS, "limit": 20}
    with pytest.raises(FingerprintMismatch, match="limit: the journal has 10, this run 20"):
        opened(out, "resume", wider)
    with opened(out, "resume", wider, may_grow=("limit",)) as journal:
        assert len(journal.done()) == 1
        journal.append(line(1))
    with pytest.raises(FingerprintMismatch, match="limit: the journal has 20, this run 10"):
        opened(out, "resume", may_grow=("limit",))
    with opened(out, "resume", {**FINGERPRINTS, "limit": None}, may_grow=("limit",)) as journal:
        journal.finish(out)
        journal.remove()
    assert out.read_bytes() == line(0) + line(1)
    assert not path.exists()


def test_tuples_and_lists_are_the_same_fingerprint(out):
    with opened(out, fingerprints={"keys": ("a", "b")}):
        pass
    with pytest.raises(FingerprintMismatch, match="keys"):
        opened(out, "resume", {"keys": ["b", "a"]})
    before = journal_path(out).read_bytes()
    opened(out, "resume", {"keys": ["a", "b"]}).close()
    assert journal_path(out).read_bytes() == before


def test_two_processes_cannot_work_on_one_run(out, line):
    with opened(out) as journal:
        for mode in ("new", "resume", "restart"):
            with pytest.raises(UsageError, match="another process is working on this run"):
                opened(out, mode)
        journal.append(line(0))
    assert journal_path(out).read_bytes().endswith(stamp(line(0)))


def test_a_place_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(CannotWrite, match=r"results.jsonl.journal: cannot be written"):
        opened(tmp_path / "file" / "results.jsonl")


def test_a_place_without_locks_is_refused(out, monkeypatch):
    def no_lock(fd, how):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(journal.fcntl, "flock", no_lock)
    with pytest.raises(CannotWrite, match=r"journal: cannot be locked: No locks available\."):
        opened(out)


def test_a_disk_that_fails_to_keep_is_said(out, line, monkeypatch):
    def fails(fd):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with opened(out) as opened_one:
        opened_one.append(line(0))
        with monkeypatch.context() as patched:
            patched.setattr(journal.os, "fsync", fails)
            with pytest.raises(
                OutputFailed, match=r"Input/output error\. 1 finished trial is safe"
            ):
                opened_one.finish(out)
    assert not out.exists()


@contextmanager
def files_no_larger_than(size):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_keeps_what_is_finished_and_says_how_to_go_on(out, line):
    """The limit cuts the second line in the middle, as a full disk does."""
    path = journal_path(out)
    with opened(out) as journal:
        journal.append(line(0))
        room = path.stat().st_size + len(stamp(line(1))) // 2
        with files_no_larger_than(room), pytest.raises(OutputFailed) as caught:
            journal.append(line(1))
        assert str(caught.value) == (
            f"{path}: could not be written: File too large. 1 finished trial is safe in it."
            " Free some space, then run the same command with --resume."
        )
        assert path.read_bytes().endswith(b"}\n" + stamp(line(0)))
        journal.append(line(1))  # there is room again, and nothing torn in between
    with opened(out, "resume") as journal:
        assert len(journal.done()) == 2


def test_a_full_disk_at_the_end_leaves_output_and_journal(out, line):
    out.write_bytes(b"an older run\n")
    with opened(out) as journal:
        for index in range(50):
            journal.append(line(index))
        with files_no_larger_than(5_000), pytest.raises(OutputFailed) as caught:
            journal.finish(out)
    assert out.read_bytes() == b"an older run\n"
    assert f"Every finished trial is in {journal_path(out)}." in str(caught.value)
    with opened(out, "resume") as journal:
        journal.finish(out)
    assert out.read_bytes() == b"".join(line(index) for index in range(50))


KILLED = """
import sys, time
from pathlib import Path
from callmark.store.journal import open_journal
lines = [bytes.fromhex(line) for line in sys.stdin.read().split()]
journal = open_journal(Path(sys.argv[1]), {}, mode="new")
for line in lines:
    journal.append(line)
print("ready", flush=True)
time.sleep(60)
"""


def test_a_killed_process_leaves_its_trials_and_no_lock(out, line):
    lines = [line(index) for index in range(3)]
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(out)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        child.stdin.write(" ".join(line.hex() for line in lines).encode())
        child.stdin.close()
        assert child.stdout.readline() == b"ready\n"
        with pytest.raises(UsageError, match="another process is working on this run"):
            opened(out, "resume", {})
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
    with opened(out, "resume", {}) as journal:
        assert len(journal.done()) == 3
        journal.finish(out)
    assert out.read_bytes() == b"".join(lines)


def test_a_journal_that_another_run_removes_while_we_open_it_is_not_written(out, line):
    """Lock and name have to belong to the same file, or the results would be lost."""
    with opened(out) as journal:
        journal.append(line(0))
        journal.finish(out)
        journal.remove()
        with opened(out, fingerprints={"second": True}) as second:
            second.append(line(1))
            assert journal_path(out).read_bytes().endswith(stamp(line(1)))
