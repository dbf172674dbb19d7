"""Answers about records, right ones and planted ones, through the whole pipeline; every statement
compared with the one that was written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from callmark.datasets.generate.records import Answer, Attempt, Turn
from callmark.datasets.generate.write import record_answer
from callmark.records.jsontext import Json
from callmark.records.report import Report
from callmark.records.results import Result, Scores
from callmark.records.statements import GOOD
from callmark.run.conclude import run
from dev.prove.comparing import Compared, Differences, compare_metrics, moved_metrics
from dev.prove.measuring import Setting
from dev.prove.rows import Numbers, Row, row_of
from dev.prove.stated_faults import STATED
from dev.prove.stating import OPEN_ARGUMENTS, TRADES, Scene, StatedAnswer, answer_of
from dev.prove.totals import totals_of

_RESULT = msgspec.json.Decoder(Result)
_BY_CHANCE = ("chance_f1", "grounding_lift")  # two worlds may well have as many boats


class StatedRun(msgspec.Struct, frozen=True):
    """By sample id, in order: what was written, which fault it has, and what came of it."""

    answers: dict[str, StatedAnswer]
    faults: dict[str, str]
    lines: dict[str, Result]
    rows: dict[str, Row]
    report: Report
    exit_code: int


def measure_stated(
    folder: Path, setting: Setting, seed: int, shares: Mapping[str, float], gates: Json = None
) -> StatedRun:
    """`shares` of the samples get a fault of each kind; no sample gets two."""
    folder.mkdir()
    total, enough = setting.stated, setting.enough
    ids = [f"stated-{number:03}" for number in range(total)]
    scenes = [Scene(f"{seed}", number) for number in range(total)]
    faults = dict(_choose(ids, shares, seed))
    answers = {
        name: STATED[faults[name]].plant(scene)
        if name in faults
        else answer_of(scene.right_answer().values())
        for name, scene in zip(ids, scenes, strict=True)
    }
    files = _write(folder, dict(zip(ids, scenes, strict=True)), answers)
    settings = {"runner": "replay", "min_eligible_for_gates": enough, "gates": gates or {}}
    outcome = run({**files, **settings, "out": str(folder / "results")})
    lines = [_RESULT.decode(line) for line in (folder / "results").read_bytes().splitlines()]
    return StatedRun(
        answers,
        faults,
        {line.sample_id: line for line in lines},
        {line.sample_id: row_of(line) for line in lines},
        outcome.report,
        outcome.exit_code,
    )


def _choose(ids: list[str], shares: Mapping[str, float], seed: int) -> Iterator[tuple[str, str]]:
    """Evenly over the samples, one kind after the other."""
    free = ids[seed % len(ids) :] + ids[: seed % len(ids)]
    for kind, share in shares.items():
        wanted = max(1, round(share * len(ids)))
        taken = [free[number * len(free) // wanted] for number in range(wanted)]
        free = [name for name in free if name not in taken]
        yield from ((name, kind) for name in taken)


def _write(
    folder: Path, scenes: Mapping[str, Scene], answers: Mapping[str, StatedAnswer]
) -> dict[str, str]:
    items: list[Json] = [{"__header__": True, "dataset_version": "1", "span_extractor": "claims"}]
    fixtures, recorded = [], []
    for name, scene in scenes.items():
        metadata = {
            "sample_id": name,
            "expected_behaviour": "normal",
            "call_sequence": [
                {"name": call.name, "arguments": call.arguments} for call in scene.calls
            ],
            "required_facts": scene.required,
        }
        items.append({"prompt": scene.prompt, "metadata": metadata})
        for call in scene.calls:
            fixture = {"name": call.name, "key": call.arguments, "result": call.result}
            more = {} if call.match is None else {"match": call.match}
            fixtures.append({**fixture, **more, "sample_id": name})
        recorded.append(record_answer(name, _answer(scene, answers[name])))
    files = {
        "dataset": folder / "dataset.jsonl",
        "fixtures": folder / "fixtures",
        "model": folder / "answers.jsonl",
        "registry": folder / "tools.json",
    }
    files["fixtures"].mkdir()
    _write_lines(files["dataset"], items)
    _write_lines(files["fixtures"] / "all.jsonl", fixtures)
    _write_lines(files["model"], recorded)
    files["registry"].write_bytes(msgspec.json.encode(_tools()))
    return {name: str(path) for name, path in files.items()}


def _answer(scene: Scene, answer: StatedAnswer) -> Answer:
    listing, doing = scene.calls
    turns = (
        Turn("", (Attempt(listing.name, listing.arguments),)),
        Turn("", (Attempt(doing.name, {**doing.arguments, **answer.arguments}),)),
    )
    return Answer(turns, answer.text)


def _write_lines(path: Path, lines: Sequence[Json]) -> None:
    path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))


def _tools() -> list[Json]:
    text: dict[str, Json] = {"type": "string"}
    tools: dict[str, Json] = {}
    for trade in TRADES:
        deed = trade.deeds[0]
        for name, what, keys in (
            (f"list_{trade.things}", f"Lists the {trade.things} of a place.", [trade.place]),
            (f"{deed}_{trade.thing}", f"{deed.capitalize()}s a {trade.thing}.", [trade.key]),
        ):
            more = [] if name.startswith("list_") else list(OPEN_ARGUMENTS)
            tools[name] = {
                "name": name,
                "description": what,
                "parameters": {
                    "type": "object",
                    "properties": dict.fromkeys((*keys, *more), text),
                    "required": keys,
                    "additionalProperties": False,
                },
            }
    return list(tools.values())


def compare_stated(seed: int, kind: str, run: StatedRun, good: StatedRun) -> Compared:
    """Every statement of every sample, then every metric."""
    differences = Differences(seed, kind)
    planted = Counter(run.faults.values())
    found: Counter[str] = Counter(dict.fromkeys(planted, 0))
    true_rows = []
    for name, answer in run.answers.items():
        truth = _truth_of(answer)
        row = run.rows[name]
        agreeing = [
            *_compare_statements(name, answer, _scores(run, name), differences),
            *(
                differences.equal(name, column, true, row.numbers[column])
                for column, true in truth.items()
            ),
            differences.equal(name, "is no copy", not answer.is_copy, row.is_no_copy),
        ]
        fault = run.faults.get(name)
        if fault is None:
            same = _scores(run, name) == _scores(good, name)
            differences.check(name, "scores", "those of the right answer", "others", same)
        found[fault or ""] += all(agreeing)
        true_rows.append(msgspec.structs.replace(row, numbers={**row.numbers, **truth}))
    _compare_report(run, differences)
    totals, before = totals_of(true_rows), totals_of(list(good.rows.values()))
    metrics = {
        name: one
        for name, one in run.report.metrics.items()
        if name not in _BY_CHANCE and "strict" not in name  # no leaf of these results is keyed
    }
    compare_metrics(totals, metrics, "metrics", differences)
    moved = moved_metrics(metrics, good.report.metrics)
    others = tuple(name for name in moved if totals[name] == before[name])
    for name in others:
        differences.check("metrics", name, "not moved", "moved", False)
    kept = {kind: found[kind] for kind in planted}
    marks = [mark for answer in run.answers.values() for mark in answer.marks()]
    return Compared(
        dict(planted),
        kept,
        moved,
        others,
        differences.numbers,
        tuple(differences.found),
        statements=len(marks),
        flags=sum(bool(mark.rule) for mark in marks),
    )


def _scores(run: StatedRun, name: str) -> Scores:
    scores = run.lines[name].scores
    if scores is None:
        raise TypeError(f"{name}: has no scores: {run.lines[name].error}")
    return scores


def _compare_statements(
    name: str, answer: StatedAnswer, scores: Scores, differences: Differences
) -> Iterator[bool]:
    """By place, label and, of flags, rule; a flag names the leaf that it should have been."""
    until = answer.compared_until
    text = answer.text.encode()
    written = list(answer.marks())
    true = Counter(mark[:4] for mark in written)
    told = [one for one in scores.statements if one.start < until]
    measured = Counter(
        (one.start, one.end, one.label, one.rule if one.is_flag else "") for one in told
    )
    for key in sorted((true | measured).keys()):
        start, end, label, rule = key
        what = f"{label} {rule} “{text[start:end].decode()}”"
        yield differences.equal(name, what, true[key], measured[key])
    paths = {(one.start, one.end, one.rule): one.path for one in told}
    for mark in written:
        if mark.path is not None:
            path = paths.get((mark.start, mark.end, mark.rule))
            yield differences.equal(name, f"leaf of {mark.rule}", mark.path, path)
    more = sum(one.is_flag for one in scores.statements if one.start >= until)
    yield differences.equal(name, "flags behind the answer", 0, more)
    invented = [one.path for one in scores.arguments or () if one.origin == "invented"]
    yield differences.equal(name, "invented arguments", list(answer.invented), invented)


def _truth_of(answer: StatedAnswer) -> Numbers:
    """A sentence counts with a good label or a firm flag, and is good without such a flag. What
    stands behind the answer has sentences of its own: there only flags are known."""
    marks = [mark for phrase in answer.phrases for mark in phrase.marks]
    firm = any(mark.is_firm for mark in marks)
    good = any(mark.label in GOOD for mark in marks)
    flagged = {"flagged": int(firm) if firm or good else None}
    if answer.after:
        return flagged
    counted = sound = 0
    for phrase in answer.phrases:
        is_firm = any(mark.is_firm for mark in phrase.marks)
        is_good = any(mark.label in GOOD for mark in phrase.marks)
        counted += is_firm or is_good
        sound += is_good and not is_firm
    found = 2 if good else 0
    precision = sound / counted if counted else 0.0
    total = precision + found / 2
    return {
        **flagged,
        "unchecked": 0,
        "judged": len(marks),
        "spans": counted,
        "grounded_lax": sound,
        "required": 2,
        "found_lax": found,
        "f1_lax": 2 * precision * (found / 2) / total if total else 0.0,
    }


def _compare_report(run: StatedRun, differences: Differences) -> None:
    """The counts of the report by label, rule and origin, added up again from the lines."""
    labels: Counter[str] = Counter()
    firm: Counter[str] = Counter()
    advisory: Counter[str] = Counter()
    origins: Counter[str] = Counter()
    for name in run.lines:
        scores = _scores(run, name)
        labels.update(one.label for one in scores.statements)
        firm.update(one.rule for one in scores.statements if one.tier == "firm")
        advisory.update(one.rule for one in scores.statements if one.tier == "advisory")
        origins.update(one.origin for one in scores.arguments or ())
    counts = run.report.statements
    for what, true, told in (
        ("labels", labels, counts.labels),
        ("firm flags", firm, counts.firm),
        ("advisory flags", advisory, counts.advisory),
        ("origins", origins, counts.origins),
    ):
        shown = {name: count for name, count in told.items() if count}
        differences.equal("report", what, dict(sorted(true.items())), dict(sorted(shown.items())))
