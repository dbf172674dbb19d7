"""Raw model text of about forty call formats, from the parser tests of two servers."""

import json
from collections import defaultdict

import pytest

from callmark import parse_tool_calls
from callmark.calls.ledger import read_turn
from callmark.calls.registry import tool_names
from callmark.errors import UsageError

pytestmark = pytest.mark.real

# The file's names of the formats that callmark promises to read.
PROMISED = frozenset(
    "Hermes Qwen25 Qwen3Coder qwen3coder step3p5 ernie45_moe Llama32 llama3_json llama4_pythonic Pythonic pythonic"
    " olmo3 Lfm2 Mistral deepseek_v3 deepseekv31 Glm4Moe Glm47Moe glm4_moe glm47_moe KimiK2 KimiK2Func granite"
    " granite-20b-fc phi4_mini_json xlam".split()
)
# It reads these too, but for a row here and there where a parser corrects what the model wrote.
READ_TOO = frozenset(
    "DeepSeekV32 DeepSeekV4 dots functiongemma gemma4 Gemma4 gigachat3 GigaChat3 hunyuan_a13b Hunyuan hy_v3 internlm"
    " jamba longcat minicpm5xml PoolsideV1 poolside_v1 step3".split()
)
# A string in quotes: GLM's template writes strings as they are, so the quotes belong to the value.
QUOTED = {"fmt-0532", "fmt-0536"}


@pytest.fixture(scope="module")
def rows(real_data):
    text = (real_data / "formats.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def judged(rows):
    """Sound rows of formats that are read. Some expect a name that is not in the text."""
    return [
        row
        for row in rows
        if row["format"] in PROMISED
        and not row.get("xfail")
        and not row["malformed"]
        and "note" not in row
    ]


def calls_of(row, format_name="auto"):
    """What the ledger makes of it. A call of a tool that is not offered is an attempt, but those
    parsers leave it out: so does this, where it is known what was offered."""
    tools = row.get("tools")
    found = [
        entry
        for entry in parse_tool_calls(row["text"], tools, format_name)
        if entry["status"] in ("ok", "repaired")
    ]
    offered = tool_names(tools) if tools else None
    if row["expected_calls"] or offered is None:
        return found
    return [entry for entry in found if entry["name"] in offered]


def as_asked(row, found):
    """The comparison that the row asks for."""
    expected, kind = row["expected_calls"], row["match"]
    if kind == "count_at_least":
        return len(found) >= len(expected)
    if len(found) != len(expected):
        return False
    if kind == "count_only":
        return True
    if kind == "count_and_empty_args":
        return all(entry["arguments"] == {} for entry in found)
    return all(
        (wanted.get("name") is None or entry["name"] == wanted["name"])
        and (kind == "names_only" or arguments_fit(wanted, entry["arguments"]))
        for wanted, entry in zip(expected, found, strict=True)
    )


def arguments_fit(wanted, arguments):
    if "arguments" in wanted and arguments != json.loads(wanted["arguments"]):
        return False
    return all(
        at_path(arguments, path) == value
        for path, value in wanted.get("arguments_subset", {}).items()
    )


def at_path(value, path):
    for key in path.split("']['"):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def counts(rows, format_of):
    """format → [as asked, all], and the ids of the others."""
    table, wrong = defaultdict(lambda: [0, 0]), set()
    for row in judged(rows):
        fits = as_asked(row, calls_of(row, format_of(row)))
        table[row["format"]][0] += fits
        table[row["format"]][1] += 1
        if not fits:
            wrong.add(row["id"])
    return table, wrong


@pytest.mark.parametrize(("hint", "bound"), [(True, 0.95), (False, 0.85)], ids=["named", "auto"])
def test_real_text_gives_the_calls_that_are_expected(rows, hint, bound):
    table, wrong = counts(rows, lambda row: row["format"] if hint else "auto")
    right, total = (sum(column) for column in zip(*table.values(), strict=True))
    assert total > 150
    assert right / total >= bound, dict(table)
    assert wrong == QUOTED


def test_other_formats_are_read_too(rows):
    chosen = [
        row
        for row in rows
        if row["format"] in READ_TOO and not row.get("xfail") and not row["malformed"]
    ]
    right = sum(as_asked(row, calls_of(row, row["format"])) for row in chosen)
    assert right >= 0.85 * len(chosen)


def test_no_call_is_invented(rows):
    silent = [row for row in rows if row["expected_calls"] == [] and row["format"] in PROMISED]
    assert len(silent) > 20
    for format_of in (lambda row: "auto", lambda row: row["format"]):
        assert [row["id"] for row in silent if calls_of(row, format_of(row))] == []


@pytest.fixture(scope="module")
def later_rows(real_data):
    """Rows of formats that came later; a policy is a server's choice, not a fact about a format."""
    text = (real_data / "formats" / "formats2.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def is_fact(row):
    return not row.get("policy") and not row["malformed"]


def made_in(row, format_name="auto", *, unknown=False):
    """`unknown`: no tools in a row means that nobody says which there were."""
    tools = (row["tools"] or None) if unknown else row["tools"]
    found = parse_tool_calls(row["text"], tools, format_name)
    return [entry for entry in found if entry["status"] == "ok"]


def as_asked_later(row, found):
    expected = row["expected_calls"]
    if row["match"].startswith("count_at_least"):
        found = found[: len(expected)]
    return len(found) == len(expected) and all(
        wanted.get("name") in (None, entry["name"]) and arguments_fit(wanted, entry["arguments"])
        for wanted, entry in zip(expected, found, strict=True)
    )


@pytest.mark.parametrize("unknown", [False, True], ids=["as offered", "unknown"])
@pytest.mark.parametrize(("hint", "bound"), [(True, 0.95), (False, 0.90)], ids=["named", "auto"])
def test_f83_later_formats_give_the_calls_that_are_expected(later_rows, hint, bound, unknown):
    chosen = [row for row in later_rows if is_fact(row)]
    wrong = [
        row["id"]
        for row in chosen
        if not as_asked_later(row, made_in(row, row["format"] if hint else "auto", unknown=unknown))
    ]
    assert len(chosen) > 120
    assert 1 - len(wrong) / len(chosen) >= bound, wrong


def test_no_call_is_invented_in_later_rows(later_rows):
    silent = [row for row in later_rows if is_fact(row) and row["expected_calls"] == []]
    assert len(silent) > 10
    assert [row["id"] for row in silent if made_in(row)] == []


def test_no_attempt_is_seen_in_the_answers_of_real_episodes(real_data):
    answers, wrong = 0, []
    for path in sorted((real_data / "episodes").glob("*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            episode = json.loads(line)
            for message in episode["messages"]:
                if message["role"] == "assistant" and message.get("content"):
                    answers += 1
                    if parse_tool_calls(message["content"], episode["tools"] or None):
                        wrong.append(episode["id"])
    assert answers > 3_000
    assert len(wrong) <= answers // 1000, wrong


@pytest.mark.slow
def test_no_prefix_of_any_text_breaks_anything(rows, later_rows):
    for row in rows + later_rows:
        offered = tool_names(row["tools"]) if row.get("tools") else None
        for length in range(len(row["text"]) + 1):
            turn = read_turn(row["text"][:length], offered=offered)
            assert isinstance(turn.text, str)


def test_every_promised_name_is_known(rows):
    for name in {row["format"] for row in rows}:
        try:
            parse_tool_calls("x", format=name)
        except UsageError:
            assert name not in PROMISED | READ_TOO
