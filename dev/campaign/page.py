"""The campaign for people: lines for the terminal, and docs/campaign.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

from callmark.scorers.score import SCORER_VERSION
from dev.campaign.parts import WHOLE, Findings

STATED = "statements"
INTRO = """\
# The campaign

Every claim of callmark is attacked here: true answers are made false, right calls wrong, files and
servers broken, and what somebody who means harm would send is sent. This page is written by
`make campaign` (seeded, about an hour), which ends with 1 if an altered answer keeps its score
without a reason, an input ends in a traceback, an attack gets through, two processes differ, or a
killed run loses something.

```
make campaign                         # all of it; writes this page if CALLMARK_REAL_DATA is set
python -m dev.campaign --quick        # a small one, writes nothing
python -m dev.campaign --only attacks # or answers, calls, statements, faults, endpoint, …
python -m dev.campaign --skip kills   # all but the half hour of kills; writes this page
```
"""
MUTATIONS = """\
## Mutations of the score

An answer is taken that is right, one value of it that a tool result supports is altered, and the
answer is scored again. The altered value has to lose its support: it gets a flag, or its sentence
no longer counts as grounded; and F1 must not rise. A call is altered likewise, and
`call_f1` or the parity of the calls has to fall. `generated` are the samples of `callmark dataset
generate` with good answers, `real` are {real} of two public agent benchmarks (their own
calls are what is expected there).

`F1 fell` is less than `found out` where the sentence holds other evidence: with markers a sentence
is grounded by one value, and the false one beside it is counted as unsupported.
"""
SURVIVORS = """\
### Those that were not found out, and why

A value that is another one of the evidence, was said, or follows by arithmetic is looked up by
code of its own: in the leaf that the match names, in what was said, by trying sums. These lookups
are generous, and they start from the label that the scorer gave. What is not claimed is a rule, not
looked up. What has no reason would stand here as `unexplained`, and end the campaign with 1.
"""
STATEMENTS = """\
## Statements

Mistakes of every kind that the rules are there for (and of some that no rule is there for) are
planted in real answers, in clauses without a flag: up to {most} of a kind in each half of each
source, chosen by hashes. Found: a flag stands in the sentence that was not there before. Real
answers are not as clear as [generated ones](proof.md), where each of these kinds is found; this
table says by how much. How the rules do on both halves, and how often they flag what is right,
is in [agreement](agreement.md).
"""
UNFOUND = """\
### Mistakes that no rule found, by class

The class is what the rules made of the altered place instead. A kind whose place nothing was made
of, though it is a value, would stand here as `unexplained`, and end the campaign with 1.
"""
FAULTS = """\
## Faulty input

A good file of each kind, with every feature in it, is spoilt: bits, bytes, lines, encodings, values
of other types, huge numbers, deep nesting. It is read, with every line accounted for, or refused
with a named error that says the file and the line. An endpoint answers with spoilt bodies, statuses
and broken connections; each trial is scored once or marked as an error.
"""
ATTACKS = """\
## Attacks

Each in a process of its own, with a limit of time and memory. *held*: nothing happened that should
not have. *refused*: a named error.
"""
KILLS = """\
## Kills at the end of a run

A run of {samples} samples whose every trial (or all but the last 20) is in its journal is resumed
against a server that counts what it is asked, and ended with `kill -9` at a random moment between
two steps of its end, each as often as the others. Then it is resumed once more: results, report
(but for `timing`) and exit code are those of a run that nobody killed, every other form is there,
the journal is gone, and nothing was asked for that was answered.
"""


def terminal(findings: Findings) -> Iterator[str]:
    for (part, source), tally in findings.tallies.items():
        yield f"{part}, {source}: {tally.total()} altered, {tally.killed.total()} found out"
        for (kind, reason), count in sorted(tally.survived.items()):
            yield f"  {kind}: {count} {reason}"
    for part, rows in findings.ends.items():
        total: Counter[str] = sum(rows.values(), Counter())
        yield f"{part}: " + ", ".join(f"{count} {end}" for end, count in total.most_common())
    yield f"{len(findings.problems)} problems"
    yield from findings.problems[:40]


def document(findings: Findings, seed: int, skipped: Collection[str] = ()) -> str:
    mutants = sum(tally.total() for tally in findings.tallies.values())
    faults = findings.ends.get("faults", {})
    files = sum(ends.total() for ends in faults.values())
    attacks = findings.ends.get("attacks", {})
    attacked = sum(ends.total() for ends in attacks.values())
    repeated: Counter[str] = sum(findings.ends.get("determinism", {}).values(), Counter())
    parts = [
        INTRO,
        f"Scorer version {SCORER_VERSION}, seed {seed}: **{mutants:,} mutations, {files:,} faulty"
        f" inputs, {attacked} attacks; {len(findings.problems)} problems.**\n",
        MUTATIONS.format(real="314 episodes"),
        *_mutations(findings),
        SURVIVORS,
        *_survivors(findings),
        STATEMENTS.format(most=WHOLE.statements),
        *_stated(findings),
        UNFOUND,
        *_unfound(findings),
        FAULTS,
        *_faults(faults),
        ATTACKS,
        *_attacks(attacks),
        "## Determinism\n",
        f"The same dataset is run, scored again, reported and checked in {repeated['settings']}"
        " child processes with other hash seeds, locales (some that no machine has), time zones and"
        f" screen widths: {repeated['files']} files and outputs each, equal byte for byte (`timing`"
        " and the gate about time left out).\n",
        KILLS.format(samples=f"{WHOLE.killed:,}"),
        *_kills(findings.ends.get("kills", {})),
    ]
    if skipped:
        parts.append(f"Left out of this run, and empty above: {', '.join(skipped)}.\n")
    return "\n".join(parts)


def _table(head: tuple[str, ...], rows: list[tuple[object, ...]]) -> Iterator[str]:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(_cell(cell) for cell in row)} |" for row in rows]
    yield "\n".join(lines) + "\n"


def _cell(value: object) -> str:
    text = f"{value:,}" if isinstance(value, int) else str(value)
    return text.replace("|", "\\|")


def _mutations(findings: Findings) -> Iterator[str]:
    rows: list[tuple[object, ...]] = []
    for (part, source), tally in findings.tallies.items():
        for kind in tally.kinds() if part != STATED else ():
            total, killed = tally.of(kind), tally.killed[kind]
            share = f"{killed / total:.1%}"
            rows.append((part, source, kind, total, killed, share, tally.lowered[kind]))
    head = ("of", "source", "altered", "mutations", "found out", "share", "F1 fell")
    return _table(head, rows)


def _survivors(findings: Findings) -> Iterator[str]:
    found: Counter[tuple[str, str, str]] = Counter()
    for (part, source), tally in findings.tallies.items():
        for (kind, reason), count in tally.survived.items() if part != STATED else ():
            found[reason, kind, source] += count
    rows: list[tuple[object, ...]] = [(*key, count) for key, count in sorted(found.items())]
    return _table(("reason", "altered", "source", "mutations"), rows)


def _stated(findings: Findings) -> Iterator[str]:
    rows: list[tuple[object, ...]] = []
    for (part, source), tally in findings.tallies.items():
        for kind in sorted(tally.kinds()) if part == STATED else ():
            total, killed = tally.of(kind), tally.killed[kind]
            share = f"{killed / total:.1%}"
            rows.append((source, kind.replace("_", " "), total, killed, share, tally.lowered[kind]))
    return _table(("source", "mistake", "planted", "found", "share", "by a firm rule"), rows)


def _unfound(findings: Findings) -> Iterator[str]:
    found: Counter[tuple[str, str]] = Counter()
    for (part, _), tally in findings.tallies.items():
        for (kind, reason), count in tally.survived.items() if part == STATED else ():
            found[reason, kind.replace("_", " ")] += count
    rows: list[tuple[object, ...]] = [(*key, count) for key, count in sorted(found.items())]
    return _table(("class", "mistake", "not found"), rows)


def _faults(faults: dict[str, Counter[str]]) -> Iterator[str]:
    kinds = sorted({end for ends in faults.values() for end in ends} - {"read", "traceback"})
    rows: list[tuple[object, ...]] = [
        (name, ends.total(), ends["read"], *(ends[kind] for kind in kinds), ends["traceback"])
        for name, ends in faults.items()
    ]
    return _table(("input", "inputs", "read", *kinds, "traceback"), rows)


def _attacks(attacks: dict[str, Counter[str]]) -> Iterator[str]:
    rows: list[tuple[object, ...]] = [
        (name, ends.total(), ends["held"], ends["refused by name"])
        for name, ends in attacks.items()
    ]
    return _table(("attack", "tried", "held", "refused"), rows)


def _kills(kills: dict[str, Counter[str]]) -> Iterator[str]:
    found: Counter[str] = sum(kills.values(), Counter())
    rows: list[tuple[object, ...]] = [*sorted(found.items())]
    return _table(("how far it was", "kills"), rows)
