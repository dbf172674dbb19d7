"""Reading a dataset: what comes out, what is refused, and with which words."""

import hashlib
import io
import json
import os
import sys
from pathlib import Path

import pytest

from callmark.datasets.reader import dataset_sha256, open_dataset
from callmark.errors import BadInput
from callmark.records.jsontext import digest
from callmark.records.samples import shard_of
from callmark.resources import demo_paths

HEADER = {"__header__": True, "dataset_version": "1"}
ITEM = {"prompt": "How old is the bridge?", "metadata": {"sample_id": "a"}}


def written(path: Path, *lines: object) -> Path:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("".join(f"{text}\n" for text in texts), "utf-8")
    return path


@pytest.fixture
def file(tmp_path):
    return tmp_path / "data.jsonl"


def problems_of(path) -> list[str]:
    with pytest.raises(BadInput) as caught:
        open_dataset(path)
    return [line.removeprefix(str(path)) for line in caught.value.problems]


def samples_of(path):
    with open_dataset(path) as dataset:
        return list(dataset.samples())


# --- header


def test_a47_both_forms_of_the_header_are_read(file):
    """`{"__header__": true, …}` and `{"__header__": {…}}` say the same."""
    fields = {"dataset_version": "2", "integration_span_cap": 5, "gates": {"x": {"bound": 1}}}
    for header in ({"__header__": True, **fields}, {"__header__": fields}):
        with open_dataset(written(file, header, ITEM)) as dataset:
            assert dataset.has_header
            assert dataset.warnings == ()
            assert dataset.header.integration_span_cap == 5
            assert dataset.header.gates == {"x": {"bound": 1}}
            assert [sample.sample_id for sample in dataset.samples()] == ["a"]


def test_a64_span_cap_of_the_header_is_known_and_checked(file):
    assert open_dataset(written(file, HEADER, ITEM)).header.integration_span_cap is None
    assert problems_of(written(file, {"__header__": {"integration_span_cap": 0}}, ITEM)) == [
        ":1: integration_span_cap: must be at least 1, not 0"
    ]


def test_a60_tokenizer_fingerprint_is_carried_or_absent(file):
    pin = {"id": "t", "sha256": "0", "normalizer": None}
    header = {"__header__": True, "tokenizer_fingerprint": pin}
    assert open_dataset(written(file, header, ITEM)).header.tokenizer_fingerprint == pin
    assert open_dataset(written(file, HEADER, ITEM)).header.tokenizer_fingerprint is None


def test_null_header_fields_are_absent_and_unknown_ones_ignored(file):
    header = {"__header__": True, "url_allowlist": None, "seed": None, "made_by": ["x"]}
    with open_dataset(written(file, header, ITEM)) as dataset:
        assert dataset.header.url_allowlist == ()


@pytest.mark.parametrize("value", [1, "yes", [1], 0.5, "true"])
def test_d52_any_other_header_mark_is_refused(file, value):
    """Read as a header by one program and as an item by another, it would change hashes."""
    text = json.dumps(value, separators=(",", ":"))
    assert problems_of(written(file, {"__header__": value, "prompt": "x"}, ITEM)) == [
        f":1: __header__: must be true or an object, not {text}"
    ]
    with pytest.raises(BadInput, match=r"data.jsonl:1: __header__: must be"):
        dataset_sha256(file)


@pytest.mark.parametrize("value", [False, None, 0, ""])
def test_d52_a_false_header_mark_makes_an_item(file, value):
    samples = samples_of(written(file, {"__header__": value, "prompt": "x"}, ITEM))
    assert [sample.prompt for sample in samples] == ["x", ITEM["prompt"]]


def test_d52_a_header_further_down_is_refused(file):
    assert problems_of(written(file, HEADER, ITEM, {"__header__": {}})) == [
        ":3: __header__: only the first line may be a header"
    ]


def test_wrong_header_field(file):
    assert problems_of(written(file, {"__header__": {"span_extractor": "magic"}}, ITEM)) == [
        ':1: span_extractor: must be marker, claims or auto, not "magic"'
    ]
    assert problems_of(written(file, {"__header__": {"strict_keys": "a"}}, ITEM)) == [
        ":1: strict_keys: must be a list, not a string"
    ]


def test_a_dataset_without_header_runs_with_a_warning(file):
    with open_dataset(written(file, ITEM)) as dataset:
        assert not dataset.has_header
        assert len(dataset.warnings) == 1
        assert dataset.warnings[0].startswith(f"{file}: no header line")


# --- hashes


def test_a58_hash_covers_the_items_and_not_the_header(file):
    """Editing the header changes nothing, editing an item or a blank line does."""
    body = json.dumps(ITEM) + "\n"
    expected = hashlib.sha256(body.encode()).hexdigest()
    for header in (HEADER, {"__header__": {"seed": 3}}):
        with open_dataset(written(file, header, ITEM)) as dataset:
            assert dataset.sha256 == dataset_sha256(file) == expected
    written(file, ITEM)
    assert dataset_sha256(str(file)) == expected
    for changed in (body + "\n", body.replace("old", "new"), body.replace("\n", "\r\n")):
        file.write_text(json.dumps(HEADER) + "\n" + changed, "utf-8", newline="")
        assert open_dataset(file).sha256 == dataset_sha256(file) != expected


def test_d52_blank_lines_are_skipped_but_hashed(file):
    file.write_bytes(b"\n" + json.dumps(HEADER).encode() + b"\n \r\n" + json.dumps(ITEM).encode())
    with open_dataset(file) as dataset:
        assert [sample.index for sample in dataset.samples()] == [0]
        after_header = file.read_bytes().split(b"\n", 2)[2]
        assert dataset.sha256 == hashlib.sha256(after_header).hexdigest()
        assert dataset.sha256 == dataset_sha256(file)


def test_a_byte_order_mark_is_tolerated(file):
    for first in (HEADER, ITEM):
        lines = [first] if first is ITEM else [first, ITEM]
        data = b"\xef\xbb\xbf" + b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        file.write_bytes(data)
        with open_dataset(file) as dataset:
            assert dataset.has_header == (first is HEADER)
            assert [sample.sample_id for sample in dataset.samples()] == ["a"]
            assert dataset.sha256 == dataset_sha256(file)
            if first is ITEM:
                assert dataset.sha256 == hashlib.sha256(data).hexdigest()


def test_a_file_of_one_header_without_line_end_hashes_nothing(file):
    file.write_text(json.dumps(HEADER), "utf-8")
    assert dataset_sha256(file) == hashlib.sha256(b"").hexdigest()


def test_hash_of_what_is_no_dataset_is_of_all_bytes(file):
    file.write_bytes(b"\xff\n\n{}")
    assert dataset_sha256(file) == hashlib.sha256(b"\xff\n\n{}").hexdigest()


# --- samples


def test_samples_are_records_with_the_items_hash(file):
    item = {
        "prompt": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}],
        "user_turns": ["and then?"],
        "teacher_text": "t",
        "metadata": {"sample_id": "s", "call_sequence": ["web.search"], "mine": {"x": 1}},
    }
    (sample,) = samples_of(written(file, HEADER, item))
    assert sample.prompt == item["prompt"]
    assert sample.user_turns == ("and then?",)
    assert sample.metadata == item["metadata"]
    assert sample.expectation.kind == "eligible"
    assert sample.item_sha256 == digest(item)


def test_d36_nulls_and_plain_names_are_read(file):
    """Nulls stand for absent fields, and an expected call may be only a name."""
    nulls = dict.fromkeys(
        ["sample_id", "expected_behaviour", "call_sequence", "call_match", "tools", "locale",
         "strict_keys", "required_facts", "decoy_values", "adversarial", "slices", "cluster"]
    )  # fmt: skip
    items = [
        {"prompt": "1", "metadata": None, "user_turns": None, "teacher_text": None},
        {"prompt": "2", "metadata": nulls},
        {"prompt": "3", "metadata": {"call_sequence": ["web.search", {"name": "read_file"}]}},
        {"prompt": [{"role": "assistant", "content": None, "tool_calls": None}]},
    ]
    kinds = [s.expectation.kind for s in samples_of(written(file, HEADER, *items))]
    assert kinds == ["unclassified", "unclassified", "eligible", "unclassified"]


def test_d53_ids_from_metadata_top_level_and_numbers(file):
    items = [
        {"prompt": "1", "sample_id": "top", "metadata": {"sample_id": "inner"}},
        {"prompt": "2", "sample_id": "top"},
        {"prompt": "3", "sample_id": 7},
        {"prompt": "4", "metadata": {"sample_id": 8}},
    ]
    ids = [sample.sample_id for sample in samples_of(written(file, HEADER, *items))]
    assert ids == ["inner", "top", "7", "8"]


def test_a80_an_item_without_id_is_named_by_its_hash(file):
    """d54: the id is there for everybody, made from the whole item."""
    item = {"prompt": "Où?", "metadata": {"b": 1, "a": [2]}}
    (sample,) = samples_of(written(file, HEADER, item))
    text = json.dumps(item, sort_keys=True, ensure_ascii=False)
    assert sample.sample_id == hashlib.sha256(text.encode()).hexdigest()


def test_a82_shards_stay_the_same_when_lines_are_reordered(file):
    """a79, a81: only the id decides, by its first 8 bytes of SHA-256, little end first."""
    items = [{"prompt": str(n)} for n in range(30)]
    expected = {
        s.prompt: shard_of(s.sample_id, 4) for s in samples_of(written(file, HEADER, *items))
    }
    items.reverse()
    again = {s.prompt: shard_of(s.sample_id, 4) for s in samples_of(written(file, HEADER, *items))}
    assert again == expected
    head = hashlib.sha256(b"a").digest()[:8]
    assert shard_of("a", 5) == int.from_bytes(head, "little") % 5


def test_a28_the_shipped_dataset_is_read_and_pins_its_own_hash():
    with open_dataset(demo_paths().dataset) as dataset:
        assert dataset.header.dataset_sha256 == dataset.sha256
        assert sum(1 for _ in dataset.samples()) == dataset.facts.samples > 100


def test_a1_two_readings_give_the_same(file):
    path = demo_paths().dataset
    assert samples_of(path) == samples_of(path)


def test_facts(file):
    def item(number, **metadata):
        return {"prompt": f"{number}", "metadata": metadata}

    written(
        file,
        HEADER,
        item(1, expected_behaviour="no_tool"),
        item(2, negative_control=True, call_sequence=["a"]),
        item(3, adversarial={"type": "ambiguity", "expected": "ask_clarify"}),
        item(4, call_sequence=["a", "b", "a"], locale_probe=True, locale="de", slices=["x"]),
        item(5, expected_behaviour="retry", locale_probe=True, language="fr", long_context=True),
        item(6, locale="es", cluster=3, required_facts=[1]),
        item(7, locale_probe=True),
    )
    facts = open_dataset(file).facts
    assert facts.samples == 7
    assert facts.kinds == {
        "clarify": 1, "control": 1, "eligible": 2, "negative_control": 1, "unclassified": 2,
    }  # fmt: skip
    assert (facts.expecting_calls, facts.multi_call, facts.retry, facts.with_facts) == (2, 1, 1, 1)
    assert facts.locale_probes == {"": 1, "de": 1, "fr": 1}
    assert facts.locales == {"de": 1, "es": 1, "fr": 1}
    assert facts.slices == {"long_context": 1, "x": 1}
    assert facts.tools == {"a": 2, "b": 1}
    assert facts.clusters


# --- bad input


def test_a36_a_missing_file_a_folder_and_an_unreadable_name(tmp_path):
    assert problems_of(tmp_path / "no.jsonl") == [": no such file"]
    assert problems_of(tmp_path) == [": is a folder, a file is needed"]
    assert problems_of(tmp_path / ("x" * 300)) == [": cannot be read: File name too long"]
    assert problems_of(Path("a\0b")) == [": cannot be read: embedded null byte"]


def test_d48_an_empty_dataset_is_an_error(file):
    file.write_bytes(b"\n \n")
    assert problems_of(file) == [": the dataset is empty: it has no items"]
    assert problems_of(written(file, HEADER)) == [
        ": the dataset is empty: it has a header, but no items"
    ]
    if os.path.exists("/dev/null"):  # noqa: PTH110
        assert problems_of(Path("/dev/null")) == [": the dataset is empty: it has no items"]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"{nope", "not JSON: Expecting property name enclosed in double quotes (column 2)"),
        (b'{"prompt": "\xff"}', "not UTF-8 (byte 12)"),
        (b'{"prompt": NaN}', "not JSON: NaN is not a JSON number"),
        (b"[1]", "must be a JSON object, not a list"),
        (b'"x"', "must be a JSON object, not a string"),
        (b"3", "must be a JSON object, not a number"),
        (b"null", "must be a JSON object, not null"),
        (b"true", "must be a JSON object, not true or false"),
        (b"{}", "prompt: is missing"),
        (b'{"prompt": null}', "prompt: must be a string or a list, not null"),
        (b'{"prompt": []}', "prompt: must not be empty"),
        (b'{"prompt": [{}]}', "prompt[0].role: is missing"),
        (b'{"prompt": [{"role": "bot"}]}',
         'prompt[0].role: must be system, user, assistant or tool, not "bot"'),
        (b'{"prompt": "", "user_turns": [1]}', "user_turns[0]: must be a string, not 1"),
        (b'{"prompt": "", "metadata": []}', "metadata: must be an object, not []"),
        (b'{"prompt": "", "sample_id": true}',
         "sample_id: must be a string or a number, not true"),
        (b'{"prompt": "", "metadata": {"call_sequence": [{"arguments": {}}]}}',
         "metadata.call_sequence[0].name: is missing"),
        (b'{"prompt": "", "metadata": {"call_sequence": ["a", {"name": 5}]}}',
         "metadata.call_sequence[1].name: must be a string, not 5"),
        (b'{"prompt": "", "metadata": {"expected_behaviour": "maybe"}}',
         'metadata.expected_behaviour: must be normal, retry, no_tool or decline, not "maybe"'),
        (b'{"prompt": "", "metadata": {"negative_control": "yes"}}',
         'metadata.negative_control: must be true or false, not "yes"'),
        (b'{"prompt": "", "metadata": {"integration_spans_bytes": [[3, -1]]}}',
         "metadata.integration_spans_bytes[0][1]: must be at least 0, not -1"),
        (b'{"prompt": "", "teacher_text": ' + b"[" * 300 + b"]" * 300 + b"}",
         "nested deeper than 200 levels"),
        (b"[" * 5000, "nested deeper than 200 levels"),
    ],
)  # fmt: skip
def test_a48_a20_bad_lines_are_named_with_file_line_and_field(file, line, problem):
    file.write_bytes(json.dumps(HEADER).encode() + b"\n\n" + line + b"\n")
    assert problems_of(file) == [f":3: {problem}"]


def test_problems_are_collected_up_to_twenty(file):
    written(file, HEADER, *({"prompt": n} for n in range(50)))
    problems = problems_of(file)
    assert len(problems) == 20
    assert problems[0] == ":2: prompt: must be a string or a list, not 0"
    assert problems[-1].startswith(":21: ")


def test_one_item_with_many_problems_stays_within_twenty(file):
    written(file, {"prompt": "", "user_turns": list(range(100))})
    assert len(problems_of(file)) == 20


def test_a_long_value_is_cut_in_the_message(file):
    (problem,) = problems_of(written(file, {"prompt": {"x": "y" * 10_000}}))
    assert len(problem) < 200


def test_two_samples_with_one_id_name_both_lines(file):
    same = {"prompt": "b", "sample_id": "a"}
    assert problems_of(
        written(file, HEADER, ITEM, same, {"prompt": "c"}, {"prompt": "c"}, same)
    ) == [
        ':3: sample_id: "a" is the id of line 2 too',
        ":5: sample_id: none is given, and the item is the same as on line 4",
        ':6: sample_id: "a" is the id of line 3 too',
    ]


def test_a_number_and_its_text_are_one_id(file):
    items = [{"prompt": "1", "sample_id": 7}, {"prompt": "2", "sample_id": "7"}]
    assert problems_of(written(file, *items)) == [':2: sample_id: "7" is the id of line 1 too']


# --- reading twice


def test_a_file_that_changed_between_the_readings_is_noticed(file):
    with open_dataset(written(file, HEADER, ITEM)) as dataset:
        assert len(list(dataset.samples())) == 1
        written(file, HEADER, {**ITEM, "prompt": "How new is the bridge?"})
        with pytest.raises(BadInput, match=r"data.jsonl: the file changed while it was in use"):
            next(dataset.samples())


def test_a_file_that_changes_during_the_second_reading_is_noticed(file):
    item = {"prompt": "x" * 20_000}
    with open_dataset(
        written(file, HEADER, *({**item, "sample_id": n} for n in range(40)))
    ) as data:
        samples = data.samples()
        next(samples)
        with file.open("ab") as more:
            more.write(b"{torn")
        with pytest.raises(BadInput, match="the file changed while it was in use"):
            list(samples)


def test_a_file_that_was_only_touched_is_read(file):
    with open_dataset(written(file, HEADER, ITEM)) as dataset:
        os.utime(file, (1, 1))
        assert len(list(dataset.samples())) == 1


def test_a_file_that_is_gone_is_named(file):
    with open_dataset(written(file, ITEM)) as dataset:
        file.unlink()
        with pytest.raises(BadInput, match="no such file"):
            list(dataset.samples())


def test_standard_input_is_spooled_and_removed(monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    text = io.TextIOWrapper(io.BytesIO(json.dumps(ITEM).encode() + b"\n"), "utf-8")
    monkeypatch.setattr(sys, "stdin", text)
    with open_dataset("-") as dataset:
        assert dataset.name == "<stdin>"
        assert len(list(tmp_path.iterdir())) == 1
        assert [len(list(dataset.samples())) for _ in range(2)] == [1, 1]
    assert list(tmp_path.iterdir()) == []


def test_bad_standard_input_leaves_nothing_behind(monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"{x\n"), "utf-8"))
    with pytest.raises(BadInput, match="<stdin>:1: not JSON"):
        open_dataset("-")
    assert list(tmp_path.iterdir()) == []


def test_f72_a_pipe_with_a_name_is_refused_at_once(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(BadInput, match="is a pipe, not a regular file; write it to a file first"):
        open_dataset(pipe)


def test_f1_what_stands_beside_a_header_object_belongs_into_it(tmp_path):
    path = tmp_path / "d.jsonl"
    path.write_text('{"__header__": {}, "span_extractor": "marker"}\n{"prompt": "a"}\n', "utf-8")
    with pytest.raises(BadInput, match=r":1: span_extractor: .* belongs in the __header__ object"):
        open_dataset(path)


def test_an_unknown_field_of_the_header_is_worth_a_word(tmp_path):
    path = tmp_path / "d.jsonl"
    path.write_text('{"__header__": true, "integration_spancap": 9}\n{"prompt": "a"}\n', "utf-8")
    with pytest.raises(BadInput, match=r":1: integration_spancap: .* mean integration_span_cap"):
        open_dataset(path)
    path.write_text('{"__header__": true, "made_by": "us"}\n{"prompt": "a"}\n', "utf-8")
    with open_dataset(path) as dataset:
        [warning] = dataset.warnings
    assert "unknown keys, kept and otherwise without effect: made_by (line 1)" in warning
    path.write_text('{"__header__": true, "x_made_by": "us"}\n{"prompt": "a"}\n', "utf-8")
    with open_dataset(path) as dataset:
        assert dataset.warnings == ()


def test_the_same_mistake_is_named_in_every_line(file):
    wrong = {"prompt": "x", "metadata": {"required_fact": [1]}}
    lines = [wrong | {"prompt": str(number)} for number in range(5)]
    told = problems_of(written(file, HEADER, *lines))
    assert [one.partition(" ")[0] for one in told] == [":2:", ":3:", ":4:", ":5:", ":6:"]


def test_a_program_is_refused_in_one_sentence(file):
    file.write_text("import json\n\nx = 1\ny = 2\n")
    assert problems_of(file) == [
        ':1: a dataset has one JSON object on each line, but this begins with "import json"'
    ]
