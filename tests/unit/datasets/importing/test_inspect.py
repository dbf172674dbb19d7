"""Logs of Inspect in, by a small one that was written by hand in the shape of theirs."""

import io
import json
import struct
import sys
import zipfile
import zlib
from pathlib import Path

import pytest

from callmark.datasets.importing import sources as archive
from callmark.errors import BadInput, MissingExtra
from callmark.run.rescore import score_file
from callmark.store.files import read_results

LOG = Path(__file__).with_name("inspect_log.json")
ZSTANDARD = 93


def log() -> dict:
    return json.loads(LOG.read_text("utf-8"))


def archive_of(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", method) as made:
        for name, data in members.items():
            made.writestr(name, data)
    return target.getvalue()


def eval_log(**more: bytes) -> dict[str, bytes]:
    whole = log()
    samples = {
        f"samples/{one['id']}_epoch_{one['epoch']}.json": json.dumps(one).encode()
        for one in whole.pop("samples")
    }
    return {
        "_journal/start.json": b"{}",
        **samples,
        "header.json": json.dumps(whole).encode(),
    } | more


def zstandard(members: dict[str, bytes]) -> bytes:
    """As Inspect packs it: zipfile does not know the method, so its fields are put in place."""
    import pyarrow

    codec = pyarrow.Codec("zstd")
    packed = {name: codec.compress(data, asbytes=True) for name, data in members.items()}
    data = bytearray(archive_of(packed, zipfile.ZIP_STORED))
    for mark, method_at, crc_at, size_at in (
        (b"PK\x03\x04", 8, 14, 22),
        (b"PK\x01\x02", 10, 16, 24),
    ):
        at = 0
        for plain in members.values():
            at = data.index(mark, at)
            data[at + method_at : at + method_at + 2] = struct.pack("<H", ZSTANDARD)
            data[at + crc_at : at + crc_at + 4] = struct.pack("<I", zlib.crc32(plain))
            data[at + size_at : at + size_at + 4] = struct.pack("<I", len(plain))
            at += 4
    return bytes(data)


def check(made) -> None:
    assert made.report.format == "inspect"
    assert [item["metadata"]["sample_id"] for item in made.items] == ["ulm", "2"]
    assert made.items[0]["prompt"] == "How warm is Ulm?"
    metadata = made.items[0]["metadata"]
    assert (metadata["level"], metadata["tools"]) == (1, ["weather"])
    assert metadata["imported_from"]["target"] == "19"
    first, second, third = made.answers
    assert (first["trial"], second["trial"], third["status"]) == (0, 1, "error")
    assert first["source_scores"]["includes"]["value"] == "C"
    assert first["messages"][1]["reasoning_content"] == "I look it up."
    assert [line["result"] for line in made.fixtures] == ['{"temp_c": 19}']
    assert made.tools["weather"]["parameters"]["required"] == ["city"]
    assert made.kinds == {"failed_trial": 1, "malformed_call": 1}


def test_a_json_log(make):
    check(make(LOG))


def test_what_is_imported_can_be_scored(make, tmp_path):
    made = make(LOG)
    out = tmp_path / "scored.jsonl"
    named = {"in": str(made.places.dataset), "registry": str(made.places.registry)}
    score_file(made.places.answers, {**named, "out": str(out)})
    first, second, third = read_results(out)
    assert first.scores.lax.grounded == 1
    assert first.reasoning == "I look it up."
    assert second.tool_trace[0].status == "malformed"
    assert third.status == "error"


@pytest.mark.parametrize("pack", [archive_of, zstandard], ids=["deflate", "zstandard"])
def test_an_eval_archive(make, pack):
    check(make(pack(eval_log()), name="run.eval"))


def test_zstandard_needs_an_extra_and_says_so(make, monkeypatch):
    data = zstandard(eval_log())
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"\.\[inspect\]"):
        make(data, name="run.eval")


def test_names_in_an_archive_are_never_paths(make, tmp_path):
    sample = json.dumps(log()["samples"][0]).encode()
    hostile = {"samples/../../../evil.json": sample, "/etc/passwd": b"x", "../evil.json": b"x"}
    whole = {"header.json": eval_log()["header.json"], **hostile}
    made = make(archive_of(whole), name="run.eval")
    assert made.report.counts.samples == 1
    assert not list(tmp_path.parent.glob("evil*"))
    assert not list(tmp_path.rglob("evil*"))


def lying(members: dict[str, bytes], says: int) -> bytes:
    """The first member says that it unpacks to another size than it does."""
    data = bytearray(archive_of(members))
    for mark, size_at in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = data.index(mark)
        data[at + size_at : at + size_at + 4] = struct.pack("<I", says)
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (archive_of({"readme.txt": b"x"}), "has no header.json"),
        (archive_of({"header.json": b"{broken"}), "'header.json':1: not JSON"),
        (archive_of({"header.json": b"{}"}), "eval: is missing"),
        (lying({"header.json": b"{}" + b" " * 10_000_000}, 100), "header.json"),
        (b"PK\x03\x04" + b"\0" * 100, "cannot be read as an archive"),
        (archive_of(eval_log())[:-40], "cannot be read as an archive"),
    ],
)
def test_hostile_archives_are_named_and_bounded(make, data, message):
    with pytest.raises(BadInput, match=message):
        make(data, name="run.eval", format="inspect")


def test_a_member_that_is_too_large_is_never_unpacked(make, monkeypatch):
    monkeypatch.setattr(archive, "MAX_MEMBER", 1000)
    bomb = archive_of({"header.json": b"{}" + b" " * 10_000_000})
    with pytest.raises(BadInput, match=r"unpacks to 10000002 bytes, more than 1000"):
        make(bomb, name="run.eval")
    monkeypatch.setattr(archive, "MAX_MEMBER", 1 << 28)
    monkeypatch.setattr(archive, "MAX_TOTAL", 1000)
    with pytest.raises(BadInput, match="would unpack to"):
        make(bomb, name="run.eval")


def test_a_zstandard_member_that_lies_is_stopped(make):
    data = bytearray(zstandard({"header.json": b"{}" + b" " * 10_000_000}))
    for mark, size_at in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = data.index(mark)
        data[at + size_at : at + size_at + 4] = struct.pack("<I", 50)
    with pytest.raises(BadInput, match="another size than the archive says"):
        make(bytes(data), name="run.eval")


@pytest.mark.parametrize("pack", [archive_of, zstandard], ids=["deflate", "zstandard"])
def test_a_flipped_byte_in_a_member_is_named(make, pack):
    members = {"header.json": eval_log()["header.json"]}
    data = bytearray(pack(members))
    data[60] ^= 0xFF
    with pytest.raises(BadInput, match=r"run\.eval: "):
        make(bytes(data), name="run.eval")


def test_a_sample_that_is_none_is_named_by_its_line(make):
    text = LOG.read_text("utf-8").replace('"epoch": 2', '"epoch": "two"')
    line = 1 + next(at for at, one in enumerate(text.splitlines()) if '"epoch": "two"' in one) - 2
    with pytest.raises(BadInput, match=rf"log.json:{line}: epoch: must be a whole number"):
        make(text.encode(), name="log.json")


def one_sample(**sample) -> dict:
    return {**log(), "samples": [{"id": "a", "epoch": 1, "input": "Ulm?", "target": "", **sample}]}


def test_a_log_of_2024_has_events_and_texts_in_a_transcript(make):
    tool = log()["samples"][0]["events"][0]["tools"][0]
    transcript = {
        "events": [{"event": "model", "tools": [tool]}],
        "content": {"abc": "How warm is Ulm?"},
    }
    messages = [{"role": "user", "content": "tc://abc"}, {"role": "assistant", "content": "Warm."}]
    made = make(one_sample(messages=messages, transcript=transcript))
    assert made.items[0]["prompt"] == "How warm is Ulm?"
    assert sorted(made.tools) == [tool["name"]]


def test_a_tool_that_the_provider_ran_is_a_call_and_a_redacted_thought_is_none(make):
    served = {"type": "tool_use", "id": "s1", "name": "web_search", "arguments": '{"query": "Ulm"}'}
    content = [
        {"type": "reasoning", "reasoning": "gAAAA", "redacted": True},
        {**served, "result": "19 degrees"},
        {"type": "text", "text": "It is 19 degrees."},
    ]
    messages = [{"role": "user", "content": "Ulm?"}, {"role": "assistant", "content": content}]
    made = make(one_sample(messages=messages))
    assert [one["role"] for one in made.answers[0]["messages"]] == [
        *("user", "assistant", "tool", "assistant")
    ]
    assert "gAAAA" not in json.dumps(made.answers)
    assert [line["result"] for line in made.fixtures] == ["19 degrees"]
    assert made.kinds == {"hidden_reasoning": 1, "tool_without_schema": 1}


def test_results_without_a_question_stand_after_the_input(make):
    failed = {"role": "tool", "content": "", "error": {"type": "timeout", "message": "late"}}
    made = make(one_sample(messages=[failed]))
    assert [one["role"] for one in made.items[0]["prompt"]] == ["user", "tool"]
