"""Reads fixture files, strictly: every mistake in them is named by file, line and field."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple, TypeGuard, assert_never

import msgspec

from callmark.calls.registry import NormalisedCall, Registry, normalise
from callmark.errors import BadInput
from callmark.records.jsontext import (
    Json,
    NotJson,
    canonical_json,
    line_of,
    lines_of_entries,
    parse_json,
    want_object,
    want_text,
    well_formed,
)
from callmark.records.problems import (
    KeySet,
    Problems,
    did_you_mean,
    field_path,
    hint,
    is_own,
    meant_key,
    quote_name,
)
from callmark.records.samples import compile_linear
from callmark.store.files import open_input

MAX_TEXT = 100_000  # characters of a value; a longer one fits no expression
NO_NAME = "(no name)"  # the tool of a call that names none

# What normalisation makes of one value of one argument; None: it drops the argument.
NormaliseArgument = Callable[[str, Json], Json]


class MatchError(ValueError):
    """A rule that cannot be used. `field` is its place below the entry."""

    def __init__(self, field: str, what: str) -> None:
        self.field = field
        super().__init__(what)


class Ignore(msgspec.Struct, frozen=True):
    """Any value, and none at all."""


class OneOf(msgspec.Struct, frozen=True):
    """One of these values (canonical JSON). `null` among them: the argument may be absent."""

    values: tuple[str, ...]


class Regex(msgspec.Struct, frozen=True):
    """The whole normalised string, from its first character to its last. The engine's time grows
    with the text and with the expression, and with nothing else; both are bounded."""

    pattern: str
    fullmatch: Callable[[bytes], object]


class Contains(msgspec.Struct, frozen=True):
    text: str


class Near(msgspec.Struct, frozen=True):
    """A number no further than `tolerance` from the one in the entry's key."""

    target: Decimal
    tolerance: Decimal


Rule = Ignore | OneOf | Regex | Contains | Near


class Pattern(msgspec.Struct, frozen=True):
    """`rules` per argument, sorted; `fixed` is the rest of the key, which must be equal.
    `identity` is equal for two entries that fit the same calls by the same words."""

    rules: tuple[tuple[str, Rule], ...]
    fixed: str
    identity: str

    @property
    def arguments(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.rules)

    def fits(self, key: Mapping[str, Json]) -> bool:
        """Whether the ruled arguments of a normalised key fit; `fixed` is compared elsewhere."""
        return all(rule_fits(rule, key.get(name)) for name, rule in self.rules)


def rule_fits(rule: Rule, value: Json) -> bool:
    """`value` None: the argument is absent (normalised keys hold no null)."""
    match rule:
        case Ignore():
            return True
        case OneOf(values=values):
            return canonical_json(value) in values
        case Regex(fullmatch=fullmatch):
            if not isinstance(value, str) or len(value) > MAX_TEXT:
                return False
            return fullmatch(value.encode("utf-8", "surrogatepass")) is not None
        case Contains(text=text):
            return isinstance(value, str) and text in value
        case Near(target=target, tolerance=tolerance):
            return _is_number(value) and abs(_decimal(value) - target) <= tolerance
        case _:
            assert_never(rule)


class _Argument(msgspec.Struct, frozen=True):
    """One ruled argument: its value in the entry's key, and what normalisation does to others."""

    in_key: Json
    normalise: Callable[[Json], Json]


def pattern_of(
    match: Mapping[str, Json],
    given: Mapping[str, Json],
    key: Mapping[str, Json],
    normalise: NormaliseArgument,
) -> Pattern:
    """The pattern that an entry's `match` object describes, or MatchError. `given` is the entry's
    key as written, `key` the same normalised."""
    if not match:
        raise MatchError("match", "is empty: name an argument in it, or leave it out")
    rules = tuple((name, _rule_of(name, match[name], key, normalise)) for name in sorted(match))
    for name, rule in rules:
        if given.get(name) is not None and not rule_fits(rule, key.get(name)):
            shown = canonical_json(given[name])
            raise MatchError(f"match.{name}", f"does not fit the entry's own key, {shown}")
    fixed = canonical_json({name: value for name, value in key.items() if name not in match})
    targets = [str(rule.target) for _, rule in rules if isinstance(rule, Near)]
    return Pattern(rules, fixed, canonical_json([fixed, match, targets]))


def _rule_of(name: str, spec: Json, key: Mapping[str, Json], normalise: NormaliseArgument) -> Rule:
    field = f"match.{name}"
    for kind in spec if isinstance(spec, dict) else ():
        if kind not in RULES:
            raise MatchError(f"{field}.{kind}", _RULE_KEYS.refusal(kind))
    if not isinstance(spec, dict) or len(spec) != 1:
        raise MatchError(field, f"must be an object with exactly one of {', '.join(RULES)}")
    ((kind, given),) = spec.items()
    if kind != "ignore" and normalise(name, "x") is None:
        raise MatchError(
            field, "the registry's x-callmark.ignore drops this argument: it never fits"
        )
    try:
        return RULES[kind](given, _Argument(key.get(name), partial(normalise, name)))
    except ValueError as error:
        raise MatchError(f"{field}.{kind}", str(error)) from None


def _ignore(given: Json, argument: _Argument) -> Rule:
    if given is not True:
        raise ValueError("must be true")
    return Ignore()


def _one_of(given: Json, argument: _Argument) -> Rule:
    if not isinstance(given, list) or not given:
        raise ValueError("must be a list with at least one value")
    values = (None if value is None else argument.normalise(value) for value in given)
    return OneOf(tuple(dict.fromkeys(canonical_json(value) for value in values)))


def _regex(given: Json, argument: _Argument) -> Rule:
    if not isinstance(given, str) or not given:
        raise ValueError("must be a regular expression, as a string")
    # The tested value was casefolded if this argument is: capitals in the expression must not
    # shut it out.
    fold = argument.normalise("A") == "a"
    pattern = unicodedata.normalize("NFC", given)
    return Regex(pattern, compile_linear(pattern, fold=fold).fullmatch)


def _contains(given: Json, argument: _Argument) -> Rule:
    text = argument.normalise(given) if isinstance(given, str) else None
    if not isinstance(text, str) or not text:
        raise ValueError("must be a text of at least one character that is no white space")
    return Contains(text)


def _number_tolerance(given: Json, argument: _Argument) -> Rule:
    if not _is_number(given) or given < 0:
        raise ValueError("must be a number, 0 or more")
    if not _is_number(argument.in_key):
        raise ValueError("needs a number to be near to: put one into the entry's key")
    return Near(_decimal(argument.in_key), _decimal(given))


RULES: dict[str, Callable[[Json, _Argument], Rule]] = {
    "ignore": _ignore,
    "one_of": _one_of,
    "regex": _regex,
    "contains": _contains,
    "number_tolerance": _number_tolerance,
}
_RULE_KEYS = KeySet(
    known=tuple(RULES),
    synonyms={
        **dict.fromkeys(("anyof", "in", "enum", "values", "oneofthese"), "one_of"),
        **dict.fromkeys(("re", "regexp", "pattern", "matches"), "regex"),
        **dict.fromkeys(("substring", "includes", "has"), "contains"),
        **dict.fromkeys(("tolerance", "abs", "near", "delta", "within"), "number_tolerance"),
        **dict.fromkeys(("any", "skip", "anything"), "ignore"),
    },
)


def _is_number(value: Json) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _decimal(number: float) -> Decimal:
    # By the digits that stand in the file: 1.1 is as near to 1 as 0.1 says.
    return Decimal(repr(number))


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
    anew for every call, so that no caller can change what the next one gets. `given` is the entry
    without its result where name, key and match are not all that it says."""

    name: str
    key_json: str
    result: bytes
    digest: bytes  # SHA-256 of the canonical line
    file: str
    line: int
    sample_id: str | None
    seq: int
    match: Literal["exact", "any"] | Pattern
    given: bytes | None = None

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"


def given_name(fixture: Fixture) -> str:
    """The tool's name as the entry has it."""
    if fixture.given is None:
        return fixture.name
    return want_text(want_object(parse_json(fixture.given))["name"])


def read_by(fixtures: Iterable[Fixture], registry: Registry) -> list[Fixture]:
    """Fixtures as they are by other tools: those that one sample brings along."""
    reader = _EntryReader(registry)
    return [reader.read_again(fixture) for fixture in fixtures]


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
    problems = Problems()
    for path in _files_below(Path(folder)):
        file = well_formed(str(path))
        for number, label, value in _entries_of(path):
            try:
                if isinstance(value, NotJson):
                    raise value
                fixture, line = reader.read(value, file, number)
            except (NotJson, EntryError) as error:
                problems.add(f"{file}:{number}", f"{label}{error}")
                if problems.is_enough:
                    raise BadInput(problems.found) from None
                continue
            fixtures.append(fixture)
            lines.append(line)
    problems.raise_if_any()
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
        raise BadInput(f"{folder}: has no .jsonl or .json file; put at least one fixture there")
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
                yield from _list(file.read().removeprefix(_BOM))
            else:
                yield from _by_line(file)
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None


def _by_line(file: Iterable[bytes]) -> Iterator[_Entry]:
    for number, line in enumerate(file, start=1):
        text = (line.removeprefix(_BOM) if number == 1 else line).strip()
        if text:
            yield _Entry(number, "", _parse(text))


def _list(data: bytes) -> Iterator[_Entry]:
    value = _parse(data)
    if isinstance(value, NotJson):
        yield _Entry(value.line, "", value)
    elif isinstance(value, list):
        lines = lines_of_entries(data.decode())
        for at, (line, entry) in enumerate(zip(lines, value, strict=True), start=1):
            yield _Entry(line, f"entry {at}: ", entry)
    else:
        yield _Entry(line_of(data.decode(), ()), "", value)


def _parse(text: bytes) -> Json | NotJson:
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
        entry = _check_fields(entry)
        match = _match_of(entry)
        key = _key_of(entry, match)
        name = _name_of(entry)
        call = self._normalise(name, key)
        is_plain = isinstance(match, str) and name == call.name and key == call.key
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
            match=match if isinstance(match, str) else self._pattern(match, key, call),
            given=None if is_plain else _encode({"name": name, "key": key, "match": match}),
        )
        return fixture, line

    def read_again(self, fixture: Fixture) -> Fixture:
        """The same entry by these tools, which need not be those that it was read by."""
        match = fixture.match
        given: dict[str, Json] = {"key": parse_json(fixture.key_json)}
        if fixture.given is not None:
            given = want_object(parse_json(fixture.given))
        key = want_object(given["key"])
        try:
            call = self._normalise(given_name(fixture), key)
            if isinstance(match, Pattern):
                match = self._pattern(want_object(given["match"]), key, call)
        except EntryError as error:
            raise BadInput(f"{fixture.place}: {error}") from None
        return msgspec.structs.replace(fixture, name=call.name, key_json=call.key_json, match=match)

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
                raise EntryError(f"match.{quote_name(argument)}", did_you_mean(meant))


def _check_fields(entry: Json) -> dict[str, Json]:
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
    return entry


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


def _key_of(
    entry: dict[str, Json], match: Literal["exact", "any"] | dict[str, Json]
) -> dict[str, Json]:
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
