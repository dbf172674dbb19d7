"""Short questions to the scorer's public functions, for tables of cases."""

from typing import Any

import callmark
from callmark.grounding.values import find_values

Json = Any


def spans(text: str, extractor: str = "marker") -> list[str]:
    """The extracted spans as text, cut out of the UTF-8 bytes."""
    data = text.encode("utf-8")
    return [
        data[start:end].decode("utf-8") for start, end in callmark.extract_spans(text, extractor)
    ]


def values(text: str, locale: str | None = None) -> list[tuple[str, str]]:
    """Checkable values as (kind, text as it stands in the answer without quotes or backticks)."""
    return [(value.kind, value.text) for value in find_values(text, locale)]


def kinds(text: str, locale: str | None = None) -> list[str]:
    return [value.kind for value in find_values(text, locale)]


def lax(span: str, *results: Json, **more: Any) -> bool:
    return bool(callmark.ground(span, list(results), **more)["lax"])


def strict(span: str, *results: Json, **more: Any) -> bool:
    return bool(callmark.ground(span, list(results), **more)["strict"])


def unsupported(span: str, *results: Json, **more: Any) -> list[str]:
    return list(callmark.ground(span, list(results), **more)["unsupported_values"])


def paths(span: str, *results: Json, **more: Any) -> list[tuple[int, str]]:
    matches = callmark.ground(span, list(results), **more)["matches"]
    return [(match["call"], match["path"]) for match in matches]


def call(result: Json, name: str = "web.search", arguments: Json = None, **more: Any) -> Json:
    arguments = {"q": "something else entirely"} if arguments is None else arguments
    return {"name": name, "arguments": arguments, "result": result, **more}


def item(prompt: Json = "Please look it up.", **metadata: Any) -> Json:
    metadata.setdefault("call_sequence", [{"name": "web.search"}])
    return {"prompt": prompt, "metadata": metadata}


def score(answer: str | None, *calls: Json, of: Json = None, **more: Any) -> Json:
    """The scores of an answer after some calls; `of` is the dataset's item."""
    return callmark.score_item(item() if of is None else of, answer, list(calls), **more)


def claims(answer: str | None, *calls: Json, of: Json = None, **more: Any) -> Json:
    return score(answer, *calls, of=of, span_extractor="claims", **more)


def span_texts(scores: Json, answer: str) -> list[str]:
    data = answer.encode("utf-8")
    return [data[span["start"] : span["end"]].decode("utf-8") for span in scores["spans"]]


def labels(scores: Json) -> list[str]:
    return [mark["label"] for span in scores["spans"] for mark in span["values"]]


def turns(*texts: str) -> tuple[str, list[dict[str, int]]]:
    """Assistant turns joined as an answer, with their byte ranges; an empty turn is a point."""
    ranges: list[dict[str, int]] = []
    joined = ""
    for text in texts:
        if text and joined:
            joined += "\n"
        start = len(joined.encode("utf-8"))
        joined += text
        ranges.append({"start": start, "end": len(joined.encode("utf-8"))})
    return joined, ranges


def statements(
    answer: str, *results: Json, prompt: str = "Please look it up.", **metadata: Any
) -> list[tuple[str, str, str]]:
    """(text, label, rule) of every statement of an answer, after calls with these results."""
    scores = claims(answer, *map(call, results), of=item(prompt, **metadata))
    data = answer.encode("utf-8")
    return [
        (data[one["start"] : one["end"]].decode("utf-8"), one["label"], one["rule"])
        for one in scores["statements"]
    ]
