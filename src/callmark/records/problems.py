"""What a validator says, as one short sentence with the field in front: `field: what is wrong`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

import msgspec

from callmark.errors import BadInput
from callmark.records.jsontext import Json, canonical_json

OWN = "x_"  # a key that starts so is its owner's, and nobody asks what it means
LISTED = 12  # of more known ones a list helps nobody
LONGEST = 80  # a longer one is no slip of the pen
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W_]+")


class KeySet(msgspec.Struct, frozen=True, kw_only=True):
    """The keys that one kind of object knows. `synonyms`: what others call them, by folded name;
    `elsewhere`: keys that are known in another place, and in which; `silent`: known words that are
    so short that half the language is one letter away from them."""

    known: tuple[str, ...]
    synonyms: Mapping[str, str] = {}
    elsewhere: Mapping[str, str] = {}
    silent: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()  # `known`, to ask quickly

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "names", frozenset(self.known))

    def slip(self, key: str, beside: Collection[str] = ()) -> str | None:
        """What is wrong with an unknown key; None: nothing speaks for a mistake. `beside`: the
        keys of its object, for a synonym is no slip where the word itself stands too."""
        near = tuple(name for name in self.known if name not in self.silent)
        if is_own(key):
            found = meant_key(key, tuple(name for name in near if name.startswith("x-")))
            return None if found is None else did_you_mean(found)
        place = self.elsewhere.get(key)
        if place is not None:
            return f"does nothing here; it belongs in {place}"
        found = meant_key(key, near)
        if found is None:
            found = self.synonyms.get(fold_key(key))
            found = None if found in beside else found
        if found is not None:
            return did_you_mean(found)
        # What is misplaced and misspelt is told by longer words only.
        others = tuple(name for name in self.elsewhere if len(name) > 5)
        found = meant_key(key, others)
        if found is None:
            return None
        return f"does nothing here; did you mean {found} in {self.elsewhere[found]}?"

    def refusal(self, key: str, beside: Collection[str] = ()) -> str:
        """For an object that may hold no other keys: what was meant, or what there is."""
        slip = self.slip(key, beside)
        if slip is not None:
            return slip
        found = related_key(key, self.known)
        if found is not None:
            return did_you_mean(found)
        known = f"; known: {', '.join(self.known)}" if len(self.known) <= LISTED else ""
        return f"unknown key{known}"


def did_you_mean(key: str) -> str:
    return f"unknown key; did you mean {key}?"


def hint(word: str, known: Iterable[str]) -> str:
    """`; did you mean X?`, or nothing: for words that are refused with a list of the right ones."""
    names = tuple(known)
    found = meant_key(word, names) or related_key(word, names)
    return "" if found is None else f"; did you mean {found}?"


def is_own(key: str) -> bool:
    return key.startswith((OWN, "x-"))


@lru_cache(4096)
def meant_key(key: str, known: tuple[str, ...]) -> str | None:
    """The known key within two edits (one, where either has up to five letters), whatever its
    style: `callSequence`, `call-sequences` and `sequence_call` are all `call_sequence`."""
    if len(key) > LONGEST or key in known:
        return None
    folded, words = fold_key(key), sorted(_words(key))
    best: tuple[int, str] | None = None
    for name in known:
        other = fold_key(name)
        if folded == other or words == sorted(_words(name)):
            return name
        limit = 1 if min(len(folded), len(other)) <= 5 else 2
        limit = limit if len(other) > 2 else 0
        edits = edits_between(folded, other, limit)
        if edits is not None and (best is None or edits < best[0]):
            best = edits, name
    return None if best is None else best[1]


def related_key(key: str, known: Sequence[str]) -> str | None:
    """The shortest known key that holds the word or all its parts, or stands in it: `call_f1` of
    `call_f1_macro`, `max_tokens` of `max_new_tokens`. Only a guess: nothing is refused for it."""
    folded, words = fold_key(key), set(_words(key))
    if not 4 <= len(folded) <= LONGEST:
        return None
    related = [
        name
        for name in known
        if len(other := fold_key(name)) >= 4
        and (folded in other or other in folded or words <= set(_words(name)))
    ]
    return min(related, key=len, default=None)


def fold_key(key: str) -> str:
    """Letters and digits without case: what a key is, whatever joins its words."""
    return "".join(_words(key[: LONGEST + 1]))


def _words(key: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(key)]


def edits_between(one: str, other: str, most: int) -> int | None:
    """How many letters are wrong, missing, too many or swapped with their neighbour; None: more
    than `most`."""
    if abs(len(one) - len(other)) > most:
        return None
    before, row = list[int](), list(range(len(other) + 1))
    for at, letter in enumerate(one, start=1):
        two_before, before, row = before, row, [at]
        for to, wanted in enumerate(other, start=1):
            cost = min(row[to - 1] + 1, before[to] + 1, before[to - 1] + (letter != wanted))
            if at > 1 and to > 1 and letter == other[to - 2] and one[at - 2] == wanted:
                cost = min(cost, two_before[to - 2] + 1)
            row.append(cost)
        if min(row) > most and min(before) > most:
            return None
    return row[-1] if row[-1] <= most else None


if TYPE_CHECKING:
    import jsonschema_rs

MAX_PROBLEMS = 20
_SHOWN = 60
_PLAIN_KEY = re.compile(r"[\w.-]{1,60}")
_WORDS = {  # in the order in which a message names them
    "string": "a string",
    "array": "a list",
    "object": "an object",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
}  # "null" stands for absent: it is never what a person is told to write
_MSGSPEC_WORDS = {
    "str": "a string",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_BOUNDS = {">=": "of at least", "<=": "of at most", ">": "above", "<": "below"}


class Problems:
    """Collects `where: what is wrong`. All are counted; as many are kept as a person will read."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.count = 0

    def add(self, where: str, what: str | Iterable[str]) -> None:
        """`where` "": the sentences say it themselves."""
        for sentence in (what,) if isinstance(what, str) else what:
            self.count += 1
            if self.count <= MAX_PROBLEMS:
                self.found.append(f"{where}: {sentence}" if where else sentence)

    @property
    def is_enough(self) -> bool:
        return self.count >= MAX_PROBLEMS

    def raise_if_any(self) -> None:
        if self.found:
            raise BadInput(self.found)


def refuse_problems(where: str, what: Iterable[str]) -> None:
    """Raises if there are any."""
    problems = Problems()
    problems.add(where, what)
    problems.raise_if_any()


def schema_problems(validator: jsonschema_rs.Draft202012Validator, value: Json) -> list[str]:
    """Everything that the schema says against a value, `[]` if nothing."""
    if validator.is_valid(value):
        return []
    return [_schema_problem(error) for error in validator.iter_errors(value)]


def typed_problem(error: msgspec.ValidationError) -> str:
    """A decoding error of a typed record, for example `turns[0].end: must be a whole number`."""
    text, _, path = str(error).partition(" - at `$")
    missing = re.fullmatch(r"Object missing required field `(.+)`", text)
    field = path.rstrip("`").removeprefix(".")
    if missing:
        return f"{f'{field}.' if field else ''}{missing[1]}: is missing"
    return _join(field, _plain(text))


def show_value(value: Json) -> str:
    """A value as a message shows it: JSON, cut if long."""
    try:
        text = canonical_json(value)
    except (ValueError, TypeError, RecursionError):
        text = f"a {type(value).__name__}"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def join_or(words: Sequence[str]) -> str:
    """`a, b or c`."""
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def word_problem(options: Sequence[str], value: Json) -> str:
    """What is wrong with a value where only certain words are right; "" if nothing."""
    if not options or value in options:
        return ""
    meant = hint(value, options) if isinstance(value, str) else ""
    return f"must be {join_or(options)}, not {show_value(value)}{meant}"


def words_of(kind: Any) -> tuple[str, ...]:
    """The words that a type allows, if it allows nothing else but null."""
    if get_origin(kind) is Literal:
        options = get_args(kind)
        return options if all(isinstance(option, str) for option in options) else ()
    parts = [part for part in get_args(kind) if part is not type(None)]
    return words_of(parts[0]) if len(parts) == 1 and len(get_args(kind)) == 2 else ()


def _schema_problem(error: jsonschema_rs.ValidationError) -> str:
    field = field_path(error.instance_path)
    kind = error.kind.as_dict()
    match error.kind.name:
        case "required":
            return f"{field_path([*error.instance_path, kind['property']])}: is missing"
        case "type":
            wanted = [word for name, word in _WORDS.items() if name in kind["types"]]
            return _join(field, f"must be {join_or(wanted)}, not {show_value(error.instance)}")
        case "enum":
            options = [str(option) for option in kind["options"] if option is not None]
            return _join(field, word_problem(options, error.instance))
        case "minLength" | "minItems":
            return _join(field, "must not be empty")
        case "minimum":
            return _join(
                field, f"must be at least {kind['limit']}, not {show_value(error.instance)}"
            )
        case "maximum":
            return _join(
                field, f"must be at most {kind['limit']}, not {show_value(error.instance)}"
            )
        case "additionalProperties":
            return _join(
                field, f"unknown field {join_or([quote_name(name) for name in kind['unexpected']])}"
            )
    text = error.message
    return _join(field, text if len(text) <= 160 else f"{text[:80]} … {text[-79:]}")


def field_path(path: Sequence[str | int]) -> str:
    """`metadata.call_sequence[0].name`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{quote_name(part)}" for part in path)
    return "".join(parts).removeprefix(".")


def quote_name(name: str) -> str:
    """A name as it is, or quoted where it could be taken for something else."""
    return name if _PLAIN_KEY.fullmatch(name) else show_value(name)


def _join(field: str, what: str) -> str:
    sentence = f"{field}: {what}" if field else what
    return " ".join(sentence.splitlines())  # one problem, one line, whatever it quotes


def _plain(text: str) -> str:
    if got := re.fullmatch(r"Expected (.+), got `(.+)`", text):
        wanted = [name for name in re.findall(r"\w+", got[1]) if name in _MSGSPEC_WORDS]
        names = [_MSGSPEC_WORDS[name] for name in wanted if name != "null"] or [got[1]]
        return f"must be {join_or(names)}, not {_MSGSPEC_WORDS.get(got[2], got[2])}"
    if bound := re.fullmatch(r"Expected `(\w+)` (>=|<=|>|<) (\S+)", text):
        what = _MSGSPEC_WORDS.get(bound[1], bound[1])
        return f"must be {what} {_BOUNDS[bound[2]]} {bound[3]}"
    return text[:1].lower() + text[1:].replace("`", "")
