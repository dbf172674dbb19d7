"""Answers that anybody recorded: results lines of other programs, or OpenAI-style messages."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal, Self

import jsonschema_rs
import msgspec

from callmark.errors import BadInput
from callmark.records.jsontext import (
    Json,
    NotJson,
    parse_json,
    want_list,
    want_number,
    want_object,
    want_text,
)
from callmark.records.problems import (
    Problems,
    did_you_mean,
    meant_key,
    schema_problems,
    typed_problem,
)
from callmark.records.results import (
    ByteRange,
    Decoding,
    Fingerprints,
    Measures,
    PrivacyScore,
    Result,
    Scoring,
)
from callmark.records.samples import Extractor, ExtractorBy, sample_id_of
from callmark.records.trace import FaultyCall, Stop, ThoughtCall, TraceEntry, UserTurn, entry_of
from callmark.stats.columns import KeyIndex, trial_key
from callmark.store.files import Line, filled_lines, is_blank, lines_of, open_input, parse_line


class RecordedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A results line of which only `sample_id` and `model_output` had to be there.
    None: the line does not say."""

    line: int
    sample_id: str
    trial: int
    model_output: str
    tool_trace: tuple[TraceEntry, ...] = ()
    turns: tuple[ByteRange, ...] | None = None
    said: tuple[UserTurn, ...] = ()
    reasoning: str = ""
    thought_calls: tuple[ThoughtCall, ...] = ()
    faults: tuple[FaultyCall, ...] = ()
    stop: Stop | None = None
    span_extractor: Extractor | None = None
    span_extractor_by: ExtractorBy | None = None
    status: Literal["ok", "error"] = "ok"
    error: str | None = None
    index: int | None = None
    prompt: str | list[dict[str, Json]] | None = None
    metadata: dict[str, Json] | None = None
    item_sha256: str | None = None
    used_fixtures_sha256: str | None = None
    offered_tools_sha256: str | None = None
    fingerprints: Fingerprints | None = None
    decoding: Decoding | None = None
    scoring: Scoring | None = None
    privacy: PrivacyScore | None = None
    more: Measures = {}


class RecordedMessages(msgspec.Struct, frozen=True, kw_only=True):
    """A whole conversation. A line without an id is named by the hash of what it holds."""

    line: int
    sample_id: str
    trial: int
    messages: list[dict[str, Json]]
    tools: list[dict[str, Json]] | None = None
    metadata: dict[str, Json] | None = None


Recorded = RecordedAnswer | RecordedMessages
_NEEDED = ("sample_id", "model_output", "tool_trace", "messages")
_OURS = frozenset(Result.__struct_fields__)


class _Kept(msgspec.Struct):
    privacy: PrivacyScore | None = None
    more: Measures = {}


class _Origin(msgspec.Struct):
    """What is taken over as it stands."""

    prompt: str | list[dict[str, Json]] | None = None
    metadata: dict[str, Json] | None = None
    span_extractor: Extractor | None = None
    span_extractor_by: ExtractorBy | None = None
    stop: Stop | None = None
    status: Literal["ok", "error"] | None = None
    error: str | None = None
    item_sha256: str | None = None
    used_fixtures_sha256: str | None = None
    offered_tools_sha256: str | None = None
    fingerprints: Fingerprints | None = None
    decoding: Decoding | None = None
    scoring: Scoring | None = None
    scores: _Kept | None = None
    thought_calls: tuple[ThoughtCall, ...] | None = None
    faults: tuple[FaultyCall, ...] | None = None


class _Name(msgspec.Struct):
    """Whose line it is, if it is a plain one; anything else needs a closer look."""

    sample_id: str | None = None
    model_output: Json = msgspec.UNSET


_decode_name = msgspec.json.Decoder(_Name).decode


class BadLine(BadInput):
    """One line that cannot be read: what is wrong with it, still without its place."""


def read_recorded(path: Path) -> Iterator[Recorded]:
    """Every recorded answer of a file, in order, one at a time."""
    for line in filled_lines(path):
        try:
            yield recorded_of(line)
        except BadLine as error:
            raise BadInput([f"{path}:{line.number}: {what}" for what in error.problems]) from None


def recorded_of(line: Line) -> Recorded:
    """One line, whatever its shape."""
    try:
        value = parse_line(line.json)
    except NotJson as error:
        raise BadLine([str(error)]) from None
    if isinstance(value, list):
        value = {"messages": value}
    if not isinstance(value, dict):
        raise BadLine(["must be a JSON object or a list of messages"])
    if "model_output" in value:
        return _answer(value, line.number)
    if "messages" in value:
        return messages_of(value, line.number)
    meant = next((f"; did you mean it by {key}?" for key in value if _meant(key)), "")
    raise BadLine([f"model_output: is missing (a line holds model_output, or messages){meant}"])


class RecordedIndex:
    """Recorded answers by (sample_id, trial). Read and checked once; only places are kept."""

    def __init__(self, path: Path, wants: Callable[[str], bool] | None = None) -> None:
        """`wants`: the samples that will be asked for. The lines of others are only hashed: who
        asks for them checks them."""
        self.path = path
        self._wants = wants
        self._index = KeyIndex()
        self._stream = open_input(path)
        try:
            self.count, self.sha256 = self._read()
        except BaseException:
            self._stream.close()
            raise

    def get(self, sample_id: str, trial: int) -> Recorded | None:
        place = self._index.find(trial_key(sample_id, trial))
        if place is None:
            return None
        number, offset = place
        self._stream.seek(offset)
        try:
            found = recorded_of(Line(number, offset, self._stream.readline()))
        except BadLine:
            found = None
        if found is None or (found.sample_id, found.trial) != (sample_id, trial):
            raise BadInput(f"{self.path}: the file changed while it was in use: start again")
        return found

    def __len__(self) -> int:
        return self.count

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._stream.close()
        self._index = KeyIndex()  # of a million answers it is 27 MB that nobody needs any more

    def _read(self) -> tuple[int, str]:
        problems = Problems()
        hasher = hashlib.sha256()
        count = 0
        for line in lines_of(self._stream, str(self.path)):
            hasher.update(line.data)
            if is_blank(line.json) or self._is_of_others(line):
                continue
            try:
                found = recorded_of(line)
            except BadLine as error:
                problems.add(f"{self.path}:{line.number}", error.problems)
                if problems.is_enough:
                    break
                continue
            self._index.add(trial_key(found.sample_id, found.trial), line.number, line.offset)
            count += 1
        for later, earlier, offset in self._index.clashes():
            problems.add(f"{self.path}:{later}", self._clash(offset, earlier))
        problems.raise_if_any()
        return count, hasher.hexdigest()

    def _is_of_others(self, line: Line) -> bool:
        if self._wants is None:
            return False
        try:
            name = _decode_name(line.json)
            is_plain = name.sample_id and name.model_output is not msgspec.UNSET
            sample_id = name.sample_id if is_plain else recorded_of(line).sample_id
        except (msgspec.MsgspecError, UnicodeError, RecursionError, BadLine):
            return False  # what cannot be read is everybody's
        return not self._wants(str(sample_id))

    def _clash(self, offset: int, earlier: int) -> str:
        self._stream.seek(offset)
        found = recorded_of(Line(0, offset, self._stream.readline()))
        return (
            f"sample_id: {json.dumps(found.sample_id, ensure_ascii=False)}, trial {found.trial}"
            f" stands on line {earlier} too: number repeated answers with `trial`"
        )


def _answer(value: dict[str, Json], number: int) -> RecordedAnswer:
    slips = [f"{key}: {did_you_mean(meant)}" for key in value if (meant := _meant(key))]
    problems = slips or schema_problems(_validator("recorded"), value)
    if problems:
        raise BadLine(problems)
    get = value.get
    output = want_text(get("model_output") or "")
    try:
        origin = msgspec.convert(value, _Origin)
    except msgspec.ValidationError as error:
        raise BadLine([typed_problem(error)]) from None
    return RecordedAnswer(
        line=number,
        sample_id=_text_of(value["sample_id"]),
        trial=_whole(get("trial") or 0),  # 1.0 is a whole number in JSON
        index=None if get("index") is None else _whole(value["index"]),
        model_output=output,
        tool_trace=tuple(entry_of(entry) for entry in want_list(get("tool_trace"))),
        turns=_turns(get("turns"), output),
        said=tuple(map(_user_turn, want_list(get("said")))),
        reasoning=want_text(get("reasoning") or ""),
        thought_calls=origin.thought_calls or (),
        faults=origin.faults or (),
        status=origin.status or "ok",
        fingerprints=origin.fingerprints,
        decoding=origin.decoding,
        scoring=origin.scoring,
        privacy=None if origin.scores is None else origin.scores.privacy,
        prompt=origin.prompt,
        metadata=origin.metadata,
        span_extractor=origin.span_extractor,
        span_extractor_by=origin.span_extractor_by,
        stop=origin.stop,
        error=origin.error,
        item_sha256=origin.item_sha256,
        used_fixtures_sha256=origin.used_fixtures_sha256,
        offered_tools_sha256=origin.offered_tools_sha256,
        more={} if origin.scores is None else origin.scores.more,
    )


def _meant(key: str) -> str | None:
    """Other programs' lines hold what they like; what a call or an answer hangs on is not lost for
    a letter."""
    return meant_key(key, _NEEDED) if key not in _OURS else None


def messages_of(value: dict[str, Json], number: int) -> RecordedMessages:
    """A conversation; BadLine says what is wrong with it."""
    problems = schema_problems(_validator("recorded_messages"), value)
    if problems:
        raise BadLine(problems)
    tools, metadata = value.get("tools"), value.get("metadata")
    return RecordedMessages(
        line=number,
        sample_id=_name_of(value),
        trial=_whole(value.get("trial") or 0),
        messages=list(map(want_object, want_list(value["messages"]))),
        tools=None if tools is None else list(map(want_object, want_list(tools))),
        metadata=None if metadata is None else want_object(metadata),
    )


def _name_of(value: dict[str, Json]) -> str:
    if value.get("sample_id") in (None, "") and value.get("id") not in (None, ""):
        value = {**value, "sample_id": value["id"]}
    return sample_id_of(value)


def _turns(value: Json, output: str) -> tuple[ByteRange, ...] | None:
    if value is None:
        return None
    size = len(output.encode("utf-8", "surrogatepass"))
    turns = list(map(want_object, want_list(value)))
    ranges = tuple(ByteRange(_whole(turn["start"]), _whole(turn["end"])) for turn in turns)
    for at, (turn, found) in enumerate(zip(turns, ranges, strict=True)):
        if not found.start <= found.end <= size:
            where = f"{turn['start']} to {turn['end']}"
            raise BadLine([f"turns[{at}]: {where} is no range in an answer of {size} bytes"])
    return ranges


def _user_turn(entry: Json) -> UserTurn:
    said = want_object(entry)
    return UserTurn(_whole(said["turn"]), want_text(said["text"]))


def _whole(number: Json) -> int:
    return int(want_number(number))


def _text_of(given: Json) -> str:
    return given if isinstance(given, str) else json.dumps(given)


@cache
def _validator(
    name: Literal["recorded", "recorded_messages"],
) -> jsonschema_rs.Draft202012Validator:
    shipped = files("callmark").joinpath("data", "schemas", "eval_result.schema.json")
    schema = want_object(parse_json(shipped.read_bytes()))
    return jsonschema_rs.Draft202012Validator(
        {"$schema": schema["$schema"], "$ref": f"#/$defs/{name}", "$defs": schema["$defs"]}
    )
