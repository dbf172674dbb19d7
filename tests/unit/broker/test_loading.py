"""Strict loading: whatever is wrong in a fixture folder is named by file, line and field."""

import hashlib
import json
import os
from pathlib import Path

import pytest

from callmark.broker.broker import ToolBroker
from callmark.errors import BadInput

GOOD = {"name": "t", "key": {"q": "x"}, "result": 1}


def problems_of(broker_of, *entries) -> tuple[str, ...]:
    with pytest.raises(BadInput) as caught:
        broker_of(*entries)
    return caught.value.problems


def without_folder(problem: str) -> str:
    return problem.partition("fixtures/")[2]


def test_d5_a_missing_folder_is_an_error(tmp_path):
    with pytest.raises(BadInput, match="no such fixture folder"):
        ToolBroker(tmp_path / "missing")


def test_d5_a_file_is_no_folder(tmp_path):
    file = tmp_path / "web.search.jsonl"
    file.write_text(json.dumps(GOOD))
    with pytest.raises(BadInput, match="not a folder"):
        ToolBroker(file)


def test_d5_a_folder_without_fixture_files_is_an_error(tmp_path):
    (tmp_path / "README.md").write_text("nothing here")
    with pytest.raises(BadInput, match=r"has no \.jsonl or \.json file"):
        ToolBroker(tmp_path)


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ('{"name": "t",', "all.jsonl:2: not JSON: "),
        ("[1]", "all.jsonl:2: not an object"),
        ("null", "all.jsonl:2: not an object"),
        ('{"name": "t", "key": {}, "result": NaN}', "all.jsonl:2: not JSON: NaN"),
        ({**GOOD, "name": ""}, "all.jsonl:2: name: "),
        ({**GOOD, "name": None}, "all.jsonl:2: name: "),
        ({**GOOD, "name": 3}, "all.jsonl:2: name: "),
        ({"name": "t", "result": 1}, "all.jsonl:2: key: is missing"),
        ({**GOOD, "key": None}, "all.jsonl:2: key: must be an object"),
        ({**GOOD, "key": [["q", "x"]]}, "all.jsonl:2: key: must be an object"),
        ({**GOOD, "key": "x", "match": "any"}, "all.jsonl:2: key: must be an object"),
        ({"name": "t", "key": {}}, "all.jsonl:2: result: is missing"),
        ({**GOOD, "result": {"_fill_in": "…"}}, "all.jsonl:2: result: is still a placeholder"),
        ({**GOOD, "sample_id": ""}, "all.jsonl:2: sample_id: "),
        ({**GOOD, "sample_id": True}, "all.jsonl:2: sample_id: "),
        ({**GOOD, "sample_id": ["a"]}, "all.jsonl:2: sample_id: "),
        ({**GOOD, "seq": 0}, "all.jsonl:2: seq: must be 1, 2"),
        ({**GOOD, "seq": True}, "all.jsonl:2: seq: must be 1, 2"),
        ({**GOOD, "seq": "1"}, "all.jsonl:2: seq: must be 1, 2"),
        ({**GOOD, "seq": 1.5}, "all.jsonl:2: seq: must be 1, 2"),
        ({**GOOD, "match": "regex"}, 'all.jsonl:2: match: must be "exact", "any" or an object'),
        ({**GOOD, "match": ["any"]}, "all.jsonl:2: match: must be "),
        (
            {**GOOD, "sampel_id": "s"},
            "all.jsonl:2: sampel_id: unknown key; did you mean sample_id",
        ),
        ({**GOOD, "xyzzy": "s"}, "all.jsonl:2: xyzzy: unknown key"),
    ],
)
def test_d5_every_mistake_is_named_by_line_and_field(broker_of, entry, problem):
    (found,) = problems_of(broker_of, "", entry)
    assert without_folder(found).startswith(problem)


def test_d5_not_utf8_is_an_error(tmp_path):
    (tmp_path / "t.jsonl").write_bytes(b'{"name": "t", "key": {}, "result": "\xff"}\n')
    with pytest.raises(BadInput, match=r"t\.jsonl:1: not UTF-8"):
        ToolBroker(tmp_path)


def test_all_problems_are_collected_up_to_twenty(broker_of):
    found = problems_of(broker_of, {"b.jsonl": ["{", GOOD, "3"], "a.jsonl": [{**GOOD, "seq": 0}]})
    assert [without_folder(problem)[:10] for problem in found] == [
        "a.jsonl:1:",
        "b.jsonl:1:",
        "b.jsonl:3:",
    ]
    assert len(problems_of(broker_of, *["broken"] * 30)) == 20
    assert len(problems_of(broker_of, *({**GOOD, "result": n} for n in range(30)))) == 20


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (GOOD, {**GOOD, "result": 2}),
        ({**GOOD, "seq": 1}, {**GOOD, "result": 2}),
        ({**GOOD, "key": {"q": " X "}}, {**GOOD, "result": 2}),
        ({**GOOD, "sample_id": 7}, {**GOOD, "result": 2, "sample_id": "7"}),
        ({**GOOD, "key": {"n": 3.0}}, {**GOOD, "result": 2, "key": {"n": 3, "m": None}}),
        ({**GOOD, "match": "any"}, {**GOOD, "match": "any", "key": {}, "result": 2}),
        (
            {**GOOD, "match": {"q": {"contains": "x"}}},
            {**GOOD, "match": {"q": {"contains": "x"}}, "key": {"q": "xx"}, "result": 2},
        ),
    ],
)
def test_d5_two_answers_to_one_call_are_an_error_that_names_both(broker_of, first, second):
    (problem,) = problems_of(broker_of, {"a.jsonl": [first], "b.jsonl": [second]})
    assert without_folder(problem).startswith("b.jsonl:1: key: answers the same calls as ")
    assert "a.jsonl:1" in problem


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (GOOD, GOOD),
        ({**GOOD, "result": {"a": 1, "b": 2}}, {**GOOD, "result": {"b": 2, "a": 1}}),
        (GOOD, {**GOOD, "sample_id": "s", "result": 2}),
        (GOOD, {**GOOD, "seq": 2, "result": 2}),
        (GOOD, {**GOOD, "match": "any", "result": 2}),
        (GOOD, {**GOOD, "key": {"q": "y"}, "result": 2}),
    ],
)
def test_repeats_and_different_calls_are_fine(broker_of, first, second):
    assert broker_of(first, second).call("t", {"q": "x"}) == first["result"]


def test_a33_the_file_name_does_not_matter_when_a_name_is_given(broker_of):
    broker = broker_of({"deep/down/other.jsonl": [GOOD]})
    assert broker.call("t", {"q": "x"}) == 1


def test_f40_a_missing_name_is_an_error_whatever_the_file_is_called(broker_of):
    entries = [
        {"name": "web.search", "key": {"q": "y"}, "result": 2},
        {"key": {"q": "x"}, "result": 1},
    ]
    (problem,) = problems_of(broker_of, {"web.search.jsonl": entries})
    assert without_folder(problem) == (
        "web.search.jsonl:2: name: is missing; it is the tool's name, which the file's name does not give"
    )


def test_a30_a31_the_documented_entries_load_as_they_stand(broker_of):
    search = {"ok": True, "hits": [{"title": "…", "snippet": "…", "url": "https://…"}]}
    broker = broker_of(
        {
            "web.search.jsonl": [
                {
                    "name": "web.search",
                    "key": {"q": "what is rope precision", "top_k": 3},
                    "result": search,
                }
            ],
            "read_file.jsonl": [
                {
                    "name": "read_file",
                    "key": {"path": "README.md"},
                    "result": {"ok": True, "content": "# P"},
                }
            ],
        }
    )
    assert broker.call("web.search", {"q": "What is RoPE precision"}) == search
    assert broker.call("read_file", {"path": "README.md"})["content"] == "# P"


def test_a_json_file_holds_a_list_or_one_entry(broker_of):
    broker = broker_of(
        {
            "list.json": json.dumps([GOOD, {**GOOD, "key": {}, "result": 2}], indent=2),
            "one.json": json.dumps({**GOOD, "name": "u"}, indent=2),
        }
    )
    answers = broker.call("t", {"q": "x"}), broker.call("t", {}), broker.call("u", {"q": "x"})
    assert answers == (1, 2, 1)
    (problem,) = problems_of(broker_of, {"list.json": json.dumps([GOOD, {**GOOD, "seq": 0}])})
    assert without_folder(problem).startswith("list.json:1: entry 2: seq: ")


def test_blank_lines_crlf_and_a_byte_order_mark_are_tolerated(tmp_path):
    lines = [
        "\ufeff" + json.dumps(GOOD),
        "",
        "  ",
        json.dumps({**GOOD, "key": {}, "result": 2}),
        "",
    ]
    (tmp_path / "t.jsonl").write_bytes("\r\n".join(lines).encode())
    broker = ToolBroker(tmp_path)
    assert (broker.call("t", {"q": "x"}), broker.call("t", {})) == (1, 2)


def test_hidden_and_other_files_are_left_out(broker_of):
    broker = broker_of(
        {".t.jsonl": "broken", ".git/t.json": "broken", "a.md": "x", "t.jsonl": [GOOD]}
    )
    assert broker.call("t", {"q": "x"}) == 1


def test_the_folder_and_its_files_may_be_links_but_no_folder_below(tmp_path):
    real = tmp_path / "real"
    real.mkdir()
    (real / "t.jsonl").write_text(json.dumps(GOOD))
    (tmp_path / "link").symlink_to(real)
    assert ToolBroker(tmp_path / "link").call("t", {"q": "x"}) == 1
    folder = tmp_path / "fixtures"
    folder.mkdir()
    (folder / "t.jsonl").symlink_to(real / "t.jsonl")
    assert ToolBroker(folder).call("t", {"q": "x"}) == 1
    (folder / "below").symlink_to(real)
    with pytest.raises(BadInput, match="below: a link to a folder"):
        ToolBroker(folder)


def test_a_file_that_cannot_be_read_is_an_error(tmp_path):
    (tmp_path / "t.jsonl").symlink_to(tmp_path / "gone.jsonl")
    with pytest.raises(BadInput, match=r"t\.jsonl: no such file"):
        ToolBroker(tmp_path)


def test_an_entry_nested_too_deeply_is_an_error(broker_of):
    deep = "[" * 100_000 + "]" * 100_000
    for entry in (f'{{"key": {{"q": {deep}}}, "result": 1}}', f'{{"key": {{}}, "result": {deep}}}'):
        (problem,) = problems_of(broker_of, entry)
        assert "nested deeper than 100 levels" in problem


@pytest.mark.parametrize("depth", [50, 90, 97, 98, 99, 100, 101, 200, 990])
def test_depths_near_the_limit_load_or_say_so(broker_of, depth):
    deep = "[" * depth + "]" * depth
    try:
        broker = broker_of(f'{{"name": "t", "key": {{"q": {deep}}}, "result": {deep}}}')
    except BadInput as error:
        assert "nested deeper than 100 levels" in str(error)  # noqa: PT017
    else:
        assert broker.call("t", {"q": json.loads(deep)}) == json.loads(deep)


def test_fixtures_sha256_is_that_of_the_sorted_canonical_lines(broker_of):
    broker = broker_of(
        {"b.jsonl": ['{"result": 1, "key": {"é": 1.0}, "name": "t"}'], "a.jsonl": [GOOD]}
    )
    lines = ['{"key":{"q":"x"},"name":"t","result":1}', '{"key":{"é":1.0},"name":"t","result":1}']
    assert broker.fixtures_sha256 == hashlib.sha256("\n".join(lines).encode()).hexdigest()


def test_fixtures_sha256_changes_with_every_change_of_meaning(broker_of):
    changed = [
        [GOOD],
        [{**GOOD, "result": 2}],
        [{**GOOD, "result": True}],
        [{**GOOD, "key": {"q": "y"}}],
        [{**GOOD, "name": "u"}],
        [{**GOOD, "sample_id": "s"}],
        [{**GOOD, "match": "any"}],
        [GOOD, {**GOOD, "seq": 2}],
    ]
    assert len({broker_of(*entries).fixtures_sha256 for entries in changed}) == len(changed)


def test_notes_may_stand_in_an_entry(broker_of):
    assert broker_of({**GOOD, "_note": "from the manual"}).call("t", {"q": "x"}) == 1


def test_the_folder_is_read_once(broker_of):
    broker = broker_of(GOOD)
    for file in Path(broker.folder).iterdir():
        file.unlink()
    os.rmdir(broker.folder)  # noqa: PTH106
    assert broker.call("t", {"q": "x"}) == 1


def test_a_file_name_that_is_no_text_is_made_one(tmp_path):
    (tmp_path / os.fsdecode(b"caf\xe9.jsonl")).write_text(json.dumps(GOOD))
    broker = ToolBroker(tmp_path)
    assert broker.call("t", {"q": "x"}) == 1
