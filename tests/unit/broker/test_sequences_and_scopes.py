"""`seq` and `sample_id`: state belongs to one trial, and nobody sees another sample's answers."""

import itertools

import pytest

from callmark.errors import BadInput
from callmark.records.seams import Hit, Miss


def entry(result, *, name="t", key=None, **more):
    return {"name": name, "key": key or {}, "result": result, **more}


def results(session, count, name="t", arguments=None):
    return [session.answer(name, arguments or {}).result for _ in range(count)]


def test_a_sequence_is_served_in_order_and_its_last_repeats(broker_of):
    broker = broker_of(entry("two", seq=2), entry("three", seq=3), entry("one", seq=1))
    assert results(broker.session("s"), 5) == ["one", "two", "three", "three", "three"]


def test_an_entry_without_seq_is_the_first(broker_of):
    assert results(broker_of(entry("two", seq=2), entry("one")).session(), 3) == [
        "one",
        "two",
        "two",
    ]


def test_sequences_are_counted_per_trial(broker_of):
    broker = broker_of(entry(1), entry(2, seq=2))
    one, other = broker.session("s"), broker.session("s")
    assert [results(session, 1)[0] for session in (one, other, one, other)] == [1, 1, 2, 2]


def test_the_order_of_samples_never_matters(broker_of):
    broker = broker_of(
        entry(1), entry(2, seq=2), entry("own", sample_id="b"), entry("own 2", sample_id="b", seq=2)
    )
    seen = set()
    for order in itertools.permutations("abc"):
        answers = {sample: tuple(results(broker.session(sample), 3)) for sample in order}
        seen.add(tuple(sorted(answers.items())))
    assert seen == {(("a", (1, 2, 2)), ("b", ("own", "own 2", "own 2")), ("c", (1, 2, 2)))}


def test_sequences_of_different_keys_do_not_disturb_each_other(broker_of):
    broker = broker_of(
        *(entry(f"{q}{seq}", key={"q": q}, seq=seq) for q in ("a", "b") for seq in (1, 2))
    )
    session = broker.session()
    order = ("a", "b", "a", "b", "b")
    answers = [session.answer("t", {"q": q}).result for q in order]
    assert answers == ["a1", "b1", "a2", "b2", "b2"]


def test_the_public_call_walks_a_sequence_too(broker_of):
    broker = broker_of(entry(1), entry(2, seq=2))
    assert [broker.call("t", {}), broker.lookup("t", {}), broker.call("t", {})] == [1, 2, 2]
    assert results(broker.session(), 1) == [1]


def test_patterns_and_any_have_sequences(broker_of):
    rule = {"match": {"q": {"regex": "x.*"}}}
    broker = broker_of(
        entry("p1", **rule), entry("p2", seq=2, **rule),
        entry("a1", match="any"), entry("a2", match="any", seq=2),
    )  # fmt: skip
    session = broker.session()
    answers = [session.answer("t", {"q": q}) for q in ("x1", "y", "x2", "z", "x3")]
    assert [answer.result for answer in answers] == ["p1", "a1", "p2", "a2", "p2"]


@pytest.mark.parametrize("seqs", [(2,), (1, 3), (1, 2, 4)])
def test_a_gap_in_a_sequence_is_an_error(broker_of, seqs):
    with pytest.raises(BadInput, match=r"all\.jsonl:\d: seq: \d is here, but no entry") as caught:
        broker_of(*(entry(seq, seq=seq) for seq in seqs))
    missing = min(set(range(1, 5)) - set(seqs))
    assert f"has seq {missing}" in str(caught.value)


def test_scoped_entries_are_seen_by_their_sample_only(broker_of):
    broker = broker_of(entry("own", sample_id="s1", key={"q": "x"}))
    assert isinstance(broker.session("s1").answer("t", {"q": "x"}), Hit)
    for session in (broker.session("s2"), broker.session(None), broker.session("")):
        assert isinstance(session.answer("t", {"q": "x"}), Miss)
    assert broker.lookup("t", {"q": "x"}) is None


def test_a_numeric_sample_id_is_its_decimal_text(broker_of):
    broker = broker_of(entry("own", sample_id=17))
    assert results(broker.session("17"), 1) == ["own"]


def test_scoped_comes_before_global_and_exact_before_pattern_before_any(broker_of):
    key, rule = {"q": "x"}, {"q": {"contains": "x"}}
    ladder = [
        (entry("own exact", key=key, sample_id="s"), "fixture:exact"),
        (entry("own pattern", match=rule, sample_id="s"), "fixture:pattern"),
        (entry("own any", match="any", sample_id="s"), "fixture:any"),
        (entry("exact", key=key), "fixture:exact"),
        (entry("pattern", match=rule), "fixture:pattern"),
        (entry("any", match="any"), "fixture:any"),
    ]
    for place, (expected, served_by) in enumerate(ladder):
        left = [one for one, _ in ladder[place:]]
        answer = broker_of(*reversed(left)).session("s").answer("t", {"q": "X"})
        assert (answer.result, answer.served_by) == (expected["result"], served_by)


def test_what_was_used_is_listed_once_and_sorted(broker_of):
    broker = broker_of(entry(1), entry(2, seq=2), entry("n", name="n"), entry("unused", name="u"))
    session = broker.session("s")
    hits = [session.answer(name, {}) for name in ("t", "t", "t", "n", "missing")]
    used = {hit.fixture_sha256 for hit in hits if isinstance(hit, Hit)}
    assert session.used == tuple(sorted(used))
    assert len(session.used) == 3
    assert broker.session("s").used == ()


def test_the_hash_of_a_fixture_is_that_of_its_canonical_line(broker_of):
    import hashlib

    line = '{"key":{"q":"É"},"name":"t","result":[1.0,null]}'
    broker = broker_of('{ "result": [1.0, null],  "name": "t", "key": {"q": "\\u00c9"} }')
    hit = broker.session().answer("t", {"q": "é"})
    assert hit.fixture_sha256 == hashlib.sha256(line.encode()).hexdigest()
