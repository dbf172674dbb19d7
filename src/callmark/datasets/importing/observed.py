"""What was done becomes what is expected: of a whole conversation, or of every decision in it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence

import msgspec

from callmark.calls.registry import normalise
from callmark.datasets.add import fixture_entries
from callmark.datasets.importing.conversation import opening_length
from callmark.datasets.importing.desk import Desk, Imported, Object
from callmark.records.jsontext import Json, want_list, want_object, want_text
from callmark.records.samples import NO_ANSWER, NOT_ASKED, UNANSWERED
from callmark.records.seams import Reply
from callmark.records.trace import TraceEntry
from callmark.runners.messages import replies_of

# What a source expects itself; what was observed stands in its place.
EXPECTATIONS = (
    "call_sequence",
    "call_match",
    "required_facts",
    "expected_behaviour",
    "negative_control",
    "decoy_values",
    "adversarial",
    "checks",
)
LARGEST_STEPS = 1 << 26  # bytes: the prompts of a conversation's steps grow with its square
_CALLED = frozenset({"ok", "error", "unanswered"})

# The facts that a recorded answer states, by what it is scored with: None if the answer does not
# even keep what was observed in it.
FindFacts = Callable[[Imported, Desk], list[Json] | None]


def expect_observed(entry: Imported, desk: Desk, find_facts: FindFacts) -> Imported:
    """The sample with what was done in it. What its own recording would not repeat is not
    expected."""
    messages = _messages_of(entry)
    if messages is None:
        desk.notes.add("nothing_observed", entry.line, entry.sample_id)
        return entry
    replies = replies_of(messages[opening_length(messages) :])
    calls = [call for reply in replies for call in reply.calls or ()]
    made = _expecting(entry, calls, desk, find_facts)
    metadata = want_object(made.item["metadata"])
    # Without a call nothing but an answer was observed; a hole in the log is told as such.
    if not metadata.get("call_sequence") or UNANSWERED in metadata or _has_answer(replies):
        return made
    desk.notes.add("ends_without_answer", entry.line, entry.sample_id)
    return _with_metadata(made, {**metadata, NO_ANSWER: True})


def _has_answer(replies: Sequence[Reply]) -> bool:
    """Whether something is said after the last result, as the scorer asks of an answer. `answers`
    are the results of calls that only the text holds."""
    served = [
        at
        for at, one in enumerate(replies, 1)
        if one.answers or any(call.served for call in one.calls or ())
    ]
    return any(reply.text.strip() for reply in replies[max(served, default=0) :])


def split_steps(entry: Imported, desk: Desk, find_facts: FindFacts) -> Iterator[Imported]:
    """One sample for each turn of the model: the conversation up to it is the prompt, what the
    model did then is expected."""
    messages = _messages_of(entry)
    if messages is None:
        desk.notes.add("nothing_observed", entry.line, entry.sample_id)
        return
    size, step, total = 0, 0, 0
    sizes = [len(json.dumps(message)) for message in messages]
    opening = opening_length(messages)
    for at, message in enumerate(messages):
        size += sizes[at]
        if at < opening or message.get("role") != "assistant":
            continue
        step += 1
        total += size
        if total > LARGEST_STEPS:
            desk.notes.add("step_left_out", entry.line, f"{entry.sample_id}, step {step}")
            continue
        made = _step_of(entry, messages, at, step, desk)
        if made is not None:
            replies = replies_of((_messages_of(made) or [])[at:])
            yield _expecting(made, list(replies[0].calls or ()), desk, find_facts)


def _messages_of(entry: Imported) -> list[Object] | None:
    """Of a trial that did not fail."""
    found = want_object(entry.answer).get("messages") if entry.answer is not None else None
    return None if found is None else [want_object(one) for one in want_list(found)]


def _expecting(
    entry: Imported, calls: Sequence[TraceEntry], desk: Desk, find_facts: FindFacts
) -> Imported:
    own = want_object(entry.item["metadata"])
    kept = {name: value for name, value in own.items() if name not in EXPECTATIONS}
    replaced = {name: own[name] for name in EXPECTATIONS if name in own}
    if replaced:
        about = want_object(kept.get("imported_from"))
        kept["imported_from"] = {**about, "expected": replaced}
    expected: Object = {"observed": True, "call_sequence": [*map(_call, filter(_is_call, calls))]}
    for match in ("exact", "superset"):
        # A call that could not be read is in the recording too: then there may be more.
        more: Object = {} if match == "exact" else {"call_match": match}
        made = _with_metadata(entry, {**kept, **expected, **more})
        facts = find_facts(made, desk)
        if facts is None:
            continue
        stated: Object = {"required_facts": facts} if facts else {}
        return _with_metadata(made, {**kept, **expected, **more, **stated})
    desk.notes.add("not_repeatable", entry.line, entry.sample_id)
    return _with_metadata(entry, kept)


def _is_call(call: TraceEntry) -> bool:
    return call.status in _CALLED and call.name is not None and isinstance(call.arguments, dict)


def _call(call: TraceEntry) -> Object:
    return {"name": call.name, "arguments": call.arguments}


def _with_metadata(entry: Imported, metadata: Object) -> Imported:
    return msgspec.structs.replace(entry, item={**entry.item, "metadata": metadata})


def _step_of(
    entry: Imported, messages: Sequence[Object], at: int, step: int, desk: Desk
) -> Imported | None:
    end = at + 1
    while end < len(messages) and messages[end].get("role") == "tool":
        end += 1
    # Each trial went its own way: its steps are not trials of the first one's.
    whole = f"{entry.sample_id}~{entry.trial}" if entry.trial else entry.sample_id
    sample_id = f"{whole}#{step}"
    own = {**want_object(entry.item["metadata"])}
    own.pop(UNANSWERED, None)  # a step ends with its calls: none of them waits for a result
    own.pop(NOT_ASKED, None)  # all that was said before it is in its prompt
    metadata: Object = {
        **own,
        "sample_id": sample_id,
        # The steps of one conversation are not independent.
        "cluster": own.get("cluster", entry.sample_id),
        "max_turns": 1,
    }
    [reply] = replies_of(messages[at:end])
    if not reply.calls and not reply.text.strip():
        desk.notes.add("empty_turn", entry.line, sample_id)
        return None
    registry = desk.tools.registry_of(own.get("tools"))
    fixtures = []
    for fixture in fixture_entries(reply.calls or (), sample_id, registry):
        call = normalise(want_text(fixture["name"]), fixture["key"], registry=registry)
        if call is not None and registry.spec(want_text(fixture["name"])) is not None:
            fixtures.append((f"{call.name} {call.key_json}", fixture))
    answer: Object = {"sample_id": sample_id, "trial": 0, "messages": list(messages[:end])}
    return msgspec.structs.replace(
        entry,
        sample_id=sample_id,
        trial=0,
        item={"prompt": list(messages[:at]), "metadata": metadata},
        answer=answer,
        fixtures=tuple(fixtures),
    )
