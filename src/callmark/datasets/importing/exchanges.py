"""Logs of what was said to a model over an API, exchange by exchange or as whole conversations. A
gateway writes several APIs into one file: each entry is read as what it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from callmark.datasets.importing.anthropic import anthropic_exchanges, is_anthropic, read_blocks
from callmark.datasets.importing.desk import Desk, Imported, Object, Reader, Record
from callmark.datasets.importing.histories import (
    Histories,
    ModelExchange,
    exchanges_of,
    is_whole_session,
)
from callmark.datasets.importing.openai_chat import (
    chat_exchanges,
    claims_chat,
    read_conversation,
)
from callmark.datasets.importing.responses import is_responses, read_items_of, responses_exchanges
from callmark.errors import BadInput


class _Api(NamedTuple):
    """`claims`: an entry that can be of no other; `read_whole`: one that holds no exchange."""

    name: str
    claims: Callable[[Object], bool]
    exchanges: Callable[[Object, int, Desk], Iterator[ModelExchange]]
    read_whole: Callable[[Object, int, Desk], Iterator[Imported]]


_APIS = (
    _Api("anthropic", is_anthropic, anthropic_exchanges, read_blocks),
    _Api("responses", is_responses, responses_exchanges, read_items_of),
    _Api("openai", claims_chat, chat_exchanges, read_conversation),
)


def reader_of_api(name: str) -> Reader:
    """`name`: which API an entry is of that does not say so."""
    asked = next(api for api in _APIS if api.name == name)
    order = (asked, *(api for api in _APIS if api is not asked))

    def read(records: Iterator[Record], desk: Desk) -> Iterator[Imported]:
        running = Histories(desk)
        for line, value in records:
            entry = {"messages": value} if isinstance(value, list) else value
            if not isinstance(entry, dict):
                raise BadInput(f"{desk.place(line)}: must be a JSON object or a list of messages")
            api = next((one for one in order if one.claims(entry)), asked)
            desk.meet(api.name)
            if exchanges_of(entry) is None:
                yield from api.read_whole(entry, line, desk)
                continue
            # A row that holds a whole conversation stands for itself.
            own = Histories(desk, session=True) if is_whole_session(entry) else None
            for exchange in api.exchanges(entry, line, desk):
                yield from (own or running).take(exchange)
            yield from own.finish() if own else ()
        yield from running.finish()

    return read
