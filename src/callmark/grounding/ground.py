"""One span against served results, for callers outside the pipeline."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from callmark.grounding.evidence import Evidence, Served
from callmark.grounding.match import Grounder, Said, Utterance
from callmark.grounding.values import find_values
from callmark.records.jsontext import Json, plain
from callmark.records.samples import DEFAULT_STRICT_KEYS
from callmark.records.trace import is_error_result, is_miss_result


def ground(
    span: str,
    results: Sequence[Json],
    *,
    said: Iterable[str] = (),
    strict_keys: Collection[str] | None = None,
    locale: str | None = None,
) -> dict[str, Any]:
    """Look for what a text says in the results that tools gave.

    Args:
        span: the text, such as a sentence of an answer.
        results: what the tools returned, each any JSON value.
        said: what the user said: repeating it invents nothing.
        strict_keys: the fields in which a value counts as `strict`; None: the shipped ones.
        locale: how numbers and dates are written, such as `de`; None: any way.

    Returns:
        `lax` and `strict` (is it grounded?), `matches` (in what: byte ranges of the span, `call`
        = index of the result, JSON path) and `unsupported_values` (what it invents).

    Raises:
        TypeError: the span is no text.

    >>> import callmark
    >>> found = callmark.ground("There are 12 boats.", [{"count": 12}])
    >>> found["lax"], found["matches"][0]["path"]
    (True, '/count')
    >>> callmark.ground("There are 13 boats.", [{"count": 12}])["unsupported_values"]
    ['13']
    """
    keys = frozenset(DEFAULT_STRICT_KEYS if strict_keys is None else strict_keys)
    evidence = Evidence(
        Served(index, None, result, None, is_error_result(result), keys)
        for index, result in enumerate(results)
        if not is_miss_result(result)
    )
    utterances = Said((Utterance(0, text) for text in said), locale)
    grounder = Grounder(span, find_values(span, locale), evidence, utterances)
    grounding = grounder.ground((0, len(span)), None)
    encoded = span.encode("utf-8", "surrogatepass")
    return {
        "lax": bool(grounding.matches),
        "strict": any(match.strict for match in grounding.matches),
        "matches": plain(grounding.matches + grounding.derived),
        "unsupported_values": [
            encoded[mark.start : mark.end].decode("utf-8", "replace")
            for mark in grounding.marks
            if mark.label == "unsupported"
        ],
    }
