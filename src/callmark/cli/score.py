"""`callmark score`."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from callmark.cli.options import (
    GATES_ON_ANSWERS,
    INPUTS,
    SCORING,
    CommandParser,
    Group,
    add_groups,
    flags_given,
)
from callmark.cli.reporting import (
    RunPaths,
    add_detail_options,
    add_form_options,
    forms_of,
    present,
)
from callmark.cli.run import PAGE_COSTS, PAGE_TRIALS
from callmark.errors import BadInput, UsageError
from callmark.reports.layout import Block, line, write

if TYPE_CHECKING:
    from callmark.config import RunConfig
    from callmark.datasets.importing.importing import ImportReport
    from callmark.records.seams import PluginRow

# What a folder holds that is a run, finished or not.
FILES_OF_RUN = ("results.jsonl", "report.json", "results.jsonl.journal")
ITEMS = frozenset({"jsonl", "bfcl"})  # formats of questions; nobody has answered them
# How answers begin that `score` reads itself, be they broken.
_HEAD = 1 << 16
_GZIP = b"\x1f\x8b"
_RECORDED = (b'"model_output"', b'"tool_trace"', b'"messages"', b'"sample_id"')
READ: Group = {flag: settings for flag, settings in INPUTS.items() if flag != "--fixtures"}
WRITTEN: Group = {
    "--out": {"metavar": "FILE", "help": "write the scored lines here"},
    "--report": {"metavar": "FILE", "help": "write the report here"},
}
GROUPS = {
    "input": READ,
    "scoring": SCORING,
    "gates and exit code": GATES_ON_ANSWERS,
    "output": WRITTEN,
}
COMMON = (
    "--in",
    "--answers",
    "--gate",
    "--out",
    "--report",
    "--config",
    "-o",
)  # what most people need


def build_parser() -> CommandParser:
    parser = CommandParser(
        "score",
        """
        Score what already happened, without a model or fixtures: logs, conversations,
        or the results of a run.

        Logs can be of any format that `callmark dataset import` reads. You see which
        statements the tools do not back, which actions were never taken, and which
        arguments came from nowhere. You also see which calls break their schema.

        Answers can be a results file of `callmark run` (shards may be concatenated).
        Results of another program work too, with `sample_id`, `model_output` and
        `tool_trace`. With --in, prompts and expectations come from that dataset,
        matched by id.

        Logs without a dataset have no expectations. Statements, arguments and privacy
        are reported, and gates on samples that need a tool do not apply. A scored log
        goes to runs/NAME-N, with a page, unless --out says where.
        """,
        """
        callmark score logs/
        callmark score runs/latest --gate integration_f1_macro_lax=0.95
        callmark score conversations.jsonl --out scored.jsonl --report report.json
        """,
        common=COMMON,
    )
    parser.add_argument(
        "file",
        nargs="+",
        metavar="FILE",
        help="logs: files, folders, patterns, - for standard input; or results, or a run's folder",
    )
    parser.add_argument(
        "--answers",
        type=Path,
        metavar="ANSWERS",
        help="the agent's answers, by sample_id, if FILE is a trace of `fixtures serve`",
    )
    add_groups(parser, GROUPS)
    add_form_options(parser)
    add_detail_options(parser, "verdict", "all gates and metrics, tools, locales and slices")
    return parser


def main(arguments: list[str]) -> int:
    options = build_parser().parse_args(arguments)
    config = _config_of(options)
    is_log = _is_log(options, config)
    if config.out is None and is_log:
        from callmark.store.runs import new_run_folder

        with new_run_folder(_name_of(options.file[0])) as folder:
            return _score(options, _placed(config, folder), is_log=is_log)
    return _score(options, config, is_log=is_log)


def _score(options: argparse.Namespace, config: RunConfig, *, is_log: bool) -> int:
    from callmark.reports.finished_run import FinishedRun, wanted_form, write_forms
    from callmark.reports.layout import RunProgress
    from callmark.run.play import cross_scorer
    from callmark.run.rescore import score_file

    config = _without_speed(config) if is_log else config
    forms = forms_of(options, has_trials=config.out is not None)
    page = None if not is_log or config.report is None else Path(config.report).with_suffix(".html")
    with (
        RunProgress(sys.stderr, silent=options.quiet) as progress,
        ExitStack() as stack,
    ):
        imported = None
        if is_log:
            file, imported = _import(options.file, config, stack)
        else:
            given = _with_answers(_file_of(Path(options.file[0])), options.answers)
            file = stack.enter_context(given)
        outcome = score_file(file, config, progress=progress)
    finished = FinishedRun(
        report=outcome.report,
        results=None if config.out is None else Path(config.out),
        cross_score=cross_scorer(),
        fail_on_inconclusive=config.fail_on_inconclusive,
    )
    more: tuple[str, ...] = ()
    if page is not None and outcome.report.counts.trials > PAGE_TRIALS:
        more = (f"callmark report {config.out} --html {page}: the page, {PAGE_COSTS}",)
        page = None
    write_forms(finished, forms if page is None else (*forms, wanted_form(page, ".html")))
    if imported is not None and not options.quiet:
        write(_log_blocks(imported, config), sys.stdout)
    if is_log and "-" not in options.file:
        logs = " ".join(map(shlex.quote, options.file))
        more += (f"callmark dataset import {logs} --expect observed --out FILE: a test set of it",)
    shown = None if page is None else str(page)
    places = RunPaths(results=config.out, report=config.report, page=shown, dataset=config.dataset)
    # Without lines there are no findings, so the report has to tell them.
    told = is_log and config.out is not None
    present(
        outcome.report,
        places,
        quiet=options.quiet,
        verbose=options.verbose,
        more=more,
        is_log=told,
    )
    return outcome.exit_code


def _is_log(options: argparse.Namespace, config: RunConfig) -> bool:
    """Answers are results, or belong to a dataset or to a trace; everything else is a log."""
    from callmark.datasets.importing.sources import is_pattern
    from callmark.plugins import rows_of

    if config.dataset is not None or options.answers is not None:
        if len(options.file) > 1:
            raise UsageError("with --in or --answers one file is scored at a time")
        return False
    if len(options.file) > 1 or options.file[0] == "-":
        return True
    path = Path(options.file[0])
    if path.is_dir():
        return not any((path / name).exists() for name in FILES_OF_RUN)
    if not path.exists():
        return is_pattern(options.file[0])
    return _holds_log(path, rows_of("importer"))


def _holds_log(path: Path, added: Sequence[PluginRow]) -> bool:
    """Results lines have a prompt too, or nothing that an importer knows. A file of no known kind
    is taken for a log: an import says what it looks like, and what was tried."""
    from callmark.datasets.importing.importing import recognise
    from callmark.store.files import open_input

    try:
        found = recognise(path, added)
    except BadInput:
        found = None
    if found is not None:
        return found not in ITEMS
    with open_input(path) as stream:  # a pipe would be waited for
        head = stream.read(_HEAD)
    return head.startswith(_GZIP) or not (head.isspace() or any(key in head for key in _RECORDED))


def _import(files: Sequence[str], config: RunConfig, stack: ExitStack) -> tuple[Path, ImportReport]:
    """The answers in the logs, each with its tools and with what the log says of it."""
    import tempfile

    from callmark.datasets.importing.choosing import Choice
    from callmark.datasets.importing.importing import import_dataset
    from callmark.datasets.importing.writing import ImportPaths
    from callmark.live.cleaning import LogCleaner
    from callmark.plugins import rows_of

    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    places = ImportPaths(
        dataset=folder / "log.jsonl",
        registry=folder / "tools.json",
        fixtures=folder / "fixtures",
        answers=folder / "answers.jsonl",
    )
    tools = None if config.registry is None else Path(config.registry)
    cleaner = LogCleaner(pii=False)  # results and pages are shown to others than the log is
    report = import_dataset(
        files,
        places,
        tools=tools,
        added=rows_of("importer"),
        choice=Choice(answered=True),
        each=lambda entry, desk: (cleaner.clean(entry),),
    )
    return places.answers, report


@contextmanager
def results_of_log(path: Path) -> Iterator[Path | None]:
    """A log, scored into a file that goes when it was read; None: it is none."""
    import os
    import tempfile

    from callmark.config import load_config
    from callmark.plugins import rows_of
    from callmark.run.rescore import score_file

    if not path.is_file() or not _holds_log(path, rows_of("importer")):
        yield None
        return
    with ExitStack() as stack:
        out = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "results.jsonl"
        config = load_config(Path(os.devnull), {"out": str(out)})
        score_file(_import([str(path)], config, stack)[0], config)
        yield out


def _file_of(named: Path) -> Path:
    """A folder stands for the results in it."""
    from callmark.store.runs import results_of

    return results_of(named) if named.is_dir() else named


@contextmanager
def _with_answers(file: Path, answers: Path | None) -> Iterator[Path]:
    """The file that is scored: a trace and the answers that belong to it become one."""
    import tempfile

    from callmark.live.server import join_answers

    if answers is None:
        yield file
        return
    with tempfile.TemporaryDirectory() as folder:
        joined = Path(folder) / file.name
        with joined.open("wb") as stream:
            join_answers(file, answers, stream)
        yield joined


def _config_of(options: argparse.Namespace) -> RunConfig:
    """Gates and tools as in `callmark run`; but the files that a run reads and writes are not
    those of a second scoring, so only flags name them here."""
    import msgspec

    from callmark.config import load_config

    flags = flags_given(options, list(GROUPS.values()))
    config = load_config(getattr(options, "config", None), flags)
    return msgspec.structs.replace(
        config, dataset=flags.get("in"), out=flags.get("out"), report=flags.get("report")
    )


def _placed(config: RunConfig, folder: Path) -> RunConfig:
    import msgspec

    from callmark.store.runs import REPORT, RESULTS

    report = config.report or str(folder / REPORT)
    return msgspec.structs.replace(config, out=str(folder / RESULTS), report=report)


def _without_speed(config: RunConfig) -> RunConfig:
    """How fast an agent was, reading its log again does not tell; who asks for it gets it."""
    import msgspec

    from callmark.summary.gates import PERF_BUDGET

    shipped, *above = config.gates
    if any(PERF_BUDGET in layer.gates for layer in above):
        return config
    kept = {name: fields for name, fields in shipped.gates.items() if name != PERF_BUDGET}
    return msgspec.structs.replace(
        config, gates=(msgspec.structs.replace(shipped, gates=kept), *above)
    )


def _name_of(source: str) -> str:
    """Of a log's run: what it is called without its endings."""
    return "log" if source == "-" else Path(source).name.split(".")[0] or "log"


def _log_blocks(imported: ImportReport, config: RunConfig) -> Iterator[Block]:
    """What a log shows, by kind: how often, and the first places."""
    from callmark.cli.dataset_import import describe_sources, unmapped_blocks
    from callmark.reports.log_findings import find_in_log
    from callmark.reports.terminal import checked_text, show_command
    from callmark.store.files import read_results
    from callmark.summary.metrics import count_of

    read = describe_sources(imported)
    if config.out is None:
        yield line(read, "strong")
    else:
        found = find_in_log(read_results(Path(config.out)))
        counted = count_of(found.conversations, "conversation"), count_of(found.calls, "call")
        yield line(f"{read}: {', '.join(counted)}", "strong")
        yield line(f"statements: {checked_text(found.by_label, found.flagged)}")
        if found.silent:
            have = "conversation has" if found.silent == 1 else "conversations have"
            it = "it" if found.silent == 1 else "them"
            yield line(f"{found.silent} {have} no answer text: nothing to check in {it}")
        for kind in found.kinds:
            yield line(f"{kind.count:>5}  {kind.what}", "warn" if kind.count else "plain")
            for place in kind.first:
                yield line(place, indent=9)
            if left := kind.count - len(kind.first):
                yield line(f"and {left} more", "quiet", indent=9)
            if kind.to_look_at:
                yield show_command(config.out, kind.to_look_at, indent=9)
        if found.to_look_at:
            yield show_command(config.out, found.to_look_at)
    yield from unmapped_blocks(imported)
    yield line()
