"""What looks like a call in a format that nobody knows. It cannot be read, but it was tried: a
control is not clean because the format is new."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import NamedTuple

from callmark.calls.attempts import MalformedCall
from callmark.calls.scan import program_edges
from callmark.records.jsontext import Json
from callmark.records.trace import UNPARSED

_REASON = "it looks like a call, but in no known format"


def _any_of(words: str) -> str:
    return "|".join(words.split())


# A name as it may stand in a text; sentence marks at its end are none of it.
_TOKEN = re.compile(r"[^\W\d](?:[\w.-]{0,254}\w)?")
_NAMESPACE = "functions."
_CALL = _any_of(
    "tools? toolcalls? functions? func fn calls? functioncalls? invoke invocations? actions?"
)
_BEFORE_NAME = _any_of(
    "use run exec execute request cmd command api begin start do name id op operation method target"
    " select plugin skill task json xml yaml"
)
_BEFORE_VALUES = _any_of(
    "args? arguments? params? parameters? inputs? kwargs data payload body json values? keys? name"
    " using with set id k v p n"
)
_ANNOUNCERS = _any_of("args? arguments? params? parameters? inputs? kwargs payload")
_TYPES = _any_of(
    "str string strings int integer float number bool boolean list dict array object any optional"
    " none null text date required type"
)
# What stands before a name that begins a call: signs, tags, and words for calling.
_ONLY_MARKS = re.compile(
    r"(?i)(?:<[^<>\n`]{1,80}>|[^\w`]|_"
    rf"|(?<![^\W_])(?:{_CALL}|{_BEFORE_NAME})(?![^\W_]))*+\Z"
)
_OPEN_BRACKET = re.compile(r"[<\[{«⟦⟪【〔〈《][^<>\[\]{}«»⟦⟧⟪⟫【】\n]{0,80}\Z")
_TOKEN_BEFORE = re.compile(r"<[|｜][^<>\n]{1,60}[|｜]>\s?[\"']?\Z")
_LIST_MARKER = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])\s+[*_\"']*\Z")
# Between the name and its arguments: tags, signs, a key that leads to an object, and the words that
# announce arguments.
_GAP = re.compile(
    r"(?i)</?[^<>\s=/]{1,80}>|[\"'][\w-]{1,40}[\"']\s*:\s*(?=\{)|[^\w{\n]|\n(?!\s*\n)|_"
    rf"|(?P<announcer>(?<=[^\w\s,(])(?:{_ANNOUNCERS})(?=[ \t]))"
    rf"|(?<![^\W_])(?:{_CALL}|{_BEFORE_VALUES})(?![^\W_])"
    rf"|(?<!\w)[^\W_]{{1,40}}[_-](?:{_ANNOUNCERS})(?!\w)"
)
_TAG = re.compile(r"""<[^<>\n/][^<>\n]{0,200}>(?=[\w"'“«{\[(-])""")
_WORD_IN_TAG = re.compile(r"[^\W\d][\w-]{0,63}")
# What is given on a command line.
_FLAG = re.compile(r"--?([^\W\d][\w-]{0,63})[ =]\S")
_SENTENCE_END = re.compile(r"(?:[^\W\d_]{2}|[)\]\"'”’])[.!?…]+[ \t]+")
_MOST_GAPS = 60
_ANNOUNCES = re.compile(rf"(?i)(?:{_CALL}|{_BEFORE_VALUES}|type|description)")
_HELD = re.compile(r"""(?i)["'](?:arg|param|input)\w*["']\s*:""")
_OBJECT = re.compile(r"""\{{1,2}\s*["']?([^\W\d][\w.-]{0,63})["']?\s*[:=]""")
_PAIR = re.compile(
    r"""([^\W\d][\w-]{0,63})["'`]?"""
    r"""(?:[ \t]*(?:=>|->|:=|[:=~→])|[^\w\s,.;!?)('-]{1,3}|[ \t](?=["'“«]))\s*"""
    rf"(?!\W{{0,3}}(?i:{_TYPES})\b)(?:\w|[\"'“«⟨\[{{(<$€+-])"
)
# What a tool takes, not what it is given.
_SPEC = re.compile(
    r'"(?:inputSchema|input_schema|properties)"\s*:\s*\{'
    r'|"(?:parameters|arguments|args)"\s*:\s*\{\s*"'
    rf'(?:type"\s*:\s*"object|\$schema"|[^"\n]{{1,64}}"\s*:\s*(?:"(?i:{_TYPES})\b|\{{\s*"(?:type|description)"))'
)
# JSON that says how something went speaks of calls that were made.
_REPORTS = re.compile(r'"(status|results?|outcome|success)"\s*:')
# A name that is the value of such a key says what happened; one in such an element is on a page.
_SHOWN = re.compile(
    r'(?i:"event(?:_?(?:name|type))?"\s*:\s*")\Z'
    r"|<(?:b|i|em|strong|code|li|td|th|dt|dd|p|h[1-6]|span|summary|kbd|var)(?:\s[^<>]{0,100})?>\Z"
)
_QUOTES = " \t\"'“‘*_"
# `get_weather <city> [<days>]` says how something is used.
_PLACEHOLDER = re.compile(r"[\w-]{1,64}>[ \t]+[\[<]")
_PROSE = re.compile(r"[^\n]{0,200}?[^\W\d_]{2,}[ \t]+[^\W\d_]{2,}")
_TABLE_ROW = re.compile(r"\s*\|[^\n|]*\|[^\n|]*\|")
# A tag or token of which one part is a word for calling, and what follows it in a call.
_MARK = re.compile(
    rf"(?i)<[|｜]?(?:[^\W_]{{1,40}}[_:.|-]){{0,6}}?(?:{_CALL})(?:[_:.|｜-][\w:.|｜-]{{0,60}})?"
    r"(?:\s[^<>\n]{0,120})?>"
    rf"|(?:\[\[?|\{{\{{|⟦|⟪|«|@@|##|%%|::)\s?(?:\w{{1,40}}[_:. -])?(?:{_CALL})"
    r"(?:[_:. -]\w{1,40}){0,3}\s?(?:\]\]?|\}\}|⟧|⟫|»|@@|##|%%|::)"
)
_CONTENT = re.compile(
    r"""\s*+["'`]?([^\W\d][\w.:/-]{1,255}+)(?:["'`]?\s*+(?:[({]|[:=]\s*+[{("'])|(?=([<|])))"""
    r"""|\s*+[{\[]\s*+["']|\s*+(?P<tag><[\w:.-]{1,40}+\s++(?:name|key)=["']?+\w)"""
)
_LINK = re.compile(r"[^\]\n]{0,200}\]\((?:https?:|www\.|mailto:|[./#])")
_WINDOW = 200
_MOST_LINES = 40

SchemaOf = Callable[[str], Json]
Offers = Callable[[str], bool]


class UnparsedCall(NamedTuple):
    """Where it stands in the text, and the attempt."""

    start: int
    end: int
    attempt: MalformedCall


def find_unparsed(
    text: str, offers: Offers, schema_of: SchemaOf, *, named: bool
) -> list[UnparsedCall]:
    """Every place that looks like a call, from left to right. `named` false: nobody said which
    tools there are, so that only marks tell."""
    marks = [_by_mark(text, mark, offers if named else None) for mark in _MARK.finditer(text)]
    places = [place for place in marks if place is not None]
    if named:
        places += _by_name(text, offers, schema_of)
    found: list[UnparsedCall] = []
    end = 0
    for start, at, name in sorted(places, key=lambda place: (place[0], place[1])):
        if start < end:
            if found and found[-1].attempt.name is None and name is not None:
                named_now = MalformedCall(name, _REASON, found[-1].attempt.raw, UNPARSED)
                found[-1] = found[-1]._replace(attempt=named_now)
            continue
        end = _extent(text, at)
        attempt = MalformedCall(name, _REASON, text[start:end].strip(), UNPARSED)
        found.append(UnparsedCall(start, end, attempt))
    edges = program_edges(text) if found else []
    return [one for one in found if bisect_right(edges, one.start) % 2 == 0]


_Place = tuple[int, int, str | None]  # where it begins, where it becomes a call, its tool


def _by_mark(text: str, mark: re.Match[str], offers: Offers | None) -> _Place | None:
    """A mark of calling counts with something behind it that looks like a call's content. A word
    between two tags is a call only of an offered tool, or where the tag itself speaks of calls."""
    line = max(text.rfind("\n", max(0, mark.start() - _WINDOW), mark.start()) + 1, 0)
    if text.count("`", max(line, mark.start() - _WINDOW), mark.start()) % 2:
        return None  # spoken of
    if _ANSWERS.search(mark.group()):
        return None  # what a tool said
    content = _CONTENT.match(text, mark.end())
    if content is None:
        return None
    if content["tag"] and not _NAMES_A_CALL.search(mark.group()):
        return None
    name = content[1]
    is_offered = name is not None and offers is not None and offers(name)
    if content[2] and not is_offered and not _SPEAKS_OF_CALLS.search(mark.group()):
        return None
    return mark.start(), mark.end(), name if is_offered else None


_ANSWERS = re.compile(r"(?i)error|result|response|output|return|answer")
_NAMES_A_CALL = re.compile(r"(?i)invo[ck]\w*\s+name=")
_SPEAKS_OF_CALLS = re.compile(r"(?i)call|invo[ck]|\A<[|｜]")


def _by_name(text: str, offers: Offers, schema_of: SchemaOf) -> Iterator[_Place]:
    """An offered tool's name with arguments behind it, and no sentence around it."""
    for token in _TOKEN.finditer(text):
        name, at = token.group().removeprefix(_NAMESPACE), token.start()
        if not offers(name):
            continue
        line = max(text.rfind("\n", max(0, at - _WINDOW), at) + 1, at - _WINDOW, 0)
        before = text[line:at]
        if before.count("`") % 2 or _TABLE_ROW.match(text, line) or _SHOWN.search(before):
            continue  # spoken of
        begin = _sentence_begin(text, line, at)
        before = text[begin:at]
        keys = _keys(schema_of(name), offers)
        bracket = _OPEN_BRACKET.search(before)
        if bracket and bracket.group().startswith("[") and _LINK.match(text, token.end()):
            continue
        if _TOKEN_BEFORE.search(before):
            yield begin, token.end(), name
        elif _ONLY_MARKS.match(before) and not _LIST_MARKER.match(before):
            is_bare = not before.strip(_QUOTES)
            if _has_arguments(text, token.end(), keys, is_bare=is_bare):
                yield begin, token.end(), name
        elif bracket:
            is_shown = keys.known is None and _is_told(text, begin + bracket.start())
            if not is_shown and _has_arguments(text, token.end(), keys):
                yield begin + bracket.start(), token.end(), name
        elif _has_object_only(text, token.end(), keys) or _comes_after(before, keys):
            yield (begin if before[:1] in "{[<" else at), token.end(), name


def _sentence_begin(text: str, line: int, at: int) -> int:
    """A call may begin behind a sentence on the same line."""
    begin = line
    for end in _SENTENCE_END.finditer(text, line, at):
        begin = end.end()
    return begin


def _is_told(text: str, start: int) -> bool:
    """Whether a bracket that begins here stands inside a sentence that goes on behind it."""
    end = text.find("\n", start, start + 2 * _WINDOW)
    line = text[start : end if end >= 0 else start + 2 * _WINDOW]
    return _PROSE.match(line, max(map(line.rfind, "}])>⟧⟫»】〕〉》")) + 1) is not None


def _comes_after(before: str, keys: _Keys) -> bool:
    """Arguments before the name, in one bracket with it."""
    if before.lstrip()[:1] not in ("{", "[", "<", "("):
        return False
    if keys.known is None and not _HELD.search(before):
        return False
    return any(keys.fit(pair[1]) for pair in _PAIR.finditer(before))


class _Keys(NamedTuple):
    """The names of a tool's parameters, where they are known."""

    known: frozenset[str] | None
    offers: Offers

    def know(self, key: str) -> bool:
        return self.known is not None and key.casefold() in self.known

    def fit(self, key: str) -> bool:
        if self.known is None:
            return not (_ANNOUNCES.fullmatch(key) or self.offers(key))
        return self.know(key)


def _keys(schema: Json, offers: Offers) -> _Keys:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    known = frozenset(map(str.casefold, properties)) if isinstance(properties, dict) else None
    return _Keys(known, offers)


def _has_arguments(text: str, position: int, keys: _Keys, *, is_bare: bool = False) -> bool:
    """Whether arguments follow the name, with nothing in between but what announces them. A name
    that begins its line without any mark (`is_bare`) may also head a list or begin a sentence."""
    place, is_announced = position, False
    for _ in range(_MOST_GAPS):
        given = _OBJECT.match(text, place) or _PAIR.match(text, place)
        if given is not None and keys.fit(given[1]):
            if is_bare and _SAID.match(text, given.end()):
                return False
            if text[place - 1] == "<" and _PLACEHOLDER.match(text, place):
                return False
            return _is_given(text, position, keys)
        if not is_bare and (
            _is_flag(text, place, keys)
            or _is_tag(text, place, keys)
            or (is_announced and _fits_line(text, place, keys))
            or (keys.known and text[place - 1] in "\n>" and _fits_line(text, place, keys))
        ):
            return True
        gap = None if is_bare and _LISTED.match(text, place) else _GAP.match(text, place)
        if gap is None:
            return False
        is_announced = bool(gap["announcer"]) or (is_announced and gap[0].isspace())
        place = gap.end()
    return False


def _is_given(text: str, position: int, keys: _Keys) -> bool:
    """Whether what stands around it neither says what a tool takes nor how it went."""
    around = max(0, position - 2 * _WINDOW), position + 2 * _WINDOW
    reported = (told[1] for told in _REPORTS.finditer(text, *around))
    return not _SPEC.search(text, *around) and all(map(keys.know, reported))


def _is_flag(text: str, place: int, keys: _Keys) -> bool:
    given = _FLAG.match(text, place)
    return given is not None and keys.fit(given[1])


def _is_tag(text: str, place: int, keys: _Keys) -> bool:
    """A tag that names a parameter, and a value: `<arg name="city">Paris`."""
    tag = _TAG.match(text, place)
    words = _WORD_IN_TAG.findall(tag[0]) if tag else ()
    return any(map(keys.know, words)) and _is_given(text, place, keys)


def _fits_line(text: str, place: int, keys: _Keys) -> bool:
    """A line of a parameter's name and its value."""
    written = _KEY_LINE.match(text, place)
    return written is not None and keys.fit(written[1])


_KEY_LINE = re.compile(r"([^\W\d][\w-]{0,63})[ \t]+\S")
_LISTED = re.compile(r"\n\s*(?:[-*+•]|\d{1,3}[.)])\s")
# Two words of a sentence on the same line, outside of any quotation or object.
_SAID = re.compile(r"""[^\n"'{}]{0,200}?\b[a-z]{2,}[ \t]+[a-z]{2,}\b""")


def _has_object_only(text: str, position: int, keys: _Keys) -> bool:
    """In a sentence, only an object right behind the name that ends the sentence's line."""
    place = position
    while text[place : place + 1] in (" ", "("):
        place += 1
    given = _OBJECT.match(text, place)
    if given is None or not keys.fit(given[1]):
        return False
    close = text.find("}", place, place + 10 * _WINDOW)
    return close < 0 or not _PROSE.match(text, close)


def _extent(text: str, position: int) -> int:
    """The end of the line on which as many brackets are closed as were opened, and of the lines
    behind it that are no sentences."""
    depth = 0
    for _ in range(_MOST_LINES):
        stop = text.find("\n", position)
        stop = len(text) if stop < 0 else stop
        line = text[position:stop]
        depth += sum(map(line.count, "{[(")) - sum(map(line.count, "}])"))
        following = text[stop + 1 : stop + 1 + _WINDOW].split("\n", 1)[0]
        if stop >= len(text) or (depth <= 0 and _is_said(following)):
            return stop
        position = stop + 1
    return position


def _is_said(line: str) -> bool:
    """Whether a line is none of a call: empty, or a sentence without a sign before it."""
    return not line.strip() or (_PROSE.match(line) is not None and not _SIGN.match(line))


_SIGN = re.compile(r"""\s*[^\w\s"'“(*-]\w""")
