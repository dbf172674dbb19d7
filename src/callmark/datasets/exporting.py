"""What we have, in files that others read: a dataset as plain JSON lines or as a table, results as
a log that Inspect's own reader opens (JSON, or an `.eval` archive)."""

from __future__ import annotations

import json
import math
import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import msgspec

from callmark._version import __version__
from callmark.calls.attempts import ToolCall, native_call
from callmark.calls.registry import Registry
from callmark.datasets.importing.inspect_log import TOOLS
from callmark.datasets.importing.sources import JSON_COLUMNS, OURS
from callmark.datasets.reader import Item, find_header, header_fields, located_items, open_dataset
from callmark.errors import BadInput, MissingExtra, UsageError
from callmark.records.jsontext import (
    Json,
    canonical_json,
    sha256_hex,
    want_list,
    want_object,
    want_text,
)
from callmark.records.results import Result, Scores
from callmark.records.samples import sample_id_of
from callmark.records.statements import GOOD
from callmark.records.trace import TraceEntry
from callmark.store.files import atomic_writer, open_input, read_results

__all__ = ["DATASET_EXPORTS", "FORMATS", "FORMAT_OF_SUFFIX", "INSPECT", "export_inspect"]

_ROWS = 1024
_OF_RESULTS = frozenset({"model_output", "tool_trace", "scores"})  # no item has all of them
_PLAIN_COLUMNS = ("user_turns", "teacher_text")


def export_jsonl(source: Path, out: Path) -> int:
    """Every item, without the header, each with its id in `sample_id`."""
    count = 0
    with atomic_writer(out) as target:
        for item in _items(source):
            line = {"sample_id": sample_id_of(item), **_without_id(item)}
            target.write(_text(line).encode() + b"\n")
            count += 1
    return count


def export_parquet(source: Path, out: Path) -> int:
    """One row per item. `prompt`, `metadata` and whatever else an item has (`rest`) are JSON
    texts, as their shape differs from item to item; the header is in the file's own metadata."""
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtra("writing Parquet", "parquet") from None
    texts = ("sample_id", *JSON_COLUMNS, "teacher_text")
    fields = [arrow.field(name, arrow.string()) for name in texts]
    fields.append(arrow.field("user_turns", arrow.list_(arrow.string())))
    schema = arrow.schema(fields, metadata={OURS: _text(_header(source)).encode()})
    count = 0
    items = _items(source)
    with atomic_writer(out) as target, parquet.ParquetWriter(target, schema) as table:
        while rows := [_row(item) for item in islice(items, _ROWS)]:
            table.write_table(arrow.Table.from_pylist(rows, schema))
            count += len(rows)
    return count


def _items(source: Path) -> Iterator[Item]:
    open_dataset(source).close()  # every problem of the file, before anything is written
    with open_input(source) as stream:
        for _, item in located_items(stream, str(source)):
            if item.keys() >= _OF_RESULTS:
                raise BadInput(
                    f"{source}: these are results, not a dataset; `callmark report {source} -o"
                    " FILE` writes tables of them, and a log of Inspect ends with .eval"
                )
            yield item


def _header(source: Path) -> Item:
    with open_input(source) as stream:
        found = find_header(stream, str(source))
    return {} if found is None else header_fields(found[1])


def _row(item: Item) -> dict[str, Json]:
    row: dict[str, Json] = {"sample_id": sample_id_of(item)}
    rest: Item = {}
    for name, value in item.items():
        if name in _PLAIN_COLUMNS:
            row[name] = value
        elif name in ("prompt", "metadata"):
            row[name] = _text(value)
        else:
            rest[name] = value
    return {**row, "rest": _text(rest)} if rest else row


def _without_id(item: Item) -> Item:
    return {name: value for name, value in item.items() if name != "sample_id"}


def _text(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


INSPECT = "inspect"
# Of a dataset; results go to `export_inspect`.
DATASET_EXPORTS: dict[str, Callable[[Path, Path], int]] = {
    "jsonl": export_jsonl,
    "parquet": export_parquet,
}
FORMATS = (INSPECT, *DATASET_EXPORTS)
FORMAT_OF_SUFFIX = {
    ".eval": INSPECT,
    ".json": INSPECT,
    ".jsonl": "jsonl",
    ".parquet": "parquet",
}


Message = dict[str, Json]

NAMELESS_CALL = "malformed_call"
FLAGGED = "flagged"
_ROLES = frozenset({"system", "user", "assistant", "tool"})


def conversation_of(result: Result) -> list[Message]:
    """Prompt, turns, calls with their answers, what the user said. Where the order of text and
    calls is not known, all calls come first."""
    prompt = list(prompt_of(result.prompt))
    return [*prompt, *_with_reasoning(_answer(result), result.reasoning)]


def _answer(result: Result) -> list[Message]:
    messages: list[Message] = []
    entries = list(enumerate(result.tool_trace, start=1))
    if result.turns is None:
        if entries:
            messages += _turn("", entries)
        messages += _turn(result.model_output, [])
        messages += [{"role": "user", "content": said.text} for said in result.said]
        return messages
    output = result.model_output.encode()
    for number, turn in enumerate(result.turns, start=1):
        text = output[turn.start : turn.end].decode("utf-8", "replace")
        messages += _turn(text, [one for one in entries if one[1].turn == number])
        messages += [
            {"role": "user", "content": said.text} for said in result.said if said.turn == number
        ]
    return messages


def _with_reasoning(messages: list[Message], reasoning: str) -> list[Message]:
    """A result keeps the thoughts of all turns together: they stand before the first."""
    if not reasoning or not messages:
        return messages
    thought = {"type": "reasoning", "reasoning": reasoning}
    spoken = {"type": "text", "text": messages[0]["content"]}
    return [{**messages[0], "content": [thought, spoken]}, *messages[1:]]


def prompt_of(prompt: str | list[Message]) -> Iterator[Message]:
    if isinstance(prompt, str):
        yield {"role": "user", "content": prompt}
        return
    names: dict[str, str] = {}
    for message in prompt:
        role, content = message.get("role"), message.get("content")
        made: Message = {"role": role if role in _ROLES else "user", "content": _content(content)}
        calls = [_past_call(call) for call in want_list(message.get("tool_calls"))]
        if role == "assistant" and calls:
            made["tool_calls"] = calls
            names |= {want_text(call["id"]): want_text(call["function"]) for call in calls}
        call_id = message.get("tool_call_id")
        if role == "tool" and isinstance(call_id, str):
            made["tool_call_id"] = call_id
            made["function"] = message.get("name") or names.get(call_id)
        yield made


def _turn(text: str, entries: Sequence[tuple[int, TraceEntry]]) -> Iterator[Message]:
    spoken: Message = {"role": "assistant", "content": text, "source": "generate"}
    if entries:
        spoken["tool_calls"] = [_call(number, entry) for number, entry in entries]
    yield spoken
    for number, entry in entries:
        if entry.status == "unanswered":
            continue
        shown = entry.result if isinstance(entry.result, str) else canonical_json(entry.result)
        answer: Message = {
            "role": "tool",
            "content": shown,
            "tool_call_id": f"call_{number}",
            "function": entry.name or NAMELESS_CALL,
        }
        if entry.status != "ok":
            kind = "unknown" if entry.status == "error" else "parsing"
            answer["error"] = {"type": kind, "message": entry.reason or shown}
        yield answer


def _call(number: int, entry: TraceEntry) -> Message:
    is_read = isinstance(entry.arguments, dict)
    call: Message = {
        "id": f"call_{number}",
        "function": entry.name or NAMELESS_CALL,
        "arguments": entry.arguments if is_read else {},
        "type": "function",
    }
    return call if is_read else {**call, "parse_error": entry.raw or entry.reason or "malformed"}


def _past_call(call: Json) -> Message:
    """A call that the prompt itself holds."""
    holder = call if isinstance(call, dict) else {}
    inner = holder.get("function")
    source = inner if isinstance(inner, dict) else holder
    attempt = native_call(source.get("name"), source.get("arguments"))
    given = holder.get("id")
    made: Message = {
        "id": given if isinstance(given, str) else "",
        "function": attempt.name or NAMELESS_CALL,
        "arguments": attempt.arguments if isinstance(attempt, ToolCall) else {},
        "type": "function",
    }
    return made if isinstance(attempt, ToolCall) else {**made, "parse_error": attempt.raw}


def _content(content: Json) -> str:
    """Parts that are not text have no place in a log that nobody runs again: their kind stays."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    texts = (
        part["text"] if isinstance(part.get("text"), str) else f"[{part.get('type', 'part')}]"
        for part in parts
        if isinstance(part, dict)
    )
    return "\n".join(texts)


LOG_VERSION = 2
# A log wants a time, and a result has none: the same results give the same bytes.
NO_TIME = "1970-01-01T00:00:00+00:00"
_ZIP_TIME = (1980, 1, 1, 0, 0, 0)
_STOP = {
    "truncated": "max_tokens",
    "filtered": "content_filter",
    "context_exceeded": "model_length",
}
_PLAIN_NAME = re.compile(r"[\w.@:# -]{1,150}")
_encode = msgspec.json.Encoder().encode


class Means:
    """Number and sum of every measure, and of the trials."""

    def __init__(self) -> None:
        self.trials = self.completed = 0
        self.samples: set[str] = set()
        self.values: dict[str, list[float]] = {}
        self.model = "unknown"
        self.registries: set[str | None] = set()
        self.tools: list[Json] = []

    def add(self, result: Result) -> None:
        self.trials += 1
        self.completed += result.status == "ok"
        self.samples.add(result.sample_id)
        self.model = result.fingerprints.model_fingerprint or self.model
        self.registries.add(result.fingerprints.tool_registry_sha256)
        for name, value in measures(result.scores).items():
            self.values.setdefault(name, []).append(value)


def measures(scores: Scores | None) -> dict[str, float]:
    """What applies to this trial, as numbers; true is 1."""
    if scores is None:
        return {}
    found: dict[str, float | int | bool | None] = {
        "integration_f1_lax": scores.lax.f1 if scores.kind == "eligible" else None,
        "integration_f1_strict": scores.strict.f1
        if scores.kind == "eligible" and scores.strict_keys
        else None,
        "call_f1": scores.call_f1,
        "multi_call_parity_ok": scores.multi_call_parity_ok,
        "json_args_valid": scores.json_args_valid,
        "recovered": scores.recovered,
        "controls_with_integration": scores.controls_with_integration,
        "negative_control_ok": scores.negative_control_ok,
        "clarify_ok": scores.clarify_ok,
        "locale_probe_ok": scores.locale_probe_ok,
        "privacy_ok": scores.privacy_ok,
        "checks_ok": scores.checks_ok,
        "answered": scores.answered,
        FLAGGED: _is_flagged(scores),
    }
    return {name: float(value) for name, value in found.items() if value is not None}


def _is_flagged(scores: Scores) -> bool | None:
    """Does a firm flag lie on the answer? None: nothing in it was checked."""
    if not any(one.is_flag or one.label in GOOD for one in scores.statements):
        return None
    return any(one.is_firm for one in scores.statements)


def _scores(scores: Scores | None) -> dict[str, Json]:
    """Each measure; what was flagged says why."""
    found: dict[str, dict[str, Json]] = {
        name: {"value": value} for name, value in measures(scores).items()
    }
    if scores is not None and found.get(FLAGGED, {}).get("value"):
        because = [f"{one.label}: {one.because}" for one in scores.statements if one.is_firm]
        found[FLAGGED]["explanation"] = "\n".join(because)
    return {**found}


def export_inspect(
    source: Path, out: Path, registry: Registry | None = None, *, named: str | None = None
) -> int:
    """Writes the log, an archive if `out` ends with `.eval`; gives the number of trials. The log
    has the specs of `registry` if the results were made with it; where somebody `named` it, they
    must not have been made with another."""
    means = Means()
    for result in read_results(source):
        means.add(result)
    if not means.trials:
        raise BadInput(f"{source}: has no results to export")
    if registry is not None:
        # Scored conversations do not say which tools they were made with.
        fitting = {registry.sha256} if named is None else {registry.sha256, None}
        if means.registries <= fitting:
            means.tools = [spec.function for spec in registry.specs]
        elif named is not None:
            raise UsageError(f"--registry {named}: these are not the tools of {source}")
    with atomic_writer(out) as target:
        if out.suffix == ".eval":
            _write_archive(target, source, means)
        else:
            _write_json(target, source, means)
    return means.trials


def _write_json(target: BinaryIO, source: Path, means: Means) -> None:
    target.write(_encode(_frame(means))[:-1] + b',"samples":[')
    separator = b"\n"
    for result in read_results(source):
        target.write(separator + _encode(_sample(result)))
        separator = b",\n"
    target.write(b"\n]}\n")


def _write_archive(target: BinaryIO, source: Path, means: Means) -> None:
    frame = _frame(means)
    summaries: list[Json] = []
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        start = {name: frame[name] for name in ("version", "eval", "plan")}
        _put(archive, "_journal/start.json", start)
        for result in read_results(source):
            sample = _sample(result)
            _put(archive, _member_name(want_text(sample["id"]), sample["epoch"]), sample)
            summaries.append(_summary(sample))
        _put(archive, "summaries.json", summaries)
        _put(archive, "header.json", frame)


def _put(archive: zipfile.ZipFile, name: str, value: Json) -> None:
    info = zipfile.ZipInfo(name, _ZIP_TIME)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    archive.writestr(info, _encode(value))


def _member_name(sample_id: str, epoch: Json) -> str:
    """As Inspect names it, unless that could be taken for a path."""
    name = sample_id if _PLAIN_NAME.fullmatch(sample_id) else sha256_hex(sample_id.encode())
    return f"samples/{name}_epoch_{epoch}.json"


def _frame(means: Means) -> dict[str, Json]:
    spec: dict[str, Json] = {
        "created": NO_TIME,
        "task": "callmark",
        "dataset": {"samples": len(means.samples), "shuffled": False},
        "model": means.model,
        "config": {"epochs": math.ceil(means.trials / len(means.samples))},
        "packages": {"callmark": __version__},
        # Results hold no specs, only their hash.
        "metadata": {TOOLS: means.tools} if means.tools else {},
    }
    return {
        "version": LOG_VERSION,
        "status": "success",
        "eval": spec,
        "plan": {"name": "plan", "steps": [], "config": {}},
        "results": {
            "total_samples": means.trials,
            "completed_samples": means.completed,
            "scores": [_score(name, values) for name, values in sorted(means.values.items())],
        },
        "stats": {"started_at": NO_TIME, "completed_at": NO_TIME, "model_usage": {}},
    }


def _score(name: str, values: list[float]) -> dict[str, Json]:
    mean = math.fsum(values) / len(values)
    return {
        "name": name,
        "scorer": "callmark",
        "scored_samples": len(values),
        "params": {},
        "metrics": {"mean": {"name": "mean", "value": mean, "params": {}}},
    }


def _sample(result: Result) -> dict[str, Json]:
    messages = conversation_of(result)
    last = next((one for one in reversed(messages) if one["role"] == "assistant"), None)
    sample: dict[str, Json] = {
        "id": result.sample_id,
        "epoch": result.trial + 1,
        "input": result.prompt
        if isinstance(result.prompt, str)
        else list(prompt_of(result.prompt)),
        "target": "",
        "messages": messages,
        "output": _output(result, last),
        "scores": _scores(result.scores),
        "metadata": result.metadata,
        "store": {},
        "events": [],
        "model_usage": {},
        "attachments": {},
    }
    if result.status == "error":
        what = result.error or "no reason is given"
        sample["error"] = {"message": what, "traceback": "", "traceback_ansi": ""}
    return sample


def _output(result: Result, last: Message | None) -> dict[str, Json]:
    choices: list[Json] = []
    if last is not None and result.status == "ok":
        choices = [{"message": last, "stop_reason": _STOP.get(result.stop, "stop")}]
    return {"model": "", "choices": choices}


def _summary(sample: dict[str, Json]) -> dict[str, Json]:
    kept = ("id", "epoch", "input", "target", "scores")
    summary = {name: sample[name] for name in kept}
    if "error" in sample:
        summary["error"] = want_object(sample["error"])["message"]
    return {**summary, "metadata": {}, "completed": True}
