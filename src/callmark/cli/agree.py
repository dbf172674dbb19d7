"""`callmark agree`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from callmark.cli.options import CommandParser
from callmark.errors import UsageError
from callmark.reports.layout import Block, Cell, Table, line, write

if TYPE_CHECKING:
    from callmark.records.jsontext import Json
    from callmark.records.statements import (
        LabelAgreement,
        LabelKeys,
        LabelLine,
        RuleAgreement,
        Tier,
    )


COLUMNS = ("", "right", "judged", "precision", "95 %", "recall", "95 %")
RULE_COLUMNS = (*COLUMNS, "tier", "proposed")


def build_parser() -> CommandParser:
    parser = CommandParser(
        "agree",
        """
        How often are the flags right? Count what people said about the statements
        that `callmark label` drew.

        For every rule and label you get precision (how many of its flags are right)
        and recall (how much it finds). Both come with 95 % intervals; recall is
        estimated for the whole run.

        With two readers (`verdict` and `verdict_2`, or two files) you also get their
        agreement (Cohen's kappa). Where they differ, neither counts.

        --write-tiers makes a rule firm where its flags are surely right in three of
        four cases. It makes a rule advisory where they surely are not. Fewer than
        nine verdicts on the flags of a rule decide nothing.
        """,
        """
        callmark agree --labels labels.jsonl
        callmark agree --labels anna.jsonl --labels ben.jsonl --markdown agreement.md
        callmark agree --labels labels.jsonl runs/latest --write-tiers callmark.yaml
        """,
    )
    parser.add_argument(
        "run",
        type=Path,
        nargs="?",
        metavar="RUN",
        help="the run they were drawn from (default: what FILE.key.json says)",
    )
    parser.add_argument(
        "--labels",
        type=Path,
        action="append",
        required=True,
        metavar="FILE",
        help="statements with verdicts; twice for two readers",
    )
    section = parser.add_argument_group("output")
    section.add_argument("--json", type=Path, metavar="FILE", help="write the figures as JSON")
    section.add_argument("--markdown", type=Path, metavar="FILE", help="write them as Markdown")
    section.add_argument(
        "--write-tiers",
        type=Path,
        metavar="FILE",
        help="write the tiers that follow from the verdicts into this settings file",
    )
    section.add_argument(
        "--judgements",
        type=Path,
        metavar="FILE",
        help="write the verdicts as hashes, without any text, so that they can be published",
    )
    section.add_argument(
        "--source", metavar="NAME", help="with --judgements: what the material is called"
    )
    return parser


def main(arguments: list[str]) -> int:
    options = build_parser().parse_args(arguments)
    if len(options.labels) > 2:
        raise UsageError("--labels: at most two files: one for each reader")
    if (options.judgements is None) != (options.source is None):
        raise UsageError("--judgements and --source go together: give both")

    from callmark.records.jsontext import canonical_json, plain
    from callmark.store.files import atomic_writer, check_writable
    from callmark.store.labels import write_judgements
    from callmark.summary.labels import agree, judgements_of

    written = (options.json, options.markdown, options.write_tiers, options.judgements)
    for path in filter(None, written):
        check_writable(path)
    lines = _read(options.labels)
    keys = _keys(options.labels[0], options.run, lines)
    found = agree(lines, keys)
    if not found.judged and not found.unclear:
        raise UsageError(
            f"{options.labels[0]}: no verdict is set in it yet: set `verdict` to right, wrong or"
            " unclear, or run `callmark label` on a terminal"
        )
    if options.json is not None:
        with atomic_writer(options.json) as stream:
            stream.write(canonical_json(plain(found)).encode() + b"\n")
    if options.markdown is not None:
        with atomic_writer(options.markdown) as stream:
            stream.write(agreement_markdown(found).encode())
    if options.judgements is not None:
        write_judgements(options.judgements, judgements_of(lines, keys, options.source))
    write(agreement_blocks(found), sys.stdout)
    if options.write_tiers is not None:
        _write_tiers(options.write_tiers, found)
    return 0


def _read(files: list[Path]) -> list[LabelLine]:
    """Of two files, the verdicts of the second one are the second reader's."""
    from msgspec.structs import replace

    from callmark.store.labels import read_labels

    lines = read_labels(files[0])
    if len(files) == 1:
        return lines
    others = {one.statement_id: one for one in read_labels(files[1])}
    if others.keys() != {one.statement_id for one in lines}:
        raise UsageError(
            f"{files[1]}: its statements are not those of {files[0]}: copy one file of"
            " `callmark label` for both readers"
        )
    return [replace(one, verdict_2=others[one.statement_id].verdict) for one in lines]


def _keys(labels: Path, run: Path | None, lines: list[LabelLine]) -> LabelKeys:
    from callmark.scorers.labels import keys_of_run
    from callmark.store.files import read_results
    from callmark.store.labels import read_keys
    from callmark.store.runs import results_of

    wanted = {one.statement_id for one in lines}
    if run is None:
        keys, where = read_keys(labels), str(labels)
    else:
        path = results_of(run)
        keys, where = keys_of_run(read_results(path), wanted), str(path)
    missing = sorted(wanted - {key.statement_id for key in keys.keys})
    if missing:
        raise UsageError(
            f"{where}: has nothing about statement {missing[0]}"
            f" ({len(missing)} of {len(wanted)}): these are no labels of this run, or it was scored"
            " again since. Name the run that they were drawn from."
        )
    return keys


def _write_tiers(path: Path, found: LabelAgreement) -> None:
    proposed = {one.name: one.proposed for one in found.rules if one.proposed is not None}
    if not proposed:
        write(
            [line(f"{path}: not changed: the verdicts are too few to decide on a rule")], sys.stdout
        )
        return
    put_tiers(path, proposed)
    told = ", ".join(f"{name} {tier}" for name, tier in sorted(proposed.items()))
    write([line(f"{path}: tiers: {told}")], sys.stdout)


def put_tiers(path: Path, tiers: Mapping[str, Tier]) -> None:
    """The settings file with these tiers, the others that it has, and everything else as it was."""
    import yaml

    from callmark.store.files import atomic_writer
    from callmark.store.settings import read_settings

    lines: list[str] = []
    values: dict[str, Json] = {}
    earlier: Json = None
    if path.exists():
        settings = read_settings(path)
        values = dict(settings.values)
        earlier = values.pop("tiers", None)
        lines = path.read_text("utf-8-sig").splitlines(keepends=True)
        if ("tiers",) in settings.lines:
            start = settings.lines["tiers",] - 1
            end = start + 1
            while end < len(lines) and (lines[end][:1] in " \t" or not lines[end].strip()):
                end += 1
            del lines[start:end]
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    whole = {**(earlier if isinstance(earlier, dict) else {}), **tiers}
    block = "".join(["tiers:\n", *(f"  {name}: {whole[name]}\n" for name in sorted(whole))])
    text = "".join(lines) + block
    try:
        is_as_it_was = yaml.safe_load(text) == {**values, "tiers": whole}
    except yaml.YAMLError:
        is_as_it_was = False
    if not is_as_it_was:
        raise UsageError(f"{path}: cannot be edited without changing it; put this in:\n{block}")
    with atomic_writer(path) as stream:
        stream.write(text.encode())


def agreement_blocks(found: LabelAgreement) -> Iterator[Block]:
    for number, text in enumerate(_facts(found)):
        yield line(text, "strong" if number == 0 else "plain")
    for title, columns, rows in _tables(found):
        yield line()
        yield line(title, "strong")
        cells = tuple(tuple(Cell(text) for text in row) for row in rows)
        yield Table(columns, cells, right=frozenset(range(1, len(COLUMNS))))


def agreement_markdown(found: LabelAgreement) -> str:
    from callmark.reports.markdown import table

    lines = ["## How far the flags agree with people", ""]
    lines += [f"{text}  " for text in _facts(found)]
    for title, columns, rows in _tables(found):
        lines += ["", f"**{title}**", "", *table(columns, rows)]
    return "\n".join(lines) + "\n"


def _tables(
    found: LabelAgreement,
) -> Iterator[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
    yield "flags", COLUMNS, [_row(one) for one in (found.all_flags, found.firm_flags)]
    if found.rules:
        rows = [(*_row(one), one.tier or "", one.proposed or "–") for one in found.rules]
        yield "by rule", RULE_COLUMNS, rows
        yield "by label", COLUMNS, [_row(one) for one in found.labels]


def _facts(found: LabelAgreement) -> Iterator[str]:
    yield (
        f"{found.judged} of {found.lines} statements are judged: {found.wrong} are wrong"
        f" ({found.unclear} unclear, {found.unread} not read)"
    )
    yield (
        f"of {found.judged_unflagged} without a flag, {found.wrong_unflagged} are wrong:"
        " these are missed"
    )
    if found.read_twice:
        value = "not computable" if found.kappa is None else f"{found.kappa:.2f}"
        yield f"two readers: {found.alike} of {found.read_twice} verdicts alike, κ {value}"
    if found.all_flags.recall is not None:
        yield "recall is estimated for the whole run, from how many of each kind were read"


def _row(one: RuleAgreement) -> tuple[str, ...]:
    share = "–" if not one.judged else f"{one.right / one.judged:.2f}"
    recall = "–" if one.recall is None else f"{one.recall:.2f}"
    return (
        one.name,
        str(one.right),
        str(one.judged),
        share,
        _interval(one.precision),
        recall,
        _interval(one.recall_interval),
    )


def _interval(bounds: Sequence[float] | None) -> str:
    return "–" if bounds is None else f"{bounds[0]:.2f} to {bounds[1]:.2f}"
