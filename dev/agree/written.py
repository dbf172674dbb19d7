"""Episodes in domains of their own, written by authors who did not know the rules: a right answer,
and the same answer with one wrong statement, several times over."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from callmark.calls.registry import Registry
from callmark.config import load_config
from callmark.grounding.checking import StatementFinding
from callmark.records.jsontext import Json
from callmark.records.statements import FLAGS, FlaggedTogether
from callmark.run.rescore import rescore
from callmark.scorers.score import sample_of_result
from dev.agree.material import OTHER, TUNED, RealTrial, trace_of
from dev.agree.measuring import combinations_of, is_firm

FOLDER = Path(__file__).parent / "written"
# Rules were mended while looking at these; the others were kept shut.
FILES = {
    TUNED: (
        "first.jsonl",
        "second.jsonl",
        "third.jsonl",
        "fourth.jsonl",
        "sixth.jsonl",
        "eighth.jsonl",
        "tenth.jsonl",
        "eleventh.jsonl",
    ),
    OTHER: ("fifth.jsonl", "seventh.jsonl", "ninth.jsonl", "twelfth.jsonl"),
}
NAMES = {TUNED: "written, seen", OTHER: "written, unseen"}
BESIDE = 40  # characters: a flag so near to the wrong words is about them


class WrongVariant(msgspec.Struct, frozen=True):
    """The answer with one statement made wrong: the one that holds `wrong`."""

    kind: str
    answer: str
    wrong: str
    why: str = ""


class WrittenEpisode(msgspec.Struct, frozen=True):
    """Messages up to the last result, and the answer that an author wrote to them."""

    id: str
    domain: str
    tools: list[dict[str, Json]]
    messages: list[dict[str, Json]]
    answer: str
    variants: list[WrongVariant]


class VariantCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Wrong statements of one kind; `rules`: how many each rule found."""

    kind: str
    planted: int
    caught: int
    firm: int
    rules: dict[str, int]


class WrittenCounts(msgspec.Struct, frozen=True, kw_only=True):
    """One file. `flagged`, `flagged_firm`: right answers with a flag; `flags` stand on them."""

    half: int
    domains: int
    answers: int
    flagged: int
    flagged_firm: int
    flags: int
    combinations: tuple[FlaggedTogether, ...]
    variants: tuple[VariantCounts, ...]


def read_written(half: int) -> list[WrittenEpisode]:
    decoder = msgspec.json.Decoder(WrittenEpisode)
    return [
        one for name in FILES[half] for one in decoder.decode_lines((FOLDER / name).read_bytes())
    ]


def check_written(
    episodes: Sequence[WrittenEpisode],
) -> Iterator[tuple[WrittenEpisode, WrongVariant | None, str, list[StatementFinding]]]:
    """Every answer as it was scored: its text and its flags; the right one of an episode first."""
    told = [
        (episode, variant, _line(episode, number, variant))
        for episode in episodes
        for number, variant in enumerate((None, *episode.variants))
    ]
    with tempfile.TemporaryDirectory(prefix="callmark-agree-") as scratch:
        path = Path(scratch, "written.jsonl")
        path.write_bytes(b"".join(line for _, _, line in told))
        results = rescore(path, load_config(Path(os.devnull), {})).results
        for (episode, variant, _), result in zip(told, results, strict=True):
            registry = Registry.from_specs(episode.tools, where=episode.id)
            sample, trace = sample_of_result(result), trace_of(result)
            trial = RealTrial("written", episode.id, OTHER, sample, trace, registry)
            _, statements = trial.check()
            flags = [one for one in statements.findings if one.label in FLAGS]
            yield episode, variant, result.model_output, flags


def _line(episode: WrittenEpisode, number: int, variant: WrongVariant | None) -> bytes:
    answer = episode.answer if variant is None else variant.answer
    row = {
        "id": f"{episode.id}-{number}",
        "tools": [{"type": "function", "function": tool} for tool in episode.tools],
        "messages": [*episode.messages, {"role": "assistant", "content": answer}],
    }
    return msgspec.json.encode(row) + b"\n"


class _VariantTally:
    def __init__(self) -> None:
        self.planted = self.caught = self.firm = 0
        self.rules: Counter[str] = Counter()

    def add(self, rules: set[str]) -> None:
        self.planted += 1
        self.caught += bool(rules)
        self.firm += any(map(is_firm, rules))
        self.rules.update(rules)


def measure_written(half: int) -> WrittenCounts:
    """All of one file."""
    episodes = read_written(half)
    on_right: Counter[tuple[str, ...]] = Counter()
    known: set[tuple[str, str]] = set()
    flags_on_right = 0
    kinds: dict[str, _VariantTally] = {}
    for _, variant, text, flags in check_written(episodes):
        if variant is None:
            on_right[tuple(sorted({one.rule for one in flags}))] += 1
            known = {(one.rule, text[one.start : one.end]) for one in flags}
            flags_on_right += len(flags)
        else:
            rules = _rules_at(text, variant.wrong, flags, known)
            kinds.setdefault(variant.kind, _VariantTally()).add(rules)
    flagged = {rules: number for rules, number in on_right.items() if rules}
    return WrittenCounts(
        half=half,
        domains=len({one.domain for one in episodes}),
        answers=len(episodes),
        flagged=sum(flagged.values()),
        flagged_firm=sum(number for rules, number in flagged.items() if any(map(is_firm, rules))),
        flags=flags_on_right,
        combinations=combinations_of(on_right),
        variants=tuple(
            VariantCounts(
                kind=kind,
                planted=one.planted,
                caught=one.caught,
                firm=one.firm,
                rules=dict(sorted(one.rules.items())),
            )
            for kind, one in sorted(kinds.items())
        ),
    )


def _rules_at(
    text: str, wrong: str, flags: Iterable[StatementFinding], known: set[tuple[str, str]]
) -> set[str]:
    """The rules whose new flags stand at the wrong words."""
    at = text.rindex(wrong)
    return {
        one.rule
        for one in flags
        if (one.rule, text[one.start : one.end]) not in known
        and one.start < at + len(wrong) + BESIDE
        and one.end > at - BESIDE
    }
