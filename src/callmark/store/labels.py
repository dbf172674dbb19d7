"""Files of statements that people judge, and the keys beside them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from callmark.errors import BadInput, UsageError
from callmark.records.jsontext import NotJson
from callmark.records.problems import typed_problem
from callmark.records.statements import Judgement, LabelKeys, LabelLine
from callmark.store.files import (
    atomic_writer,
    encode_record,
    is_blank,
    lines_of,
    object_of,
    open_input,
    read_json_record,
)

VERDICTS = ("right", "wrong", "unclear")


def key_path(labels: Path) -> Path:
    """`labels.key.json` beside `labels.jsonl`."""
    return labels.with_name(f"{labels.stem}.key.json")


def write_labels(path: Path, lines: Iterable[LabelLine]) -> None:
    with atomic_writer(path) as stream:
        for line in lines:
            stream.write(encode_record(line) + b"\n")


def write_keys(labels: Path, keys: LabelKeys) -> None:
    with atomic_writer(key_path(labels)) as stream:
        stream.write(encode_record(keys) + b"\n")


def write_judgements(path: Path, judgements: Iterable[Judgement]) -> None:
    with atomic_writer(path) as stream:
        for one in judgements:
            stream.write(encode_record(one) + b"\n")


def read_keys(labels: Path) -> LabelKeys:
    path = key_path(labels)
    if not path.is_file():
        raise UsageError(
            f"{path}: is missing, so nobody knows which rule a verdict is about: name the run too"
            f" (callmark agree --labels {labels} RUN)"
        )
    return read_json_record(path, LabelKeys, "key of label lines")


def read_labels(path: Path) -> list[LabelLine]:
    """Every line, with a verdict or without one."""
    lines: dict[str, LabelLine] = {}
    with open_input(path) as stream:
        for raw in lines_of(stream, str(path)):
            if is_blank(raw.data):
                continue
            where = f"{path}:{raw.number}"
            line = _line(where, raw.data)
            if line.statement_id in lines:
                raise BadInput(f"{where}: statement_id {line.statement_id} stands there twice")
            lines[line.statement_id] = line
    return list(lines.values())


def _line(where: str, data: bytes) -> LabelLine:
    try:
        value = object_of(data.removeprefix(b"\xef\xbb\xbf"))
    except NotJson as error:
        raise BadInput(f"{where}: {error}") from None
    for field in ("verdict", "verdict_2"):
        verdict = value.get(field)
        if verdict is not None and verdict not in VERDICTS:
            known = ", ".join(VERDICTS)
            raise BadInput(f"{where}: {field}: must be {known} or null, not {verdict!r}")
    try:
        return msgspec.convert(value, LabelLine)
    except msgspec.ValidationError as error:
        raise BadInput(f"{where}: {typed_problem(error)}") from None
