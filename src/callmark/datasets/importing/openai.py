"""OpenAI-style messages: `{messages, tools?, …}` or a bare list of messages."""

from __future__ import annotations

from collections.abc import Iterator

from callmark.core.jsontext import Json
from callmark.datasets.importing.conversation import Talk, imported_talk
from callmark.datasets.importing.desk import Desk, Imported, Object, Record
from callmark.errors import BadInput
from callmark.store.recorded import BadLine, messages_of

_READ = frozenset({"sample_id", "id", "trial", "messages", "tools", "metadata"})


def read_openai(records: Iterator[Record], desk: Desk) -> Iterator[Imported]:
    for line, value in records:
        whole = {"messages": value} if isinstance(value, list) else value
        if not isinstance(whole, dict):
            raise BadInput(f"{desk.place(line)}: must be a JSON object or a list of messages")
        try:
            found = messages_of(whole, line)
        except BadLine as error:
            raise BadInput([f"{desk.place(line)}: {what}" for what in error.problems]) from None
        talk = Talk(
            line=line,
            sample_id=found.sample_id,
            named=_is_named(whole),
            trial=found.trial,
            messages=found.messages,
            tools=found.tools,
            metadata={**_cluster(whole), **(found.metadata or {})},
            about={name: rest for name, rest in whole.items() if name not in _READ},
        )
        imported = imported_talk(talk, desk)
        if imported is not None:
            yield imported


def _is_named(whole: Object) -> bool:
    given = (
        (whole.get("metadata") or {}).get("sample_id"),
        whole.get("sample_id"),
        whole.get("id"),
    )
    return any(name not in (None, "") for name in given)


def _cluster(whole: Object) -> Object:
    """Trials of one task are not independent."""
    task: Json = whole.get("task_id")
    is_name = isinstance(task, str | int) and not isinstance(task, bool)
    return {"cluster": str(task)} if is_name else {}
