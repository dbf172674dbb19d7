"""Faults beyond the generator's table, planted here into good answers: what is left out, what no
fixture answers, and what only the strict reading sees."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from callmark.datasets.generate import AnswersWanted, TruthRecord
from callmark.records.jsontext import Json, want_list, want_object

Line = dict[str, Json]
Moved = dict[str, int | float | None]

_LINE = msgspec.json.Decoder(dict[str, Json])
_TRUTH = msgspec.json.Decoder(TruthRecord)
_SEARCH = "web.search"
_UNSERVED = 40
_NO_ANSWER: Moved = dict.fromkeys(
    (
        "f1_lax", "f1_strict", "spans_total", "spans", "grounded_lax", "grounded_strict",
        "found_lax", "found_strict", "unsupported", "values", "has_span", "has_grounded",
        "call_f1", "looked_up", "hits", "valid_call", "answered", "unchecked", "judged",
    ),
    0,
)  # fmt: skip


class Beyond(msgspec.Struct, frozen=True, kw_only=True):
    """One kind. `plant` changes the recorded answer and says which numbers that changes."""

    name: str
    gate: str
    effect: frozenset[str]
    applies: Callable[[Line], bool]
    plant: Callable[[Line, Line, TruthRecord], Moved]


def _expects_one_call(metadata: Line) -> bool:
    calls = want_list(metadata.get("call_sequence"))
    is_normal = metadata["expected_behaviour"] == "normal"
    special = metadata.get("negative_control") or metadata.get("locale_probe")
    return len(calls) == 1 and is_normal and not special


def _silent(answer: Line, metadata: Line, record: TruthRecord) -> Moved:
    """Neither a call nor a word."""
    answer |= {"model_output": "", "tool_trace": [], "turns": [{"start": 0, "end": 0}]}
    return {**_NO_ANSWER, "args_valid": None, "flagged": None}


def _is_unclear(metadata: Line) -> bool:
    return bool(want_object(metadata.get("adversarial")).get("expected") == "ask_clarify")


def _no_question(answer: Line, metadata: Line, record: TruthRecord) -> Moved:
    text = "I have taken note of it."
    answer |= {"model_output": text, "turns": [{"start": 0, "end": len(text)}]}
    return {"clarify_ok": 0}


def _may_search(metadata: Line) -> bool:
    calls = metadata.get("call_sequence") or ()
    special = metadata.get("negative_control") or metadata.get("locale_probe")
    offered = _SEARCH in (want_list(metadata.get("tools")) or (_SEARCH,))
    is_normal = metadata["expected_behaviour"] == "normal"
    return bool(calls) and is_normal and not special and offered


def _unserved(answer: Line, metadata: Line, record: TruthRecord) -> Moved:
    """Before the right calls others, for which there is no fixture: wrong calls, since the expected
    ones have theirs, and none of the fixtures' misses."""
    unheard = {"name": _SEARCH, "arguments": {"q": "something that nobody asked for"}, "turn": 1}
    answer["tool_trace"] = [*[unheard] * _UNSERVED, *want_list(answer["tool_trace"])]
    expected = len(want_list(metadata["call_sequence"]))
    return {
        "call_f1": 2 * expected / (2 * expected + _UNSERVED),
        "parity": None if record.truth["parity"] is None else 0,
    }


def _is_german_probe(metadata: Line) -> bool:
    is_german = bool(metadata.get("locale_probe")) and metadata.get("locale") == "de"
    return is_german and bool(metadata.get("required_facts"))


def _unkeyed(answer: Line, metadata: Line, record: TruthRecord) -> Moved:
    """The tool gave the same values, but outside of the fields that count as strict. What was
    recorded with the call is not looked up in the fixtures."""
    facts = {f"note {at}": fact for at, fact in enumerate(want_list(metadata["required_facts"]))}
    want_object(want_list(answer["tool_trace"])[0])["result"] = {"ok": True, "aside": facts}
    others = (record.truth["looked_up"] or 0) - 1
    strict: Moved = {"f1_strict": 0.0, "grounded_strict": 0, "found_strict": 0}
    return strict | {"looked_up": others, "hits": others}


BEYOND = {
    row.name: row
    for row in (
        Beyond(
            name="silent_answer",
            gate="integration_coverage",
            effect=frozenset((*_NO_ANSWER, "args_valid", "flagged")),
            applies=_expects_one_call,
            plant=_silent,
        ),
        Beyond(
            name="no_question",
            gate="clarify_ok_rate",
            effect=frozenset({"clarify_ok"}),
            applies=_is_unclear,
            plant=_no_question,
        ),
        Beyond(
            name="unserved_call",
            gate="call_f1_macro",
            effect=frozenset({"call_f1", "parity"}),
            applies=_may_search,
            plant=_unserved,
        ),
        Beyond(
            name="unkeyed_result",
            gate="locale_delta_de",
            effect=frozenset({"f1_strict", "grounded_strict", "found_strict", "looked_up", "hits"}),
            applies=_is_german_probe,
            plant=_unkeyed,
        ),
    )
}


def plant(kind: str, rate: float, seed: int, dataset: Path, answers: AnswersWanted) -> int:
    """Rewrites answers and truth; how many samples got the fault, evenly over the dataset."""
    row = BEYOND[kind]
    lines = dataset.read_bytes().splitlines()[1:]
    items = [want_object(_LINE.decode(line)["metadata"]) for line in lines]
    recorded = [_LINE.decode(line) for line in answers.path.read_bytes().splitlines()]
    truths = [_TRUTH.decode(line) for line in answers.truth_path.read_bytes().splitlines()]
    fitting = [at for at, metadata in enumerate(items) if row.applies(metadata)]
    wanted = max(1, int(rate * len(fitting) + 0.5))
    for number in range(wanted):
        at = fitting[(number * len(fitting) // wanted + seed) % len(fitting)]
        record = truths[at]
        planted = row.plant(recorded[at], items[at], record)
        moved = tuple(name for name, value in planted.items() if value != record.truth[name])
        truths[at] = TruthRecord(record.sample_id, kind, moved, {**record.truth, **planted})
    _write(answers.path, recorded)
    _write(answers.truth_path, truths)
    return wanted


def _write(path: Path, lines: list[Line] | list[TruthRecord]) -> None:
    path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
