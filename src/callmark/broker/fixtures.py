"""Reads fixture files, strictly: every mistake in them is named by file, line and field."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from callmark.broker.patterns import RULES, MatchError, Pattern, pattern_of
from callmark.calls.normalise import NormalisedCall, normalise
from callmark.calls.registry import Registry
from callmark.core.jsonplaces import line_of, lines_of_entries
from callmark.core.jsontext import Json, NotJson, canonical_json, parse_json, well_formed
from callmark.core.keys import KeySet, did_you_mean, hint, is_own, meant_key
from callmark.errors import BadInput
from callmark.store.jsonl import open_input
from callmark.store.problems import field_path, named

MAX_PROBLEMS = 20
FIELDS = ("name", "key", "result", "sample_id", "seq", "match")
# `callmark fixtures suggest` writes a result with this key: nobody ships a placeholder unseen.
PLACEHOLDER = "_fill_in"

_KEYS = KeySet(
    known=FIELDS,
    synonyms={
        **dict.fromkeys(
            ("arguments", "args", "parameters", "params", "input", "inputs", "kwargs", "query"),
            "key",
        ),
        **dict.fromkeys(
            ("response", "output", "answer", "returns", "returnvalue", "value", "content"), "result"
        ),
        **dict.fromkeys(("tool", "toolname", "function", "functionname"), "name"),
        **dict.fromkeys(("sequence", "step", "order", "number"), "seq"),
        **dict.fromkeys(("id", "sample", "scope"), "sample_id"),
        **dict.fromkeys(("matcher", "matches", "matching", "matchmode"), "match"),
    },
    elsewhere=dict.fromkeys(RULES, "match, below the argument that it is for"),
)
_BOM = b"\xef\xbb\xbf"
_encode = msgspec.json.Encoder().encode


class Fixture(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One recorded answer. `name` and `key_json` are normalised; `result` is JSON text, parsed
    anew for every call, so that no caller can change what the next one gets."""

    name: str
    key_json: str
    result: bytes
    digest: bytes  # SHA-256 of the canonical line
    file: str
    line: int
    sample_id: str | None
    seq: int
    match: Literal["exact", "any"] | Pattern

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"


class FixtureFolder(msgspec.Struct, frozen=True):
    """What one folder holds, in the order of files and lines."""

    folder: str
    fixtures: list[Fixture]
    sha256: str
    names: frozenset[str]


class EntryError(ValueError):
    """What is wrong with one field of an entry."""

    def __init__(self, field: str, what: str) -> None:
        super().__init__(f"{field}: {what}")


def load_folder(folder: str | Path, registry: Registry | None) -> FixtureFolder:
    """Every entry of every `*.jsonl` and `*.json` below the folder, or BadInput with up to 20
    problems. Files and folders whose name starts with a dot are left out."""
    reader = _EntryReader(registry)
    fixtures: list[Fixture] = []
    lines: list[bytes] = []
    problems: list[str] = []
    for path in _files_below(Path(folder)):
        file = well_formed(str(path))
        for number, label, value in _entries_of(path):
            try:
                if isinstance(value, NotJson):
                    raise value
                fixture, line = reader.read(value, file, number)
            except (NotJson, EntryError) as error:
                problems.append(f"{file}:{number}: {label}{error}")
                if len(problems) == MAX_PROBLEMS:
                    raise BadInput(problems) from None
                continue
            fixtures.append(fixture)
            lines.append(line)
    if problems:
        raise BadInput(problems)
    names = frozenset(fixture.name for fixture in fixtures)
    return FixtureFolder(str(folder), fixtures, _sha256_of(lines), names)


def _sha256_of(lines: list[bytes]) -> str:
    total = hashlib.sha256()
    separator = b""
    for line in sorted(lines):
        total.update(separator)
        total.update(line)
        separator = b"\n"
    return total.hexdigest()


def _files_below(folder: Path) -> list[Path]:
    if not folder.exists():
        raise BadInput(f"{folder}: no such fixture folder; make it, or name another")
    if not folder.is_dir():
        raise BadInput(f"{folder}: not a folder; fixtures are the .jsonl files below one folder")
    found = sorted(_walk(folder), key=lambda path: path.relative_to(folder).as_posix())
    if not found:
        raise BadInput(f"{folder}: holds no .jsonl or .json file; put at least one fixture there")
    return found


def _walk(folder: Path) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        raise BadInput(f"{error.filename}: cannot be read: {error.strerror}")

    for top, folders, files in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in folders:
            if (path := Path(top, name)).is_symlink():
                what = "a link to a folder; fixtures are files below one folder, so copy it here"
                raise BadInput(f"{path}: {what}")
        for name in files:
            if name.endswith((".jsonl", ".json")) and not name.startswith("."):
                yield Path(top, name)


class _Entry(NamedTuple):
    """`label`: what tells it from others on its line. An entry that is no JSON is its error."""

    line: int
    label: str
    value: Json | NotJson


def _entries_of(path: Path) -> Iterator[_Entry]:
    try:
        with open_input(path) as file:
            if path.suffix == ".json":
                yield from _listed(file.read().removeprefix(_BOM))
            else:
                yield from _by_line(file)
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None


def _by_line(file: Iterable[bytes]) -> Iterator[_Entry]:
    for number, line in enumerate(file, start=1):
        text = (line.removeprefix(_BOM) if number == 1 else line).strip()
        if text:
            yield _Entry(number, "", _parsed(text))


def _listed(data: bytes) -> Iterator[_Entry]:
    value = _parsed(data)
    if isinstance(value, NotJson):
        yield _Entry(value.line, "", value)
    elif isinstance(value, list):
        lines = lines_of_entries(data.decode())
        for at, (line, entry) in enumerate(zip(lines, value, strict=True), start=1):
            yield _Entry(line, f"entry {at}: ", entry)
    else:
        yield _Entry(line_of(data.decode(), ()), "", value)


def _parsed(text: bytes) -> Json | NotJson:
    try:
        return parse_json(text)
    except NotJson as error:
        return error


class _EntryReader:
    """Turns parsed entries into fixtures."""

    def __init__(self, registry: Registry | None) -> None:
        self._registry = registry

    def read(self, entry: Json, file: str, number: int) -> tuple[Fixture, bytes]:
        """The fixture and its canonical line."""
        _check_fields(entry)
        match = _match_of(entry)
        call = self._normalise(_name_of(entry), _key_of(entry, match))
        line = canonical_json(entry).encode()
        fixture = Fixture(
            name=sys.intern(call.name),
            key_json=call.key_json,
            result=_encode(entry["result"]),
            digest=hashlib.sha256(line).digest(),
            file=file,
            line=number,
            sample_id=_sample_id_of(entry),
            seq=_seq_of(entry),
            match=match if isinstance(match, str) else self._pattern(match, entry["key"], call),
        )
        return fixture, line

    def _normalise(self, name: str, key: dict[str, Json]) -> NormalisedCall:
        # A fixture's name that no registry knows is known by standing here.
        call = normalise(name, key, registry=self._registry, known_names=(name,))
        if call is None:
            raise EntryError("key", "nested too deeply")
        return call

    def _pattern(
        self, match: dict[str, Json], given: dict[str, Json], call: NormalisedCall
    ) -> Pattern:
        def normalise_argument(argument: str, value: Json) -> Json:
            return self._normalise(call.name, {argument: value}).key.get(argument)

        self._check_arguments(match, given, call.name)
        try:
            return pattern_of(match, given, call.key, normalise_argument)
        except MatchError as error:
            raise EntryError(error.field, str(error)) from None

    def _check_arguments(self, match: dict[str, Json], given: dict[str, Json], name: str) -> None:
        """A rule for an argument that the tool does not have, but almost."""
        schema = None if self._registry is None else self._registry.parameters(name)
        properties = schema.get("properties") if isinstance(schema, dict) else None
        known = (*given, *(properties if isinstance(properties, dict) else ()))
        for argument in match:
            meant = None if argument in known else meant_key(argument, known)
            if meant is not None:
                raise EntryError(f"match.{named(argument)}", did_you_mean(meant))


def _check_fields(entry: Json) -> None:
    if not isinstance(entry, dict):
        raise NotJson("not an object: an entry is {name, key, result}")
    if not entry.keys() <= _KEYS.names:
        for field in entry:
            if field in _KEYS.names or field.startswith("_"):
                continue
            if _KEYS.slip(field) is not None or not is_own(field):
                what = _KEYS.refusal(field, entry.keys())
                raise EntryError(field_path([field]), f"{what} (a note's name starts with x_ or _)")
    if "result" not in entry:
        raise EntryError("result", "is missing; an answer that is empty is written as null")
    result = entry["result"]
    if isinstance(result, dict) and PLACEHOLDER in result:
        raise EntryError("result", "is still a placeholder: put the tool's answer here")


def _name_of(entry: dict[str, Json]) -> str:
    name = entry.get("name")
    if not isinstance(name, str) or not name.strip():
        missing = "is missing; it is the tool's name, which the file's name does not give"
        raise EntryError("name", "must be the tool's name" if "name" in entry else missing)
    return name


def _match_of(entry: dict[str, Json]) -> Literal["exact", "any"] | dict[str, Json]:
    match = entry.get("match")
    if match is None or match == "exact":
        return "exact"
    if match == "any":
        return "any"
    if not isinstance(match, dict):
        meant = hint(match, ("exact", "any")) if isinstance(match, str) else ""
        what = f'must be "exact", "any" or an object with a rule per argument{meant}'
        raise EntryError("match", what)
    return match


def _key_of(entry: dict[str, Json], match: Literal["exact", "any"] | dict[str, Json]) -> Json:
    key = entry.get("key", {} if match == "any" else None)
    if not isinstance(key, dict):
        what = "must be an object" if "key" in entry else "is missing; it is the call's arguments"
        raise EntryError("key", what)
    return key


def _sample_id_of(entry: dict[str, Json]) -> str | None:
    given = entry.get("sample_id")
    if given is None or (isinstance(given, str) and given):
        return given
    if isinstance(given, int | float) and not isinstance(given, bool):
        return json.dumps(given)  # as a dataset's numeric ids are read
    raise EntryError("sample_id", "must be the id of a sample, or absent")


def _seq_of(entry: dict[str, Json]) -> int:
    """An entry without `seq` is the first of its sequence, which mostly is the whole of it."""
    given = entry.get("seq")
    if given is None:
        return 1
    if not isinstance(given, int) or isinstance(given, bool) or given < 1:
        raise EntryError("seq", "must be 1, 2, …: its place in the order of answers")
    return given
