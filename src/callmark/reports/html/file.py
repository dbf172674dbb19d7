"""One file that holds everything: style, scripts and data, and asks the network for nothing."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable
from types import TracebackType
from typing import Any, BinaryIO, Self

import msgspec

from callmark.reports.html.index import Index
from callmark.reports.html.overview import PageHead
from callmark.reports.neutral import one_line
from callmark.resources import data_path

CHUNK_BYTES = 250_000
STYLES = ("page.css", "sample.css")
# In this order they are one script. Who shows the page otherwise than as a file replaces the last.
SCRIPTS = ("text.js", "dom.js", "source.js", "plots.js", "overview.js", "filters.js", "list.js",
           "json.js", "answer.js", "sample.js", "app.js")  # fmt: skip
MEASURES = "measures.js"  # where plug-ins have measures
START = "start.js"
AS_FILE = ((), (MEASURES, START))  # how the script of a page that is a file may start

_encode = msgspec.json.Encoder().encode
# JSON inside of HTML: nothing in it can end its element or open another one.
_HARMLESS = (
    (b"<", rb"\u003c"),
    (b">", rb"\u003e"),
    (b"&", rb"\u0026"),
    ("\u2028".encode(), rb"\u2028"),
    ("\u2029".encode(), rb"\u2029"),
)


def page_json(value: Any) -> bytes:
    """A record as JSON that may stand in a script element."""
    try:
        data = _encode(value)
    except (UnicodeEncodeError, OverflowError):
        # Lone surrogates and integers of any size can come from a model.
        data = json.dumps(msgspec.to_builtins(value), separators=(",", ":")).encode()
    for mark, harmless in _HARMLESS:
        data = data.replace(mark, harmless)
    return data


def page_style(*more: str) -> str:
    return _join((*STYLES, *more))


def page_script(*start: str) -> str:
    """The whole program: one function, so that nothing of it is global. `start` are the files that
    say where samples come from, and begin; none: the page is a file."""
    return f'(() => {{\n"use strict";\n{_join((*SCRIPTS, *(start or (START,))))}}})();\n'


def policy_of(style: str, *scripts: str, connects: bool = False) -> str:
    """What the browser may do: run these scripts and show this style, and nothing else. `connects`:
    the script may ask the server that it came from."""
    allowed = " ".join(map(_hash_of, scripts))
    return (
        f"default-src 'none'; style-src {_hash_of(style)}; script-src {allowed}; "
        + ("connect-src 'self'; " if connects else "")
        + "base-uri 'none'; form-action 'none'"
    )


def shell(
    *, title: str, style: str, script: str, connects: bool = False, template: str = "page.html"
) -> tuple[str, str, str]:
    """The page before the head's data, between them and the samples, and after those."""
    page = data_path("page", template).read_text("utf-8")
    policy = policy_of(style, script, connects=connects)
    fills = {"title": _text(one_line(title)), "policy": policy, "style": style, "script": script}
    for name, fill in fills.items():
        page = page.replace(f"<!--{name}-->", fill)
    first, middle, last = page.split("<!--data-->")
    return first, middle, last


class PageFile:
    """Written from top to bottom: the head, then samples, and the index at the end."""

    def __init__(self, stream: BinaryIO, title: str, *, has_measures: bool = False) -> None:
        """`has_measures`: scorers of plug-ins have something to say about the samples."""
        self._stream = stream
        script = page_script(*AS_FILE[has_measures])
        self._parts = shell(title=title, style=page_style(), script=script)
        self._chunk: list[bytes] = []
        self._chunk_size = 0
        self._samples = 0

    def __enter__(self) -> Self:
        self._stream.write(self._parts[0].encode())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self._stream.write(self._parts[2].encode())

    def head(self, head: PageHead) -> None:
        self._data('id="head"', page_json(msgspec.structs.replace(head, timing=None)))
        if head.timing is not None:
            self._data('id="timing"', page_json(head.timing))
        self._stream.write(self._parts[1].encode())

    def sample(self, encoded: bytes) -> int:
        """Its place among the samples of the file."""
        if self._chunk_size + len(encoded) > CHUNK_BYTES:
            self._flush()
        self._chunk.append(encoded)
        self._chunk_size += len(encoded)
        self._samples += 1
        return self._samples - 1

    def index(self, index: Index) -> None:
        self._flush()
        self._data('id="index"', page_json(index))

    def _flush(self) -> None:
        if self._chunk:
            first = self._samples - len(self._chunk)
            self._data(f'class="chunk" data-first="{first}"', b"[" + b",".join(self._chunk) + b"]")
        self._chunk = []
        self._chunk_size = 0

    def _data(self, attributes: str, data: bytes) -> None:
        self._stream.write(f'<script type="application/json" {attributes}>'.encode())
        self._stream.write(data)
        self._stream.write(b"</script>\n")


def _join(names: Iterable[str]) -> str:
    return "".join(data_path("page", name).read_text("utf-8") for name in names)


def _hash_of(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _text(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
