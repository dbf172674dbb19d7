"""What the findings say, as a table for the terminal and as docs/proof.md. No clock is in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from callmark.datasets.generate import FAULTS
from callmark.records.statements import RULES
from dev.prove.experiments import (
    ALL_STATED,
    ALONE,
    ALONE_RATE,
    GOOD,
    KINDS,
    MIXED,
    MIXED_RATE,
    RIGHT,
    STATED_KINDS,
    Finding,
)
from dev.prove.measuring import Setting
from dev.prove.stated_faults import STATED, StatedFault

MOST_DIFFERENCES = 50
_ORDER = (GOOD, *KINDS, RIGHT, *STATED_KINDS)


class Line(msgspec.Struct, frozen=True):
    """One kind over all seeds. `moved` are the metrics that moved in any of them; `flags` of so
    many `statements` were planted."""

    kind: str
    seeds: int
    planted: int
    found: int
    moved: tuple[str, ...]
    others: int
    differences: int
    statements: int
    flags: int


def lines_of(findings: Sequence[Finding]) -> list[Line]:
    tried = {finding.kind for finding in findings}
    return [_line(kind, findings) for kind in _ORDER if kind in tried]


def _line(kind: str, findings: Sequence[Finding]) -> Line:
    mine = [finding for finding in findings if finding.kind == kind]
    return Line(
        kind=kind,
        seeds=len(mine),
        planted=sum(sum(finding.compared.planted.values()) for finding in mine),
        found=sum(sum(finding.compared.found.values()) for finding in mine),
        moved=tuple(sorted({name for finding in mine for name in finding.compared.moved})),
        others=sum(len(finding.compared.others) for finding in mine),
        differences=sum(len(finding.differences) for finding in mine),
        statements=sum(finding.compared.statements for finding in mine),
        flags=sum(finding.compared.flags for finding in mine),
    )


def terminal(findings: Sequence[Finding]) -> Iterator[str]:
    yield f"{'kind':<26}{'seeds':>6}{'planted':>9}{'found':>8}{'others moved':>14}{'differ':>8}"
    for line in lines_of(findings):
        yield (
            f"{line.kind:<26}{line.seeds:>6}{line.planted:>9}{line.found:>8}"
            f"{line.others:>14}{line.differences:>8}"
        )
    numbers = sum(finding.compared.numbers for finding in findings)
    differences = [entry for finding in findings for entry in finding.differences]
    yield f"{numbers:,} numbers compared, {len(differences)} differ"
    yield from map(str, differences[:MOST_DIFFERENCES])
    if len(differences) > MOST_DIFFERENCES:
        yield f"… and {len(differences) - MOST_DIFFERENCES} more"


def document(findings: Sequence[Finding], setting: Setting) -> str:
    lines = lines_of(findings)
    numbers = sum(finding.compared.numbers for finding in findings)
    differences = sum(line.differences for line in lines)
    stated = sum(finding.kind in (RIGHT, *STATED_KINDS) for finding in findings)
    samples = setting.total * (len(findings) - stated) + setting.stated * stated
    by_kind = {line.kind: line for line in lines}
    return _PAGE.format(
        seeds=lines[0].seeds,
        total=setting.total,
        stated=setting.stated,
        runs=len(findings),
        samples=f"{samples:,}",
        right=f"{by_kind[RIGHT].statements:,}",
        statements=f"{sum(line.statements for line in lines):,}",
        all_planted=by_kind[ALL_STATED].planted,
        all_found=by_kind[ALL_STATED].found,
        stated_kinds=len(STATED),
        stated_table="\n".join(_stated_rows(by_kind, findings)),
        unseen_table="\n".join(_unseen_rows(by_kind)),
        numbers=f"{numbers:,}",
        differences=differences,
        kinds=len(FAULTS),
        more=len(ALONE) - len(FAULTS),
        alone=f"{ALONE_RATE:.0%}",
        mixed=f"{MIXED_RATE:.0%}",
        planted_table="\n".join(
            _planted_rows([line for line in lines if line.kind in (GOOD, *KINDS)])
        ),
        mixed_table="\n".join(_mixed_rows(findings)),
        gate_table="\n".join(_gate_rows(findings)),
    )


def _planted_rows(lines: Sequence[Line]) -> Iterator[str]:
    for line in lines:
        moved = ", ".join(f"`{name}`" for name in line.moved) or "none"
        if line.kind == MIXED:
            moved = "see below"
        yield (
            f"| {line.kind.replace('_', ' ')} | {line.seeds} | {line.planted} | {line.found} |"
            f" {line.others} | {moved} |"
        )


def _stated_rows(lines: Mapping[str, Line], findings: Sequence[Finding]) -> Iterator[str]:
    for kind, fault in STATED.items():
        if not fault.is_unseen:
            line = lines[kind]
            yield (
                f"| {kind.replace('_', ' ')} | {fault.what} | {_found_by(fault)} | {line.planted} |"
                f" {line.found} | {line.flags} | {_failed_gate(kind, fault, findings)} |"
            )


def _found_by(fault: StatedFault) -> str:
    if fault.rule is None:
        return "`copying`" if fault.name == "dumped_results" else "`arguments`"
    rule = RULES[fault.rule]
    return f"`{rule.name}`: `{rule.label}`, {rule.tier}"


def _failed_gate(kind: str, fault: StatedFault, findings: Sequence[Finding]) -> str:
    judged = [finding.judged for finding in findings if finding.kind == kind and finding.judged]
    if fault.gate is None:
        return "none; all pass"
    failed = sum(one.status == "fail" and one.exit_code == 1 for one in judged)
    return f"`{fault.gate}` ({judged[0].shipped}): {failed} of {len(judged)}"


def _unseen_rows(lines: Mapping[str, Line]) -> Iterator[str]:
    for kind, fault in STATED.items():
        if fault.is_unseen:
            line = lines[kind]
            yield f"| {kind.replace('_', ' ')} | {fault.what} | {line.planted} | {line.flags} |"


def _mixed_rows(findings: Sequence[Finding]) -> Iterator[str]:
    mixed = [finding.compared for finding in findings if finding.kind == MIXED]
    for kind in FAULTS:
        planted = sum(compared.planted[kind] for compared in mixed)
        found = sum(compared.found[kind] for compared in mixed)
        yield f"| {kind.replace('_', ' ')} | {planted} | {found} |"


def _gate_rows(findings: Sequence[Finding]) -> Iterator[str]:
    for kind, fault in ALONE.items():
        judged = [finding.judged for finding in findings if finding.kind == kind and finding.judged]
        failed = sum(one.status == "fail" and one.exit_code == 1 for one in judged)
        values = sorted({one.value for one in judged if one.value is not None})
        low, high = (f"{value:.4g}" for value in (values[0], values[-1]))
        shown = low if low == high else f"{low} … {high}"
        policy = judged[0].shipped
        yield (
            f"| {kind.replace('_', ' ')} | `{fault.gate}` | {policy} | {shown} |"
            f" {failed} of {len(judged)} |"
        )


_PAGE = """\
# The proof

Do not believe a scorer that nobody has tried to fool. So faults are planted in answers whose true
scores are known by construction, and the whole pipeline has to find them: exactly as many as were
planted, in exactly the numbers that they touch, and in no others.

`make prove` writes this page, the same on every machine, byte for byte:

```
make prove                                  # all of it: writes this page, exit 1 on any difference
python -m dev.prove --quick                 # a small one, writes nothing
python -m dev.prove --seeds 3 --total 1000  # other seeds, other sizes
python -m dev.prove --only altered_number   # one kind of fault
python -m dev.prove --only other_record     # one kind of wrong statement
```

## What is done

For each of {seeds} seeds, `callmark dataset generate` makes a dataset of {total} samples with its
fixtures: once with good answers, once for every kind of fault with that fault alone in {alone} of
the samples that can have it, and once with all {kinds} kinds of the generator together, {mixed} of
each and at least one. ({more} more kinds are planted by the proof itself, for numbers that those do
not touch.) Every dataset goes through `callmark run` with the replay runner: reader, broker, loop,
scorer, summary, gates.

- **Sample by sample**, the numbers of a result line that the report is made of are compared with
  the truth kept beside the answers, which comes from planting the fault, never from the scorer.
  (How much of the results is copied, and where arguments come from, is only added up again here;
  below, under Statements, it is planted.)
- **Metric by metric**, the report (all metrics, the blocks per locale, slice and tool, the
  histogram) is compared with the same numbers added up a second time from the truth, in exact
  fractions, by code that shares nothing with callmark's summary.
- **Nothing else moves**: a sample without a fault has, to the last field, the scores of the good
  answer, and a metric that the planted samples do not touch is that of the good answers.

{runs} runs, {samples} scored samples, **{numbers} numbers compared, {differences} differ.**

## Planted and found

`found`: came back with every number of the sample as planted. `others`: metrics that moved
although the planted faults do not touch them. Good answers have nothing planted, and nothing may
differ from a perfect score.

| fault | seeds | planted | found | others | metrics that moved, as they had to |
|---|---|---|---|---|---|
{planted_table}

All kinds together, at most one in a sample:

| fault | planted | found |
|---|---|---|
{mixed_table}

## Gates

Good answers pass every gate. With {alone} of one fault, the gate that is named for it fails, and
the run ends with exit code 1. Gates that are shipped as `warning_only` or `clear_fail` are made
binding for this table (`hard_fail`); as shipped they warn at least. The values are of all seeds.

| fault | its gate | as shipped | value at {alone} | seeds that failed |
|---|---|---|---|---|
{gate_table}

## Statements

The rules of [scoring](scoring.md) are about records: which value belongs to which of them. So
another world is made for them: for each seed {stated} samples with a list of boats, flights or
cabins (price, fee, currency, sizes with units, dates, yes, no and null, states, opening hours), a
second call that does something, and an answer of 14 sentences and list items, read with `claims`.
The writer of an answer knows where each statement begins and ends and which label it has; of each
kind of mistake it also knows the rule that has to flag it and the leaf that the flag must name.

What is compared: every statement with place and label, every flag with its rule and leaf, invented
arguments with their paths, whether it is a copy, precision, recall and F1, the counts of the report
by label, rule and origin, and all metrics. (Metrics of chance are left out: two worlds may have as
many boats. Strict ones as well: no leaf is keyed.) The right answers have {right} statements and
**no flag**; in all runs together {statements} statements were compared.

| mistake | what it says | found by | answers | found | flags | gate that fails |
|---|---|---|---|---|---|---|
{stated_table}

`found`: came back with every statement as written, the flags on the mistake and none beside it.
{alone} of the answers have the mistake. `flagged_sample_rate` and `invented_argument_rate` are made
binding at 0.05; the other gates keep their bounds and are made binding. Flags of advisory rules
fail no gate; the denied answer fails because nothing in it counts any more. All {stated_kinds}
kinds together, one in an answer: {all_found} of {all_planted} found.

**What no rule sees**, by design. These mistakes are planted too, and none is flagged:

| mistake | why | answers | flags |
|---|---|---|---|
{unseen_table}

These figures show that the rules do what they promise where results and sentences are as clear as
here. How often they find the mistakes of real answers, and how often they are wrong, is measured on
real answers: [agreement](agreement.md) and [the campaign](campaign.md).

## What else is tested

`tests/property/test_metamorphic.py` tests transformations that must not change a score (another
order of samples, shards, other ids, irrelevant results, another order of JSON keys, NFC and NFD,
CRLF and LF), and that more evidence never lowers grounding.
"""
