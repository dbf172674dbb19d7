"""A file of settings (YAML): its values, and on which line each key stands."""

from __future__ import annotations

from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from pathlib import Path

import msgspec
import yaml

from callmark.errors import BadInput, UsageError
from callmark.records.jsontext import Json, well_formed
from callmark.records.problems import quote_name, show_value
from callmark.store.files import read_input

# No setting is nested deeper or holds more: what does is an alias that repeats itself.
MAX_DEPTH = 50
MAX_VALUES = 10_000

_TEXT_TAG, _MERGE_TAG = "tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"


class Settings(msgspec.Struct, frozen=True):
    """What a file says, and on which line each key stands (by the names that lead to it)."""

    values: dict[str, Json]
    lines: dict[tuple[str, ...], int]


def read_settings(path: Path) -> Settings:
    try:
        text = _decode(path)
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return Settings({}, {})
            _check_size(path, node)
            lines = dict(_key_lines(path, node))
            values = _clean(loader.construct_document(node))
        finally:
            loader.dispose()
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise UsageError(f"{path}:{line}: not YAML: {error.reason}") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = 1 if mark is None else mark.line + 1
        raise UsageError(f"{path}:{line}: not YAML: {error.problem or error.context}") from None
    if values is None:
        return Settings({}, {})
    if not isinstance(values, dict):
        where = f"{path}:{_line(node)}"
        raise UsageError(f"{where}: must hold `key: value` lines, see `callmark init`")
    return Settings(values, lines)


class _Loader(yaml.SafeLoader):
    """Says on which line something is nested too deeply, or is not what its tag says."""

    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _too_deep(self.peek_event().start_mark)  # type: ignore[no-untyped-call]
        node: yaml.Node | None = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Json:
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, AttributeError, TypeError):
            # What the constructors of numbers, words and dates raise for other text.
            what = f"{show_value(node.value)} is no {node.tag.rpartition(':')[2]}"
            raise yaml.constructor.ConstructorError(None, None, what, node.start_mark) from None


def _decode(path: Path) -> str:
    try:
        data = read_input(path)
    except BadInput as error:
        raise UsageError(str(error)) from None
    is_wide = data.startswith((BOM_UTF16_BE, BOM_UTF16_LE))
    try:
        return data.decode("utf-16" if is_wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        encoding = "UTF-16" if is_wide else "UTF-8"
        raise UsageError(f"{path}:{line}: not {encoding} (byte {error.start})") from None


def _check_size(path: Path, node: yaml.Node) -> None:
    """Aliases are followed: one that leads back, or ten of ten of ten, would fill the memory."""
    waiting = [(node, 0)]
    values = 0
    while waiting:
        node, depth = waiting.pop()
        values += 1
        if depth > MAX_DEPTH:
            raise _too_deep(node.start_mark)
        if values > MAX_VALUES:
            raise UsageError(f"{path}:{_line(node)}: more than {MAX_VALUES} values, with aliases")
        waiting += [(inner, depth + 1) for inner in _inside(node)]


def _inside(node: yaml.Node) -> list[yaml.Node]:
    match node:
        case yaml.MappingNode():
            return [part for pair in node.value for part in pair]
        case yaml.SequenceNode():
            return list(node.value)
    return []


def _key_lines(
    path: Path, node: yaml.Node, above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], int]]:
    """Where each key stands. YAML would let a second one win without a word: refused here."""
    if not isinstance(node, yaml.MappingNode):
        return
    seen: dict[str, int] = {}
    for key, value in node.value:
        line = _line(key)
        if key.tag == _MERGE_TAG:
            for merged in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                yield from _key_lines(path, merged, above)
            continue
        if key.tag != _TEXT_TAG:
            raise UsageError(f"{path}:{line}: a key must be text: put it into quotes")
        name = well_formed(key.value)
        if name in seen:
            where = ".".join(map(quote_name, (*above, name)))
            raise UsageError(f"{path}:{line}: {where}: stands on line {seen[name]} too")
        seen[name] = line
        yield (*above, name), line
        yield from _key_lines(path, value, (*above, name))


def _clean(value: Json) -> Json:
    """Lone surrogates, which YAML lets through as escapes, become U+FFFD as in JSON."""
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, list):
        return [_clean(entry) for entry in value]
    if isinstance(value, dict):
        return {_clean(key): _clean(entry) for key, entry in value.items()}
    return value


def _line(node: yaml.Node) -> int:
    line: int = node.start_mark.line
    return line + 1


def _too_deep(mark: yaml.Mark) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=f"nested deeper than {MAX_DEPTH} levels", problem_mark=mark)
