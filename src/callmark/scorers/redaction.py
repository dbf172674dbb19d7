"""Results with personal data replaced by `[email]`, `[card]` and the like.

Everything that a person or a model wrote is replaced; names, hashes and ids are not: a redacted
line keeps its `sample_id` (also the one in `metadata`) and `call_id`, or nothing could be joined
to it. Scores keep every number; their offsets point into the redacted text."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from callmark.records.jsontext import Json, digest, want_object, want_texts
from callmark.records.results import (
    ByteRange,
    CallDifferences,
    Match,
    PrivacyFinding,
    PrivacyScore,
    Result,
    Scores,
    SpanScore,
    Statement,
    ValueMark,
)
from callmark.records.samples import expectation_of
from callmark.records.statements import quote_said
from callmark.records.trace import RepairedCall, TraceEntry
from callmark.scorers.pii import KINDS, PiiHit, find_pii
from callmark.scorers.pii_phones import byte_length
from callmark.scorers.privacy import number_text

_PLACEHOLDERS = re.compile(rf"\[(?:{'|'.join(KINDS)})\](?: \d+)?")
_Marked = TypeVar("_Marked", SpanScore, Match, ValueMark, PrivacyFinding, ByteRange, Statement)


class Edit(msgspec.Struct, frozen=True):
    """Bytes `start` to `end` of the old text are bytes `new_start` to `new_end` of the new one."""

    start: int
    end: int
    new_start: int
    new_end: int


class Redacted(msgspec.Struct, frozen=True):
    """A text without its personal data, and where its bytes went. `passes` holds the edits of
    each pass, sorted; `found` what was replaced, by what."""

    text: str
    passes: tuple[tuple[Edit, ...], ...] = ()
    found: tuple[tuple[str, str], ...] = ()

    def start_of(self, offset: int) -> int:
        """The new place of a byte offset; one inside a replaced value moves to its start."""
        for edits in self.passes:
            offset = _move(offset, edits, to_end=False)
        return offset

    def end_of(self, offset: int) -> int:
        """The same; one inside a replaced value moves to its end."""
        for edits in self.passes:
            offset = _move(offset, edits, to_end=True)
        return offset

    def moved(self, marked: _Marked) -> _Marked:
        return replace(marked, start=self.start_of(marked.start), end=self.end_of(marked.end))


def redact_pii(text: str) -> str:
    """Take personal data out of a text.

    Args:
        text: any text.

    Returns:
        The text with every finding of every severity replaced by its kind in brackets.

    Raises:
        TypeError: the text is none.

    >>> import callmark
    >>> callmark.redact_pii("Write to jane.doe@corp.io")
    'Write to [email]'
    """
    return redact(text).text


def redact(text: str, *, locale: str | None = None, label: str = "") -> Redacted:
    """Until nothing is found: what is left beside a replaced value can be one in its turn."""
    passes: list[tuple[Edit, ...]] = []
    found: list[tuple[str, str]] = []
    while hits := find_pii(text, locale=locale, label=label):
        found += [(text[hit.start : hit.end], f"[{hit.kind}]") for hit in hits]
        text, edits = _replace(text, hits)
        passes.append(edits)
    return Redacted(text, tuple(passes), tuple(found))


def redact_json(value: Json, *, locale: str | None = None) -> Json:
    """A JSON value with personal data replaced in its strings, keys and long numbers."""
    return _Cleaner(locale).json(value)


def _replace(text: str, hits: tuple[PiiHit, ...]) -> tuple[str, tuple[Edit, ...]]:
    pieces: list[str] = []
    edits: list[Edit] = []
    position = old = new = 0
    for hit in hits:
        kept, placeholder = text[position : hit.start], f"[{hit.kind}]"
        pieces += [kept, placeholder]
        start, new_start = old + byte_length(kept), new + byte_length(kept)
        old, new = start + byte_length(text[hit.start : hit.end]), new_start + len(placeholder)
        edits.append(Edit(start, old, new_start, new))
        position = hit.end
    return "".join([*pieces, text[position:]]), tuple(edits)


def _name_for(group: Json) -> str:
    """Letters only, so that no part of the digest can be read as a number of some kind."""
    return "group-" + digest(group)[:16].translate(str.maketrans("0123456789", "ghijklmnop"))


def _slice(text: bytes, one: Statement) -> str:
    return text[one.start : one.end].decode("utf-8", "replace")


def _label_of(path: str) -> str:
    """The key that a leaf stands under; the entries of a list stand under the list's."""
    keys = [key for key in path.split("/")[1:] if not key.isdecimal()]
    return keys[-1].replace("~1", "/").replace("~0", "~") if keys else ""


def _move(offset: int, edits: tuple[Edit, ...], *, to_end: bool) -> int:
    index = bisect_right(edits, offset, key=lambda edit: edit.start) - 1
    if index < 0:
        return offset
    edit = edits[index]
    if offset >= edit.end:
        return offset - edit.end + edit.new_end
    return edit.new_end if to_end and offset > edit.start else edit.new_start


# --- whole results ------------------------------------------------------------------------------


def redact_result(result: Result) -> Result:
    """The result as `--redact-pii` writes it."""
    cleaner = _Cleaner(expectation_of(result.metadata).locale)
    output = cleaner.redact(result.model_output)
    turns = result.turns
    trace = tuple(cleaner.entry(entry) for entry in result.tool_trace)
    thought = result.thought_calls
    if thought is not msgspec.UNSET:
        thought = tuple(
            replace(
                one,
                raw=cleaner.text(one.raw),
                arguments=one.arguments and want_object(cleaner.json(one.arguments)),
            )
            for one in thought
        )
    return replace(
        result,
        prompt=cleaner.json(result.prompt),
        metadata=cleaner.metadata(result.metadata),
        said=tuple(replace(said, text=cleaner.text(said.text)) for said in result.said),
        model_output=output.text,
        turns=None if turns is None else tuple(output.moved(turn) for turn in turns),
        reasoning=cleaner.text(result.reasoning),
        thought_calls=thought,
        tool_trace=trace,
        # Last: the sentences of statements repeat what the other texts say.
        scores=None
        if result.scores is None
        else cleaner.scores(result.scores, result.model_output, output),
        error=cleaner.optional(result.error),
        scoring=replace(result.scoring, redacted=True),
    )


def without_placeholders(value: Json) -> Json:
    """A JSON value without what redaction put there: two replaced addresses are not equal."""
    if isinstance(value, str):
        return _PLACEHOLDERS.sub(" ", value)
    if isinstance(value, list):
        return [without_placeholders(entry) for entry in value]
    if isinstance(value, dict):
        return {key: without_placeholders(entry) for key, entry in value.items()}
    return value


_WORD_START = re.compile(r"(?<!\w)\w")


class _Known:
    """What was personal where it stood: a number that only its key or the words beside it gave
    away is personal without them too."""

    def __init__(self) -> None:
        self._by_length: dict[int, dict[str, str]] = {}

    def add(self, found: Iterable[tuple[str, str]]) -> None:
        for original, placeholder in found:
            word = _WORD_START.search(original)
            if word is not None:
                text = original[word.start() :]
                self._by_length.setdefault(len(text), {})[text] = placeholder

    def replace(self, text: str) -> str:
        """The longest first. As many look-ups for each word as there are lengths: few."""
        if not self._by_length:
            return text
        lengths = sorted(self._by_length, reverse=True)
        pieces: list[str] = []
        place = 0
        for word in _WORD_START.finditer(text):
            start = word.start()
            for length in lengths if start >= place else ():
                end = start + length
                placeholder = self._by_length[length].get(text[start:end])
                if placeholder is not None and not text[end : end + 1].isalnum():
                    pieces += [text[place:start], placeholder]
                    place = end
                    break
        return "".join([*pieces, text[place:]])


class _Cleaner(msgspec.Struct, frozen=True):
    """Replaces personal data in records, as the sample's locale writes it."""

    locale: str | None
    known: _Known = msgspec.field(default_factory=lambda: _Known())

    def redact(self, text: str, label: str = "") -> Redacted:
        redacted = redact(text, locale=self.locale, label=label)
        self.known.add(redacted.found)
        return redacted

    def text(self, text: str, label: str = "") -> str:
        return self.redact(text, label).text

    def optional(self, text: str | None) -> str | None:
        return None if text is None else self.text(text)

    def texts(self, texts: Iterable[str]) -> tuple[str, ...]:
        return tuple(self.text(text) for text in texts)

    def metadata(self, metadata: dict[str, Json]) -> dict[str, Json]:
        cleaned = self.object(metadata)
        if "sample_id" in metadata:
            cleaned["sample_id"] = metadata["sample_id"]
        # Groups stay apart: what names them becomes a digest where it is personal.
        if cleaned.get("cluster") != metadata.get("cluster"):
            cleaned["cluster"] = _name_for(metadata["cluster"])
        if cleaned.get("slices") != metadata.get("slices"):
            cleaned["slices"] = [
                name if self.text(name) == name else _name_for(name)
                for name in want_texts(metadata["slices"])
            ]
        return cleaned

    def object(self, value: dict[str, Json]) -> dict[str, Json]:
        return want_object(self.json(value))

    def json(self, value: Json) -> Json:
        """Strings, keys, and numbers that are card or social security numbers. Without
        recursion: what a model sends may be nested as deeply as a parser allows."""
        root: list[Json] = [None]
        todo: list[tuple[Json, str, Any, Any]] = [
            (value, "", root, 0)
        ]  # list and index, or dict and key
        while todo:
            node, label, holder, slot = todo.pop()
            if isinstance(node, dict):
                holder[slot] = cleaned = dict.fromkeys(self._keys(node))
                todo += [
                    (child, old, cleaned, new)
                    for (old, child), new in zip(node.items(), cleaned, strict=True)
                ]
            elif isinstance(node, list):
                holder[slot] = entries = [None] * len(node)
                todo += [(child, label, entries, at) for at, child in enumerate(node)]
            else:
                holder[slot] = self._leaf(node, label)
        return root[0]

    def _leaf(self, leaf: Json, label: str) -> Json:
        if isinstance(leaf, str):
            return self.text(leaf, label)
        digits = number_text(leaf)
        if digits is None or not find_pii(digits, locale=self.locale, label=label):
            return leaf
        return self.text(digits, label)

    def _keys(self, node: dict[str, Json]) -> list[str]:
        """Two addresses as keys stay two keys: `[email]` and `[email] 2`."""
        keys: list[str] = []
        seen: Counter[str] = Counter(iter(node))
        for key in node:
            cleaned = key if key.isidentifier() else self.text(key)
            name = cleaned
            while name != key and seen[name]:
                seen[cleaned] += 1
                name = f"{cleaned} {seen[cleaned]}"
            seen[name] += name != key
            keys.append(name)
        return keys

    def entry(self, entry: TraceEntry) -> TraceEntry:
        errors, repaired = entry.schema_errors, entry.repaired
        return replace(
            entry,
            name=self.optional(entry.name),
            arguments=self.json(entry.arguments),
            result=self.json(entry.result),
            raw=self.optional(entry.raw),
            reason=self.optional(entry.reason),
            repaired=None
            if repaired is None
            else RepairedCall(self.text(repaired.name), self.object(repaired.arguments)),
            schema_errors=None if errors is None else self.texts(errors),
            key_normalized=self.json(entry.key_normalized),
        )

    def scores(self, scores: Scores, answer: str, output: Redacted) -> Scores:
        differences = scores.calls.differences
        old, new = (
            answer.encode("utf-8", "surrogatepass"),
            output.text.encode("utf-8", "surrogatepass"),
        )
        return replace(
            scores,
            spans=tuple(self._span(span, output) for span in scores.spans),
            calls=replace(
                scores.calls,
                differences=CallDifferences(
                    missing=self.texts(differences.missing),
                    extra=self.texts(differences.extra),
                    differing=self.texts(differences.differing),
                    reordered=differences.reordered,
                ),
                errors=self.texts(scores.calls.errors),
            ),
            privacy=self._privacy(scores.privacy, output),
            checks=tuple(
                replace(check, wanted=self.json(check.wanted), reason=self.optional(check.reason))
                for check in scores.checks
            ),
            statements=tuple(self._statement(one, old, new, output) for one in scores.statements),
            arguments=None
            if scores.arguments is None
            else tuple(
                replace(one, path=self.text(one.path), source=self._sentence(one.source))
                for one in scores.arguments
            ),
        )

    def _statement(self, one: Statement, old: bytes, new: bytes, output: Redacted) -> Statement:
        moved = output.moved(one)
        because, said = one.because, quote_said(_slice(old, one))
        if because.startswith(said):
            # What stands there may be a part of something personal, and no such thing by itself.
            because = quote_said(_slice(new, moved)) + because[len(said) :]
        expected = self._leaf(one.expected, _label_of(one.path or ""))
        return replace(
            moved,
            path=self.optional(one.path),
            expected=self.known.replace(expected) if isinstance(expected, str) else expected,
            because=self._sentence(because),
        )

    def _sentence(self, text: str) -> str:
        return self.text(self.known.replace(text))

    def _span(self, span: SpanScore, output: Redacted) -> SpanScore:
        matches = (
            replace(match, path=self.text(match.path), value=self.json(match.value))
            for match in span.matches
        )
        return replace(
            output.moved(span),
            matches=tuple(output.moved(match) for match in matches),
            values=tuple(output.moved(value) for value in span.values),
        )

    def _privacy(self, privacy: PrivacyScore, output: Redacted) -> PrivacyScore:
        return replace(
            privacy,
            findings=tuple(
                output.moved(finding) if finding.where == "answer" else finding
                for finding in privacy.findings
            ),
            invented_urls=self.texts(privacy.invented_urls),
        )
