"""One trial, read once: the answer's text and turns, the evidence, what the user said."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import accumulate, pairwise

from callmark.grounding.evidence import Evidence
from callmark.grounding.leaves import Served
from callmark.grounding.match import Grounder
from callmark.grounding.said import Said, Utterance, argument_leaves, names_in
from callmark.grounding.spans import Span
from callmark.grounding.text import char_offset
from callmark.grounding.values import find_values
from callmark.records.jsontext import Json, canonical_json
from callmark.records.samples import DEFAULT_STRICT_KEYS, Sample
from callmark.records.trace import Trace, compose_text, is_error_result, json_inside

StrictKeysOf = Callable[[str | None], tuple[str, ...] | None]


class TrialReading:
    """What all scorers of one trial share. Offsets are characters."""

    def __init__(
        self,
        sample: Sample,
        trace: Trace,
        tool_strict_keys: StrictKeysOf,
        header_strict_keys: tuple[str, ...] | None,
    ) -> None:
        self.sample = sample
        self.trace = trace
        self.text, turns = _normalise(trace, sample.expectation.normalise_text)
        self._turns = turns
        self._turn_ends = [end for _, end in turns or ()]
        keys = _strict_keys(sample, tool_strict_keys, header_strict_keys)
        served = [*_prompt_results(sample.prompt, keys), *_trace_results(trace, keys)]
        self.evidence = Evidence(served)
        # Without a strict key no answer could be strictly grounded: that is not the model's fault.
        self.has_strict_keys = (
            header_strict_keys is not None
            or sample.expectation.strict_keys is not None
            or any(leaf.strict for leaf in self.evidence.leaves)
            or any(tool_strict_keys(name) is not None for name in _tools(sample, trace))
        )
        # None: nothing was served, or the turns are not known.
        self.first_served_turn = min(
            (one.turn for one in served if one.turn is not None), default=None
        )
        locale = sample.expectation.locale
        self.said = Said(_utterances(sample, trace), locale, _names(trace))
        self.grounder = Grounder(
            self.text, find_values(self.text, locale), self.evidence, self.said
        )

    def turn_at(self, position: int) -> int | None:
        """The assistant turn that a character belongs to; None where turns are not known."""
        if self._turns is None:
            return None
        return bisect_right(self._turn_ends, position) + 1

    def is_after_first_result(self, span: Span) -> bool:
        turn = self.turn_at(span[0])
        return turn is None or self.first_served_turn is None or turn > self.first_served_turn


def _normalise(trace: Trace, wanted: bool) -> tuple[str, tuple[Span, ...] | None]:
    """The text (NFC, LF where the item asks for that) and its turns in characters."""
    text = trace.model_output
    if trace.turns is None:
        return (compose_text(text) if wanted else text), None
    if text.isascii() and not wanted:
        return text, trace.turns
    turns = [(char_offset(text, start), char_offset(text, end)) for start, end in trace.turns]
    if not wanted:
        return text, tuple(turns)
    cuts = sorted({0, len(text), *(edge for turn in turns for edge in turn)})
    pieces = [compose_text(text[a:b]) for a, b in pairwise(cuts)]
    moved = dict(zip(cuts, accumulate(map(len, pieces), initial=0), strict=True))
    return "".join(pieces), tuple((moved[start], moved[end]) for start, end in turns)


def _strict_keys(
    sample: Sample, of_tool: StrictKeysOf, of_header: tuple[str, ...] | None
) -> Callable[[str | None], frozenset[str]]:
    """Header, then tool, then item: the later wins."""
    of_item = sample.expectation.strict_keys

    def keys(name: str | None) -> frozenset[str]:
        if of_item is not None:
            return frozenset(of_item)
        tool = of_tool(name)
        if tool is not None:
            return frozenset(tool)
        return frozenset(DEFAULT_STRICT_KEYS if of_header is None else of_header)

    return keys


def _tools(sample: Sample, trace: Trace) -> set[str | None]:
    """The tools that the sample expects, and those that answered."""
    served = {entry.name for entry in trace.tool_trace if entry.served}
    return served | {call.name for call in sample.expectation.calls}


def _trace_results(trace: Trace, keys: Callable[[str | None], frozenset[str]]) -> Iterator[Served]:
    for index, entry in enumerate(trace.tool_trace):
        if entry.served:
            yield Served(
                call=index,
                turn=entry.turn if trace.turns is not None else None,
                result=entry.result,
                arguments=entry.arguments,
                error=entry.status == "error",
                strict_keys=keys(entry.name),
            )


def _prompt_results(
    prompt: str | list[dict[str, Json]], keys: Callable[[str | None], frozenset[str]]
) -> Iterator[Served]:
    """`tool` messages inside a prompt are served results of turn 0."""
    if isinstance(prompt, str):
        return
    calls: dict[str, tuple[str | None, Json]] = {}
    for index, message in enumerate(prompt):
        for call, function in _calls_of(message):
            arguments = function.get("arguments")
            if isinstance(arguments, str):
                arguments = json_inside(arguments)
            calls[str(call.get("id"))] = (_text_or_none(function.get("name")), arguments)
        if message.get("role") == "tool":
            name, arguments = calls.get(str(message.get("tool_call_id")), (None, None))
            content = message_text(message)
            yield Served(
                call=-1,
                turn=0,
                result=content,
                arguments=arguments,
                error=is_error_result(content),
                strict_keys=keys(name or _text_or_none(message.get("name"))),
                root=f"/messages/{index}",
            )


def _text_or_none(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def _calls_of(message: dict[str, Json]) -> Iterator[tuple[dict[str, Json], dict[str, Json]]]:
    """The calls of a message and their functions, as far as they have that shape."""
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            yield call, function


def message_text(message: dict[str, Json]) -> str:
    """The text of a chat message: a string, or the text parts of a list."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = (part.get("text") if isinstance(part, dict) else part for part in content)
    return "\n".join(part for part in parts if isinstance(part, str))


def prompt_texts(prompt: str | list[dict[str, Json]]) -> Iterator[str]:
    """What the prompt says, tool results left out."""
    if isinstance(prompt, str):
        yield prompt
        return
    for message in prompt:
        if message.get("role") != "tool":
            yield message_text(message)
        for _, function in _calls_of(message):
            arguments = function.get("arguments")
            if arguments is not None:
                yield arguments if isinstance(arguments, str) else canonical_json(arguments)


def _utterances(sample: Sample, trace: Trace) -> Iterator[Utterance]:
    for text in prompt_texts(sample.prompt):
        yield Utterance(0, text)
    for said in trace.said:
        yield Utterance(said.turn, said.text)
    for entry in trace.tool_trace:
        turn = entry.turn if entry.turn is not None and trace.turns is not None else 0
        for leaf in argument_leaves(entry.arguments):
            yield Utterance(turn, leaf)


def _names(trace: Trace) -> Iterator[tuple[int, str]]:
    for entry in trace.tool_trace:
        turn = entry.turn if entry.turn is not None and trace.turns is not None else 0
        for shown in (entry.arguments, entry.result if entry.served else None):
            for name in names_in(shown):
                yield turn, name
