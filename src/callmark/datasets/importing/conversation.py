"""A whole conversation becomes a sample, its fixtures and a recorded answer. Its turns are put
together from the pieces in which other programs keep them: texts, thoughts, calls and results, each
an entry of its own. And what was done becomes what is expected: of a whole conversation, or of
every decision in it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import takewhile

import msgspec

from callmark.calls.attempts import is_nested_too_deeply
from callmark.calls.registry import normalise
from callmark.datasets.add import fixture_entries
from callmark.datasets.importing.desk import (
    Desk,
    Imported,
    Object,
    SourceOffer,
    name_of_spec,
    spec_of_name,
)
from callmark.datasets.schema import metadata_problems
from callmark.records.jsontext import (
    Json,
    canonical_json,
    digest,
    parse_json,
    want_list,
    want_object,
    want_text,
)
from callmark.records.samples import NO_ANSWER, NOT_ASKED, NOT_RECORDED, PROVIDER_CALLS, UNANSWERED
from callmark.records.seams import Reply
from callmark.records.trace import TraceEntry, is_error_result
from callmark.runners.messages import replies_of, text_of

PARAGRAPH = "\n\n"
# What providers call a part that is nothing but text. Such lists are no sets, for what is looked up
# in them comes from outside and may be anything.
TEXT_PARTS = ("text", "input_text", "output_text", "summary_text", "reasoning_text")


def objects_of(value: Json) -> list[Object]:
    """The objects of a list; of anything else none."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def object_or_empty(value: Json) -> Object:
    return value if isinstance(value, dict) else {}


def name_by_content(messages: Sequence[Object]) -> str:
    """What a conversation is called to which its source gives no name."""
    return f"talk-{digest([*messages])[:16]}"


def rows_about(entry: Object, read: Collection[str]) -> tuple[str | None, Object]:
    """The name that a row gives its conversation, and everything in it that is not read."""
    named = (entry.get(key) for key in ("sample_id", "id"))
    name = next((one for one in named if isinstance(one, str | int) and one != ""), None)
    taken = {*read, "sample_id", "id"} if name is not None else read
    about = {key: value for key, value in entry.items() if key not in taken}
    return None if name is None else str(name), about


def text_or_none(value: Json) -> str | None:
    return value if isinstance(value, str) and value else None


def text_of_part(part: Json) -> str | None:
    """None: the part is no text."""
    if isinstance(part, str):
        return part
    if not isinstance(part, dict) or part.get("type", "text") not in TEXT_PARTS:
        return None
    text = part.get("text")
    return text if isinstance(text, str) else None


def content_of(value: Json) -> Json:
    """What somebody said: one text where there is nothing else in it, or the parts as they are."""
    if value is None or isinstance(value, str):
        return value or ""
    if not isinstance(value, list):
        return canonical_json(value)
    texts = [text_of_part(part) for part in value]
    if None not in texts:
        return "\n".join(text for text in texts if text)
    return [part if isinstance(part, dict | str) else canonical_json(part) for part in value]


def result_of(value: Json) -> Json:
    """What a tool returned: a text where it is nothing else, the parts where pictures are among
    them, and everything else as the JSON that it is."""
    content = content_of(value)
    if isinstance(content, str):
        return content
    has_text = any(text_of_part(part) is not None for part in objects_of(value))
    return content if has_text else canonical_json(value)


def failed_result(content: Json) -> str:
    """A result that its source marks as an error beside the text says so itself."""
    if isinstance(content, str) and is_error_result(content):
        return content
    texts = content if isinstance(content, list) else [content]
    said = "\n".join(text for part in texts if (text := text_of_part(part)))
    return canonical_json({"error": said or "error"})


class Turns:
    """Messages of the OpenAI style while their pieces arrive. What the model says, thinks and calls
    is one turn until somebody else speaks or a result comes."""

    def __init__(self) -> None:
        self.messages: list[Object] = []
        self._is_open = False
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._calls: list[Object] = []
        self._waiting: list[str | None] = []  # the calls of all turns that nothing answered

    @property
    def is_waiting(self) -> bool:
        """Whether a call is without its result."""
        return bool(self._waiting)

    def tell(self, role: str, content: Json) -> None:
        """Somebody who is not the model."""
        self.close()
        self.messages.append({"role": role, "content": content_of(content)})

    def speak(self, text: str, glue: str = PARAGRAPH) -> None:
        self._is_open = True
        if text and self._texts:
            self._texts.append(glue)
        if text:
            self._texts.append(text)

    def think(self, text: str) -> None:
        self._is_open = True
        if text:
            self._thoughts.append(text)

    def call(self, name: Json, arguments: Json, call_id: Json = None) -> None:
        self._is_open = True
        self._calls.append(function_call(name, arguments, call_id))
        self._waiting.append(call_id if isinstance(call_id, str) else None)

    def answer(
        self, content: Json, call_id: Json = None, name: Json = None, *, failed: bool = False
    ) -> None:
        """A result. `content` None: the tool returned nothing that was kept."""
        self.close()
        made = result_of(content)
        message: Object = {"role": "tool", "content": failed_result(made) if failed else made}
        if isinstance(call_id, str):
            message["tool_call_id"] = call_id
        if isinstance(name, str):
            message["name"] = name
        self.messages.append(message)
        known = call_id if isinstance(call_id, str) and call_id in self._waiting else None
        if known in self._waiting:
            self._waiting.remove(known)
        elif self._waiting:
            self._waiting.pop(0)

    def close(self) -> None:
        """The model's turn is over, if one is open."""
        if not self._is_open:
            return
        made: Object = {"role": "assistant", "content": "".join(self._texts)}
        if self._thoughts:
            made["reasoning_content"] = "\n".join(self._thoughts)
        if self._calls:
            made["tool_calls"] = self._calls
            made["content"] = made["content"] or None
        self.messages.append(made)
        self._is_open = False
        self._texts, self._thoughts, self._calls = [], [], []


# Roles that a prompt does not know, and what they are there.
_ROLE = {"developer": "system", "function": "tool"}


class Talk(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation as a source holds it, in OpenAI-style messages. `expects`: metadata that say
    what is right; `metadata`: the source's own; `about`: the rest that it says of the sample, and
    `scores`: of this trial. `tools` None: the source does not list any; `lists_all`: those are all
    that there were. `context`: how many of
    the messages another sample holds: they belong to the prompt. `own_deeds`: the model's provider
    ran tools of its own, which are left out."""

    line: int
    sample_id: str
    messages: Sequence[Object]
    named: bool = True
    trial: int = 0
    tools: Sequence[Json] | None = None
    lists_all: bool = True
    expects: Object = {}
    metadata: Object = {}
    about: Object = {}
    scores: Object = {}
    error: str | None = None
    context: int = 0
    own_deeds: bool = False


def imported_talk(talk: Talk, desk: Desk) -> Imported | None:
    """None: nothing was asked in it, which is noted."""
    messages = [_plain(message) for message in talk.messages]
    opening = _opening(messages, talk.context)
    if not opening:
        desk.notes.add("no_prompt", talk.line, talk.sample_id)
        return None
    offer = _offer(talk, messages, desk)
    replies = replies_of(messages[opening:])
    item: Object = {"prompt": _prompt(messages[:opening])}
    script = list(_script(replies, talk, desk))
    if script:
        item["user_turns"] = ["\n".join(said) for said in script]
    calls = [call for reply in replies for call in reply.calls or ()]
    lost: Object = {NOT_ASKED: True} if _says_more(messages[opening:], script) else {}
    if talk.own_deeds:
        lost[PROVIDER_CALLS] = True
    item["metadata"] = _metadata(talk, offer, desk) | _unanswered(calls) | lost
    _note_losses(messages, opening, replies, talk, desk)
    return Imported(
        line=talk.line,
        sample_id=talk.sample_id,
        trial=talk.trial,
        named=talk.named,
        item=item,
        answer=_answer(talk, messages, bool(replies), desk),
        fixtures=tuple(_fixtures(calls, talk, offer, desk)),
    )


def _opening(messages: Sequence[Object], context: int) -> int:
    """What the model is asked: with what was said to it last, before its first own turn."""
    if not context:
        return opening_length(messages)
    told = takewhile(lambda message: message["role"] != "assistant", messages[context:])
    return context + sum(1 for _ in told)


def imported_session(talk: Talk, desk: Desk) -> Imported | None:
    """The same of a session, whose name may be used again by another one, or which may stand there
    twice."""
    name = desk.name_session(talk.sample_id, digest([*talk.messages]))
    if name is None:
        desk.notes.add("duplicate", talk.line, talk.sample_id)
        return None
    if name != talk.sample_id:
        desk.notes.add("session_renamed", talk.line, f"{talk.sample_id} is {name}")
    messages = talk.messages
    if messages and not _opening(messages, talk.context):
        # A part of a session, or a sub-agent whose task is kept elsewhere: its calls count.
        desk.notes.add("prompt_not_recorded", talk.line, name)
        messages = [{"role": "user", "content": NOT_RECORDED}, *messages]
    named = msgspec.structs.replace(talk, sample_id=name, named=False, messages=messages)
    return imported_talk(named, desk)


def opening_length(messages: Sequence[Object]) -> int:
    """How many messages come before the model's first own turn: what is said until the user has
    asked, a greeting of the assistant included."""
    has_user = any(message.get("role") == "user" for message in messages)
    asked = not has_user
    for at, message in enumerate(messages):
        role = message.get("role")
        asked = asked or role == "user"
        calls = message.get("tool_calls") or message.get("function_call")
        if role == "assistant" and (asked or calls):
            return at
    return len(messages)


def function_call(name: Json, arguments: Json, call_id: Json) -> Object:
    """A call as an assistant message of the OpenAI style holds it."""
    text = arguments if isinstance(arguments, str) else canonical_json(arguments)
    call: Object = {"type": "function", "function": {"name": name, "arguments": text}}
    return {"id": call_id, **call} if isinstance(call_id, str) else call


def _fixtures(
    calls: Sequence[TraceEntry], talk: Talk, offer: SourceOffer, desk: Desk
) -> Iterator[tuple[str, Object]]:
    for fixture in fixture_entries(calls, talk.sample_id, offer.registry):
        name = want_text(fixture["name"])
        call = normalise(name, fixture["key"], registry=offer.registry)
        if offer.registry.spec(name) is None:
            desk.notes.add("call_of_unknown_tool", talk.line, f"{talk.sample_id}: {name}")
        elif call is None or is_nested_too_deeply([fixture["result"]]):
            desk.notes.add("result_too_deep", talk.line, f"{talk.sample_id}: {fixture['name']}")
        elif "seq" in fixture:
            # Equal by the tool that this sample was offered, be the registry's another one.
            yield f"{call.name} {call.key_json}", {**fixture, "key": parse_json(call.key_json)}
        else:
            yield f"{call.name} {call.key_json}", fixture


def _prompt(messages: Sequence[Object]) -> Json:
    only = messages[0] if len(messages) == 1 else {}
    is_text = only.get("role") == "user" and isinstance(only.get("content"), str)
    return only["content"] if is_text else list(messages)


def _plain(message: Object) -> Object:
    """The message as a prompt may hold it."""
    made = {name: value for name, value in message.items() if value is not None}
    role = message["role"]
    made["role"] = _ROLE.get(role, role) if isinstance(role, str) else role
    content = message.get("content")
    if isinstance(content, dict):
        made["content"] = json.dumps(content, ensure_ascii=False)
    elif isinstance(content, list):
        made["content"] = [
            {"type": "text", "text": part} if isinstance(part, str) else part for part in content
        ]
    else:
        made["content"] = content
    return made


def _offer(talk: Talk, messages: Sequence[Object], desk: Desk) -> SourceOffer:
    calls = [call for reply in replies_of(messages) for call in reply.calls or ()]
    if talk.tools is None:
        return desk.tools.called(
            [(call.name, call.arguments) for call in calls if call.name], talk.line
        )
    if not talk.tools or talk.lists_all:
        return desk.tools.offer(talk.tools, talk.line)
    listed = [name_of_spec(spec) for spec in talk.tools]
    answered = {call.name: None for call in calls if call.status == "ok" and _did_answer(call)}
    unlisted = [name for name in answered if name is not None and name not in listed]
    for name in unlisted:
        desk.notes.add("tool_without_schema", talk.line, name)
    specs: list[Json] = [spec_of_name(name) for name in unlisted]
    return desk.tools.offer([*talk.tools, *specs], talk.line)


# How programs tell a model that it made a tool up, where they do not mark it as an error.
_NO_TOOL = re.compile(
    r"(?i)\b(?:unknown|invalid|unrecognized|no such|non-?existent) (?:tool|function)\b"
    r"|\b(?:tool|function)\b.{0,60}\b(?:not (?:found|available|registered|exist|a valid)\b)"
)
_HEAD = 300


def _did_answer(call: TraceEntry) -> bool:
    """Whether a tool that no request lists was there all the same, by a search for tools or from
    another model's part: it answered, and nobody said that there is none of its name."""
    return call.served and not _NO_TOOL.search(str(call.result)[:_HEAD])


def _says_more(messages: Sequence[Object], script: Sequence[Sequence[str]]) -> bool:
    """Whether the user said more before the model's last turn than a model will be asked."""
    last = max((at for at, one in enumerate(messages) if one["role"] == "assistant"), default=0)
    spoken = [one["content"] for one in messages[:last] if one["role"] == "user"]
    asked = Counter(text for said in script for text in said if text)
    return bool(Counter(text_of(content) for content in spoken if content) - asked)


def _script(replies: Sequence[Reply], talk: Talk, desk: Desk) -> Iterator[tuple[str, ...]]:
    """What the user said after each answer without calls, as long as these take turns."""
    for reply in replies[:-1]:
        said = reply.then_said or ()
        if bool(said) == bool(reply.calls):
            desk.notes.add("script_cut", talk.line, talk.sample_id)
            return
        if said:
            yield tuple(said)


def _metadata(talk: Talk, offer: SourceOffer, desk: Desk) -> Object:
    about = {name: value for name, value in talk.about.items() if value is not None}
    metadata: Object = {**talk.metadata, **talk.expects}
    problems = metadata_problems(metadata)
    if problems:
        desk.notes.add("metadata_kept_apart", talk.line, problems[0])
        metadata, about["metadata"] = dict(talk.expects), talk.metadata
    metadata["sample_id"] = talk.sample_id
    if offer.listed is not None:
        metadata.setdefault("tools", list(offer.listed))
    if about:
        metadata["imported_from"] = about
    return metadata


def _unanswered(calls: Sequence[TraceEntry]) -> Object:
    """The log's own holes, which no fixture fills and no model answers for."""
    left = [
        {"name": call.name, "arguments": call.arguments}
        for call in calls
        if call.status == "unanswered" and call.name and isinstance(call.arguments, dict)
    ]
    return {UNANSWERED: left} if left else {}


def _answer(talk: Talk, messages: Sequence[Object], spoke: bool, desk: Desk) -> Object | None:
    line: Object = {"sample_id": talk.sample_id, "trial": talk.trial}
    if talk.error is not None:
        desk.notes.add("failed_trial", talk.line, f"{talk.sample_id}: {talk.error}")
        line |= {"model_output": "", "status": "error", "error": talk.error}
    elif spoke:
        line["messages"] = list(messages)
    else:
        return None
    return {**line, "source_scores": talk.scores} if talk.scores else line


def _note_losses(
    whole: Sequence[Object], opening: int, replies: Sequence[Reply], talk: Talk, desk: Desk
) -> None:
    messages = whole[opening:]
    for message in filter(_is_empty, whole):
        desk.notes.add("empty_message", talk.line, f"{talk.sample_id}: {message['role']}")
    last = max((at for at, one in enumerate(messages) if one["role"] == "assistant"), default=-1)
    for at, message in enumerate(messages):
        if message["role"] not in ("user", "system"):
            continue
        if at > last:
            desk.notes.add("said_at_the_end", talk.line, talk.sample_id)
        elif not isinstance(message["content"], str | None):
            desk.notes.add("not_text", talk.line, talk.sample_id)
    for reply in replies:
        for _ in reply.answers:
            desk.notes.add("result_without_call", talk.line, talk.sample_id)
        for call in reply.calls or ():
            _note_call(call, talk, desk)


def _is_empty(message: Object) -> bool:
    """A result may be empty; whoever speaks says something, calls something or thinks."""
    said = any(message.get(name) for name in ("content", "tool_calls", "reasoning_content"))
    return not said and message["role"] != "tool"


def _note_call(call: TraceEntry, talk: Talk, desk: Desk) -> None:
    if call.status == "malformed":
        desk.notes.add("malformed_call", talk.line, f"{talk.sample_id}: {call.reason}")
    elif not call.served:
        desk.notes.add("call_without_result", talk.line, f"{talk.sample_id}: {call.name}")


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
