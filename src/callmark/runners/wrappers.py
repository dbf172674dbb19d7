"""Prompt wrappers: template files that say how system and user text become a prompt."""

from __future__ import annotations

import json
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from string import Template
from typing import Any, Protocol

from callmark.errors import UsageError
from callmark.records.jsontext import Json, sha256_hex, well_formed
from callmark.store.files import read_input

VARIABLES = ("system", "user", "tools")
# What `system` is where neither the sample nor the user says anything.
DEFAULT_SYSTEM = (
    "You are a helpful assistant. Use the tools you are offered when they help you answer."
)

Messages = list[dict[str, Json]]


class Wrapper(Protocol):
    """`raw`: the text is the exact prompt, nothing may be put around it. `variables`: those that
    the template uses."""

    source: str
    sha256: str
    raw: bool
    variables: frozenset[str]

    def render(self, *, user: str, system: str, tools: Sequence[Json]) -> Messages: ...


def open_wrapper(path: Path) -> Wrapper:
    """Reads, compiles and tries the template, so that its mistakes are known before a run."""
    data = read_input(path)
    try:
        source = data.decode("utf-8-sig")  # some editors begin a file with a mark of their own
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8 at byte {error.start}") from None
    wrapper = _compile(path, source, sha256_hex(data))
    wrapper.render(user="user", system="system", tools=())
    return wrapper


def render_prompt(
    wrapper_path: str | PathLike[str], *, user: str, system: str = "", tools: Sequence[Json] = ()
) -> list[dict[str, Any]]:
    """Put a prompt through a wrapper, as a run does.

    Args:
        wrapper_path: a `.j2` (Jinja2, which gives JSON) or `.tmpl` (flat text) file.
        user: the user's words.
        system: the system message.
        tools: the specs that are offered.

    Returns:
        The chat messages.

    Raises:
        UsageError: no such file, another kind of file, or one that does not give messages.

    >>> import pathlib, tempfile, callmark
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     wrapper = pathlib.Path(folder, "short.tmpl")
    ...     _ = wrapper.write_text("Briefly: $user")
    ...     callmark.render_prompt(wrapper, user="How many boats?")
    [{'role': 'user', 'content': 'Briefly: How many boats?'}]
    """
    return open_wrapper(Path(wrapper_path)).render(user=user, system=system, tools=tools)


def _compile(path: Path, source: str, sha256: str) -> Wrapper:
    match path.suffix:
        case ".tmpl":
            return TextWrapper(path, source, sha256)
        case ".j2":
            from callmark.runners.jinja import JinjaWrapper

            return JinjaWrapper(path, source, sha256)
    raise UsageError(f"{path}: a prompt wrapper ends in .j2 (Jinja2, JSON) or .tmpl (text)")


class TextWrapper:
    """`.tmpl`: `$system`, `$user` and `$tools` (as JSON) in a flat text."""

    raw = True

    def __init__(self, path: Path, source: str, sha256: str) -> None:
        self.source, self.sha256 = source, sha256
        self._template = Template(source)
        found: list[str] = []
        for match in Template.pattern.finditer(source):
            name = match["named"] or match["braced"]
            line = source.count("\n", 0, match.start()) + 1
            if match["invalid"] is not None:
                raise UsageError(f"{path}:{line}: a lone $; write $$ for the character itself")
            if name is not None and name not in VARIABLES:
                there_is = ", ".join(f"${one}" for one in VARIABLES)
                raise UsageError(f"{path}:{line}: ${name} is unknown; there is: {there_is}")
            found += [name] if name else []
        self.variables = frozenset(found)

    def render(self, *, user: str, system: str, tools: Sequence[Json]) -> Messages:
        listed = json.dumps(list(tools), ensure_ascii=False) if "tools" in self.variables else ""
        text = self._template.substitute(user=user, system=system, tools=listed)
        return [{"role": "user", "content": well_formed(text)}]
