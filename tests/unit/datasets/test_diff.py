"""Two versions of a dataset, compared by the ids of their samples."""

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callmark.cli import main
from callmark.datasets.diff import LISTED, changed_fields, diff_datasets
from callmark.errors import BadInput, UsageError

HEADER = {"__header__": True, "dataset_version": "1"}


def item(name: str, prompt: str = "?", **metadata) -> dict:
    return {"prompt": prompt, "metadata": {"sample_id": name, **metadata}}


def written(path, *lines):
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text("".join(f"{text}\n" for text in texts), "utf-8")
    return path


@pytest.fixture
def files(tmp_path):
    return tmp_path / "a.jsonl", tmp_path / "b.jsonl"


def diff_of(files, before, after):
    return diff_datasets(written(files[0], *before), written(files[1], *after))


def test_added_removed_and_changed_samples_with_their_fields(files):
    diff = diff_of(
        files,
        [HEADER, item("same"), item("gone"), item("new words"), item("facts", required_facts=[1])],
        [HEADER, item("same"), item("new words", "!"), item("facts", required_facts=[2], x=1), item("added")],
    )  # fmt: skip
    assert [(one.sample_id, one.line) for one in diff.added] == [("added", 5)]
    assert [(one.sample_id, one.line) for one in diff.removed] == [("gone", 3)]
    assert [(one.sample_id, one.line_a, one.line_b, one.fields) for one in diff.changed] == [
        ("new words", 4, 3, ("prompt",)),
        ("facts", 5, 4, ("metadata.required_facts", "metadata.x")),
    ]
    assert diff.changed_fields == {"metadata.required_facts": 1, "metadata.x": 1, "prompt": 1}
    assert (diff.samples_a, diff.samples_b, diff.same) == (4, 4, 1)
    assert not diff.header
    assert not diff.reordered


def test_what_is_only_written_differently_has_not_changed(files):
    diff = diff_of(
        files,
        [HEADER, '{"prompt": "é", "metadata": {"sample_id": "a", "x": 1}}'],
        [
            '{"__header__": {"dataset_version": "1"}}',
            "",
            '{"metadata":{"x":1,"sample_id":"a"},"prompt":"\\u00e9"}',
        ],
    )
    assert not diff.differs
    assert diff.same == 1


@pytest.mark.parametrize(
    ("old", "new", "fields"),
    [
        ({"x": 1}, {"x": 1.0}, ("x",)),
        ({"x": 1}, {"x": True}, ("x",)),
        ({"x": None}, {}, ("x",)),
        ({"metadata": {"a": [1, 2]}}, {"metadata": {"a": [2, 1]}}, ("metadata.a",)),
        ({"metadata": None}, {"metadata": {"a": 1}}, ("metadata", "metadata.a")),
        ({"metadata": {"a": {"b": 1, "c": 2}}}, {"metadata": {"a": {"c": 2, "b": 1}}}, ()),
    ],
)
def test_fields_differ_as_json_does(old, new, fields):
    assert changed_fields(old, new) == fields


def test_header_and_order(files):
    header = {"__header__": {"dataset_version": "2", "seed": 1}}
    diff = diff_of(files, [HEADER, item("a"), item("b")], [header, item("b"), item("a")])
    assert {name: (one.a, one.b) for name, one in diff.header.items()} == {
        "dataset_version": ("1", "2"), "seed": (None, 1),
    }  # fmt: skip
    assert diff.reordered
    assert diff.same == 2
    assert diff.differs


def test_samples_without_an_id_are_gone_and_new_when_they_change(files):
    diff = diff_of(files, [{"prompt": "a"}, {"prompt": "b"}], [{"prompt": "b"}, {"prompt": "c"}])
    assert (diff.added_count, diff.removed_count, diff.changed_count, diff.same) == (1, 1, 0, 1)


def test_long_lists_are_cut_but_counted(files):
    many = [item(f"s{number}") for number in range(LISTED + 3)]
    diff = diff_of(files, [item("x")], many)
    assert (diff.added_count, len(diff.added)) == (LISTED + 3, LISTED)


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(st.dictionaries(st.integers(0, 9), st.integers(0, 2)), st.dictionaries(st.integers(0, 9), st.integers(0, 2)), st.randoms())  # fmt: skip
def test_counts_agree_with_sets(tmp_path_factory, before, after, chance: random.Random):
    """One file each way: what is added here is removed there, and all samples are accounted for."""
    folder = tmp_path_factory.mktemp("d")
    before[99] = after[99] = 0

    def lines(samples):
        rows = [item(f"s{name}", str(value)) for name, value in samples.items()]
        chance.shuffle(rows)
        return rows

    a, b = written(folder / "a", *lines(before)), written(folder / "b", *lines(after))
    there, back = diff_datasets(a, b), diff_datasets(b, a)
    common = before.keys() & after.keys()
    changed = {name for name in common if before[name] != after[name]}
    assert there.added_count == back.removed_count == len(after.keys() - before.keys())
    assert there.removed_count == back.added_count == len(before.keys() - after.keys())
    assert {one.sample_id for one in there.changed} == {f"s{name}" for name in changed}
    assert there.same == back.same == len(common - changed)


def test_on_the_terminal_as_json_and_by_exit_code(files, capsys):
    a, b = map(str, files)
    written(files[0], HEADER, item("x\x1b[2J"), item("b"))
    written(files[1], {**HEADER, "dataset_version": "2"}, item("b", "!"), *(item(f"n{n}") for n in range(25)))  # fmt: skip
    assert main(["dataset", "diff", a, b]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    for text in (
        "25 added, 1 removed, 1 changed, 0 the same",
        "n0 (line 3)",
        "and 5 more",
        "b (line 3, now 2): prompt",
        'dataset_version  "1"  "2"',
    ):
        assert text in shown
    assert main(["dataset", "diff", a, b, "--exit-code", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["removed"][0]["line"] == 2
    assert main(["dataset", "diff", a, a, "--exit-code"]) == 0
    assert "they hold the same" in capsys.readouterr().out


def test_bad_input_is_named(files, tmp_path):
    good, bad = written(files[0], item("a")), files[1]
    with pytest.raises(BadInput, match="no such file"):
        diff_datasets(good, bad)
    written(bad, item("a"), item("a"))
    with pytest.raises(BadInput, match=r"b\.jsonl:2: sample_id: .* is the id of line 1 too"):
        diff_datasets(good, bad)
    with pytest.raises(UsageError, match="must be a file"):
        diff_datasets(tmp_path, good)
