"""TRAIL: traces of code agents in which people marked errors, span by span. How many of these lie
where a flag of ours lies, and how many flags lie where something is marked."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from callmark.config import load_config
from callmark.datasets.importing.choosing import Choice
from callmark.datasets.importing.importing import import_dataset
from callmark.datasets.importing.writing import ImportPaths
from callmark.records.jsontext import want_list, want_object
from callmark.records.results import Result
from callmark.run.rescore import score_file
from callmark.store.files import read_results

FOLDER = Path("traces") / "openinference_trail"


class TrailCounts(msgspec.Struct, frozen=True, kw_only=True):
    """`on_turns`: errors on a span that is a turn of a model, where alone a flag can lie;
    `errors_met`: those on a turn with a flag; `flags_met`: flags on a turn with an error.
    `turns_marked`: turns with an error; so much of the flags would lie there by chance."""

    traces: int
    turns: int
    turns_marked: int
    errors: int
    on_turns: int
    errors_met: int
    errors_met_firm: int
    flags: int
    flags_met: int
    firm: int
    firm_met: int


def measure_trail(real: Path) -> TrailCounts | None:
    """None: the material is not there."""
    folder = real / FOLDER
    if not folder.is_dir():
        return None
    lines = (folder / "annotations.jsonl").read_text("utf-8").splitlines()
    marked = [one["location"] for line in lines for one in json.loads(line)["errors"]]
    turns: set[str] = set()
    flags: list[tuple[str, bool]] = []
    for result in _score(folder):
        spans = _spans_of(result)
        turns |= {span for span in spans if span}
        flags += _flags_of(result, spans)
    places, firm = {span for span, _ in flags}, {span for span, is_firm in flags if is_firm}
    return TrailCounts(
        traces=len(lines),
        turns=len(turns),
        turns_marked=len(turns & set(marked)),
        errors=len(marked),
        on_turns=sum(one in turns for one in marked),
        errors_met=sum(one in places for one in marked),
        errors_met_firm=sum(one in firm for one in marked),
        flags=len(flags),
        flags_met=sum(span in marked for span, _ in flags),
        firm=sum(is_firm for _, is_firm in flags),
        firm_met=sum(is_firm and span in marked for span, is_firm in flags),
    )


def _score(folder: Path) -> Iterator[Result]:
    """As `callmark score` does it."""
    with tempfile.TemporaryDirectory() as scratch:
        made = Path(scratch)
        places = ImportPaths(
            dataset=made / "log.jsonl",
            registry=made / "tools.json",
            fixtures=made / "fixtures",
            answers=made / "answers.jsonl",
        )
        import_dataset([str(folder)], places, choice=Choice(answered=True))
        out = made / "results.jsonl"
        score_file(places.answers, load_config(Path(os.devnull), {"out": str(out)}))
        yield from read_results(out)


def _spans_of(result: Result) -> list[str]:
    """The span of each turn, empty where it stands only in a prompt; turns before the sample's own
    are another sample's."""
    about = want_object(want_object(result.metadata).get("imported_from"))
    spans = [str(one or "") for one in want_list(about.get("spans"))]
    return spans[-len(result.turns) :] if result.turns else []


def _flags_of(result: Result, spans: list[str]) -> Iterator[tuple[str, bool]]:
    """The span on which each flag lies, and whether it is a firm one."""
    for one in () if result.scores is None else result.scores.statements:
        if not one.is_flag:
            continue
        for turn, span in zip(result.turns or (), spans, strict=True):
            if turn.start <= one.start < turn.end:
                yield span, one.is_firm
