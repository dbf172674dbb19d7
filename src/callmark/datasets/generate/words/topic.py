"""The shape of one row: something that can be looked up, in one language."""

from typing import NamedTuple


class Topic(NamedTuple):
    """`{e}` is the thing, `{r}` its region, `{n}` the number, `{d}` the date. The four ways to
    state it hold no other digits, quotation marks or identifiers; `sheet`, how a source records
    it, shares no five words in a row with them."""

    entity: str  # with {p}, the name of the place
    aspect: str
    decimals: int
    ask: str
    both: str
    number: str
    date: str
    sheet: str


class Language(NamedTuple):
    """One language: what is asked about, how a search and the marker are asked for."""

    code: str
    topics: tuple[Topic, ...]
    search: tuple[str, ...]  # with {q}
    read: tuple[str, ...]  # with {path}
    marker: tuple[str, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]
    nothing: tuple[str, ...]  # with {e}
