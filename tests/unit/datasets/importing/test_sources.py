"""What a source may be: files, folders, patterns, packed ones, standard input, several of them."""

import gzip
import io
import json
import sys
from datetime import UTC, datetime
from types import SimpleNamespace

import msgspec
import pytest

from callmark.datasets.importing import sources
from callmark.datasets.importing.importing import import_dataset
from callmark.errors import BadInput, UsageError

from .conftest import places_in


def talk(name, city="Ulm", degrees=19):
    call = {"name": "weather", "arguments": json.dumps({"city": city})}
    return {
        "id": name,
        "messages": [
            {"role": "user", "content": f"How warm is {city}?"},
            {"role": "assistant", "tool_calls": [{"id": "a", "function": call}]},
            {"role": "tool", "tool_call_id": "a", "content": json.dumps({"temp_c": degrees})},
            {"role": "assistant", "content": f"It is {degrees} degrees in {city}."},
        ],
    }


def lines(*values):
    return "".join(json.dumps(value) + "\n" for value in values).encode()


@pytest.fixture
def logs(tmp_path):
    folder = tmp_path / "logs"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.jsonl").write_bytes(lines(talk("one"), talk("two")))
    (folder / "deep" / "b.jsonl.gz").write_bytes(gzip.compress(lines(talk("three", "Bonn", 7))))
    (folder / "notes.md").write_text("# Nothing to import\n", "utf-8")
    (folder / "other.json").write_text('{"rows": 3, "kind": "table"}', "utf-8")
    return folder


def ids(places):
    items = places.dataset.read_text("utf-8").splitlines()[1:]
    return [json.loads(line)["metadata"]["sample_id"] for line in items]


def kinds(report):
    return {kind.kind: kind for kind in report.unmapped}


def test_a_folder_is_read_file_by_file_and_strangers_are_named(logs, tmp_path):
    places = places_in(tmp_path / "made")
    report = import_dataset(logs, places)
    assert ids(places) == ["one", "two", "three"]
    assert [(one.format, one.entries, one.trials) for one in report.sources] == [
        ("openai", 2, 2),
        ("openai", 1, 1),
    ]
    strangers = kinds(report)["not_a_log"]
    assert [place.source for place in strangers.places] == [
        str(logs / "notes.md"),
        str(logs / "other.json"),
    ]
    assert "not JSON" in strangers.places[0].detail
    assert "an object with the keys kind, rows" in strangers.places[1].detail
    assert "looks like none of openai, " in strangers.places[1].detail
    counts = report.counts
    assert (counts.samples, counts.calls, counts.results, counts.fixtures) == (3, 3, 3, 3)


def test_a_pattern_and_a_file_are_read_once_each(logs, tmp_path):
    places = places_in(tmp_path / "made")
    import_dataset([f"{logs}/**/*.gz", logs / "a.jsonl", f"{logs}/*.jsonl"], places)
    assert ids(places) == ["three", "one", "two"]


def test_the_same_sources_give_the_same_bytes(logs, tmp_path):
    one, other = places_in(tmp_path / "one"), places_in(tmp_path / "other")
    import_dataset(logs, one)
    import_dataset(logs, other)
    for first, second in zip(one.files, other.files, strict=True):
        if first.exists():
            assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("pack", [lambda data: data, gzip.compress])
def test_standard_input_is_read_whatever_it_is(pack, tmp_path, monkeypatch):
    given = SimpleNamespace(buffer=io.BytesIO(pack(lines(talk("one")))))
    monkeypatch.setattr(sys, "stdin", given)
    places = places_in(tmp_path / "made")
    report = import_dataset(["-"], places)
    assert ids(places) == ["one"]
    assert (report.source, report.sources[0].source) == ("-", "-")


def test_what_is_wrong_on_standard_input_is_said_of_it(tmp_path, monkeypatch):
    given = SimpleNamespace(buffer=io.BytesIO(lines(talk("one")) + b'{"messages": 3}\n'))
    monkeypatch.setattr(sys, "stdin", given)
    with pytest.raises(BadInput, match=r"^-:2: messages"):
        import_dataset(["-"], places_in(tmp_path / "made"))


def test_one_id_in_two_files_stays_two_samples(tmp_path):
    for name, degrees in (("mon.jsonl", 19), ("tue.jsonl", 21), ("wed.jsonl", 19)):
        (tmp_path / name).write_bytes(lines(talk("ulm", degrees=degrees)))
    places = places_in(tmp_path / "made")
    report = import_dataset([tmp_path / f"{day}.jsonl" for day in ("mon", "tue", "wed")], places)
    assert ids(places) == ["ulm", "tue.jsonl/ulm"]
    assert kinds(report)["id_taken"].places[0].detail == "ulm is tue.jsonl/ulm"
    assert kinds(report)["duplicate"].places[0].source == str(tmp_path / "wed.jsonl")
    fixtures = [json.loads(line) for line in places.fixtures_file.read_text().splitlines()]
    assert {one["sample_id"]: one["result"] for one in fixtures} == {
        "ulm": '{"temp_c": 19}',
        "tue.jsonl/ulm": '{"temp_c": 21}',
    }


def test_one_id_twice_in_one_file_is_still_an_error(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(lines(talk("ulm"), talk("ulm", degrees=3)))
    (tmp_path / "b.jsonl").write_bytes(lines(talk("bonn")))
    with pytest.raises(BadInput, match=r"a.jsonl:2: .* stands on line 1 too"):
        import_dataset([tmp_path / "a.jsonl", tmp_path / "b.jsonl"], places_in(tmp_path / "made"))


def test_a_file_of_no_known_kind_that_was_named_is_an_error(logs, tmp_path):
    what = r"the keys kind, rows: \{\"kind\":\"table\",\"rows\":3\}"
    with pytest.raises(UsageError, match=what):
        import_dataset(logs / "other.json", places_in(tmp_path / "made"))


def test_a_folder_without_any_log_is_an_error(tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    with pytest.raises(BadInput, match="no file in it"):
        import_dataset(folder, places_in(tmp_path / "made"))
    (folder / "notes.md").write_text("# Nothing\n", "utf-8")
    with pytest.raises(BadInput, match=r"notes\.md"):
        import_dataset(folder, places_in(tmp_path / "made"))
    with pytest.raises(BadInput, match="matches no file"):
        import_dataset([f"{folder}/*.jsonl"], places_in(tmp_path / "made"))


@pytest.mark.parametrize("spoil", [lambda data: data[:-9], lambda data: data[:12] + b"x" * 40])
def test_a_damaged_archive_is_said_to_be_one(spoil, tmp_path):
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(spoil(gzip.compress(lines(*(talk(str(n)) for n in range(400))))))
    with pytest.raises(BadInput, match=r"a\.jsonl\.gz: is damaged"):
        import_dataset(path, places_in(tmp_path / "made"))


def test_only_the_first_header_stays(tmp_path):
    for name in ("a", "b"):
        item = {"prompt": "Hello", "metadata": {"sample_id": name}}
        header = {"__header__": True, "dataset_version": name}
        (tmp_path / f"{name}.jsonl").write_bytes(lines(header, item))
    places = places_in(tmp_path / "made")
    report = import_dataset([tmp_path / "a.jsonl", tmp_path / "b.jsonl"], places)
    assert ids(places) == ["a", "b"]
    assert json.loads(places.dataset.read_text().splitlines()[0])["dataset_version"] == "a"
    assert kinds(report)["header_left_out"].count == 1
    assert b'"source":' in msgspec.json.encode(report.unmapped)


def test_a_pattern_that_matches_folders_reads_what_is_in_them(logs, tmp_path):
    places = places_in(tmp_path / "made")
    import_dataset([f"{logs.parent}/lo*"], places)
    assert ids(places) == ["one", "two", "three"]
    places = places_in(tmp_path / "again")
    import_dataset([f"{logs}/**"], places)
    assert ids(places) == ["one", "two", "three"]


def test_one_conversation_over_many_lines_is_one(tmp_path):
    path = tmp_path / "talk.json"
    path.write_text(json.dumps(talk("one")["messages"], indent=1), "utf-8")
    places = places_in(tmp_path / "made")
    report = import_dataset(path, places)
    assert (report.counts.samples, report.counts.calls) == (1, 1)


def test_a_document_that_is_too_large_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "MAX_DOCUMENT", 100)
    path = tmp_path / "talk.json"
    path.write_text(json.dumps([talk("one")], indent=1), "utf-8")
    with pytest.raises(BadInput, match=r"talk\.json: is one JSON document of more than 100 bytes"):
        import_dataset(path, places_in(tmp_path / "made"))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"prompt": "{", "rest": None}, r"out\.parquet:1: prompt: "),
        ({"prompt": '"Hi"', "rest": "[1]"}, r"out\.parquet:1: rest: must hold a JSON object"),
        ({"prompt": 5, "rest": None}, r"out\.parquet:1: prompt: must be a text .* not int"),
    ],
)
def test_a_table_of_ours_that_somebody_changed_names_row_and_column(row, message, tmp_path):
    import pyarrow as arrow
    from pyarrow import parquet

    table = arrow.Table.from_pylist([row]).replace_schema_metadata({sources.OURS: b"{}"})
    parquet.write_table(table, tmp_path / "out.parquet")
    with pytest.raises(BadInput, match=message):
        import_dataset(tmp_path / "out.parquet", places_in(tmp_path / "made"))


def test_a_moment_in_a_table_is_read_as_a_text(tmp_path):
    import pyarrow as arrow
    from pyarrow import parquet

    row = {"prompt": "Hi", "asked_at": datetime(2026, 1, 2, tzinfo=UTC)}
    parquet.write_table(arrow.Table.from_pylist([row]), tmp_path / "a.parquet")
    places = places_in(tmp_path / "made")
    import_dataset(tmp_path / "a.parquet", places)
    [item] = map(json.loads, places.dataset.read_text("utf-8").splitlines()[1:])
    assert item["asked_at"] == "2026-01-02 00:00:00+00:00"
