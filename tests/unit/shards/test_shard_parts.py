"""The small parts of an engine: places, shipped inputs, answers of one shard only, messages."""

import json

import msgspec
import pytest

from callmark.errors import BadInput, FingerprintMismatch
from callmark.records.samples import shard_of
from callmark.records.seams import Observed
from callmark.run.resume import SHARDS, joined_origin
from callmark.shards.engine import Failed, SamplePlaces, places_of
from callmark.shards.merge import add_up_measured
from callmark.shards.ray import _bundle, _unpack
from callmark.stats.columns import KeyIndex
from callmark.store.recorded import RecordedIndex


def test_a79_places_follow_the_hash_of_the_id_and_lose_nobody():
    places = SamplePlaces(3)
    for at in range(100):
        places.add(f"s{at}", 10 * at)
    places.keep_only(frozenset(range(50)))
    found = []
    for shard in range(3):
        index, offset = places_of(places.packed(shard))
        assert all(shard_of(f"s{at}", 3) == shard for at in index)
        assert [10 * at for at in index] == list(offset)
        found += index
    assert sorted(found) == list(range(50))


def test_an_index_of_keys_survives_its_bytes():
    index = KeyIndex()
    for at in range(1000):
        index.add(f"key {at}", at, 2 * at)
    again = KeyIndex.unpacked(index.packed())
    assert again.find("key 77") == (77, 154)
    assert again.find("key 1000") is None


def test_answers_of_other_shards_are_hashed_but_not_kept(tmp_path):
    path = tmp_path / "answers.jsonl"
    lines = [{"sample_id": f"s{at}", "model_output": "x"} for at in range(20)]
    # The id of a conversation is the one in its metadata.
    said = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
    lines.append({"sample_id": "s1", "metadata": {"sample_id": "m"}, "messages": said})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    with RecordedIndex(path) as everything, RecordedIndex(path, {"s3", "m"}.__contains__) as some:
        assert some.sha256 == everything.sha256
        assert len(some) == 2
        assert some.get("s3", 0) == everything.get("s3", 0)
        assert some.get("m", 0) is not None
        assert some.get("s4", 0) is None


def test_a_bundle_arrives_as_it_was_and_is_named_by_what_it_holds(tmp_path):
    folder = tmp_path / "fixtures"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.jsonl").write_bytes(b"1")
    (folder / "deep" / "b.jsonl").write_bytes(b"2")
    sent: list[bytes] = []

    def put(data: bytes) -> object:
        sent.append(data)
        return len(sent) - 1

    store = tmp_path / "store"
    store.mkdir()
    bundle = _bundle(folder, put)
    there = _unpack(store, bundle, lambda at: sent[at])
    assert {one.name: one.read_bytes() for one in there.rglob("*.jsonl")} == {
        "a.jsonl": b"1",
        "b.jsonl": b"2",
    }
    sent.clear()  # known by its name: nothing is fetched again
    assert _unpack(store, bundle, lambda at: sent[at]) == there
    (folder / "a.jsonl").write_bytes(b"3")
    changed = _bundle(folder, put)
    assert changed.sha256 != bundle.sha256
    with pytest.raises(BadInput, match="did not arrive"):
        _unpack(store, changed, lambda at: b"?")
    assert _unpack(store, _bundle(folder / "a.jsonl", put), lambda at: sent[at]).is_file()


def test_what_runners_saw_is_told_as_one():
    seen = [
        Observed(provenance={"models": ["a"], "host": "h"}),
        Observed(provenance={"models": ["b", "c"], "host": "h"}, warnings=("w",)),
        Observed(provenance={"models": [], "host": "h"}),
    ]
    together = joined_origin(seen, SHARDS, deterministic=False)
    assert together.provenance == {
        "models": ["a", "b", "c"],
        "host": "h",
        "segments": [one.provenance for one in seen],
    }
    assert together.warnings == ("w", "the shards do not agree in models: a and b, c")
    with pytest.raises(FingerprintMismatch):
        joined_origin(seen, SHARDS, deterministic=True)
    alike = joined_origin([seen[0], seen[2]], SHARDS, deterministic=True)
    assert alike == seen[0]
    assert add_up_measured([{"tokens": 3, "x_sec": 0.5}, {"tokens": 4, "x_sec": 1}]) == {
        "tokens": 7,
        "x_sec": 1.5,
    }


@pytest.mark.parametrize("code", [2, 3, 4])
def test_a_failure_keeps_its_exit_code_on_its_way(code):
    sent = msgspec.msgpack.decode(msgspec.msgpack.encode(Failed(code, "m")), type=Failed)
    assert (sent.error().exit_code, str(sent.error())) == (code, "m")
