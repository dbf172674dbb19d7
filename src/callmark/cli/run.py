"""`callmark run`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from callmark.cli.compare import DECIDED, options_of
from callmark.cli.compare import present as present_comparison
from callmark.cli.options import (
    BASELINE,
    ENGINE,
    FAULTS,
    GATES,
    INPUTS,
    KEPT,
    LIVE,
    LOCAL,
    MODES,
    OUTPUT,
    PART,
    RUNNER,
    SCORING,
    SERVED,
    CommandParser,
    Group,
    add_groups,
    flags_given,
    keeping,
    live_options,
    refuse_options,
)
from callmark.cli.reporting import (
    RunPaths,
    add_detail_options,
    add_form_options,
    append_step_summary,
    forms_of,
    present,
)
from callmark.errors import Incomplete, UsageError
from callmark.reports.layout import neutralise, one_line

if TYPE_CHECKING:
    from callmark.config import RunConfig
    from callmark.records.report import Report
    from callmark.reports.finished_run import WantedForm
    from callmark.run.offers import GivenTools
    from callmark.run.preview import DryRun, ShownPrompt


def shard_of_this_process(environment: Mapping[str, str] = os.environ) -> tuple[int, int]:
    """(num_shards, shard_index) from a SLURM array or an indexed Kubernetes job."""
    if "SLURM_ARRAY_TASK_ID" in environment:
        return _shard_of_array(environment)
    if "JOB_COMPLETION_INDEX" in environment:
        # Kubernetes tells a pod its index but not how many there are.
        return _number(environment, "JOB_COMPLETIONS"), _number(environment, "JOB_COMPLETION_INDEX")
    raise UsageError(
        "--num-shards auto: neither SLURM_ARRAY_TASK_ID nor JOB_COMPLETION_INDEX is set; "
        "give --num-shards N --shard-index I"
    )


def _shard_of_array(environment: Mapping[str, str]) -> tuple[int, int]:
    count = _number(environment, "SLURM_ARRAY_TASK_COUNT")
    first = _number(environment, "SLURM_ARRAY_TASK_MIN", 0)
    step = max(1, _number(environment, "SLURM_ARRAY_TASK_STEP", 1))
    last = _number(environment, "SLURM_ARRAY_TASK_MAX", first + step * (count - 1))
    task = _number(environment, "SLURM_ARRAY_TASK_ID")
    # Tasks of an earlier array that are submitted anew are not all the shards there are.
    if last != first + step * (count - 1) or (count == 1 and first > 0):
        raise UsageError(
            f"--num-shards auto: this array of {count} (tasks {first} to {last}) is a part of one:"
            f" submit the whole array, or give --num-shards N --shard-index {task}"
        )
    return count, (task - first) // step


def _number(environment: Mapping[str, str], name: str, default: int | None = None) -> int:
    text = environment.get(name)
    if text is None and default is not None:
        return default
    if text is None or not text.isascii() or not text.isdigit():
        found = "is not set" if text is None else f"is {text!r}"
        raise UsageError(f"--num-shards auto: {name} {found}; it must be a whole number")
    return int(text)


RECORDING: Group = {
    "--record": {
        "nargs": "?",
        "const": "new",
        "choices": MODES[1:],
        "help": "call live tools and keep their answers in --fixtures. new: what has no fixture yet"
        " (the default); once: only into an empty folder; all: everything again. Never in CI",
    },
    **LIVE,
    **KEPT,
}
_NOT_WITH_RECORD = {
    "registry": "which offers the live tools",
    "allowlist": "which offers the live tools",
    "baseline": "whose tools may have answered otherwise",
    "faults": "which is for fixtures",
    "engine": "which keeps one connection to the live tools",
}


@contextmanager
def live_tools(options: argparse.Namespace, config: RunConfig) -> Iterator[GivenTools | None]:
    """The live tools of a run that records; what they answer becomes fixtures, however the run
    ends. None: no live tool is ever called."""
    if not hasattr(options, "record"):
        refuse_options(options, (*LIVE, *KEPT), "are for --record; add it, or leave them out")
        yield None
        return
    import msgspec

    from callmark.live.record import open_live, recording, refuse_in_ci
    from callmark.live.recorder import check_folder

    refuse_in_ci()
    if config.fixtures is None or config.dataset in (None, "-"):
        raise UsageError("--record: needs --fixtures, the folder to record into, and --in, a file")
    for name, why in _NOT_WITH_RECORD.items():
        if getattr(config, name) is not None:
            raise UsageError(f"--{name}: not with --record, {why}; leave it out")
    kept = msgspec.structs.replace(
        keeping(options, Path(config.fixtures), Path(str(config.dataset)), None),
        plain_results=not config.redact_pii,
    )
    check_folder(kept.folder)
    with (
        open_live(live_options(options)) as live,
        recording(live, kept, options.record, _say_kept) as tools,
    ):
        yield tools


def _say_kept(written: int, remarks: Sequence[str]) -> None:
    for text in (f"{written} answers of live tools were written", *remarks):
        print(neutralise(text), file=sys.stderr)


REPORT = "report.json"
COMPARISON = "comparison.json"
MAY_BE_LATEST = ("baseline", "failed_from", "model")  # read after `runs/latest` leads to this run
NOTE_WIDTH = 4_000
PAGE_TRIALS = 20_000  # a larger run writes its page only if somebody asks for it
PAGE_COSTS = "which takes a while for so many trials"
INCONCLUSIVE = 5
BY_URGENCY = (130, 70, 2, 3, 4, 1, 5, 0)  # of several exit codes the first one counts
GROUPS: dict[str, Group] = {
    "what is run": {**INPUTS, **FAULTS},
    "who answers": RUNNER,
    "a served model (openai_http and the other protocols)": SERVED,
    "a local model (hf_local)": LOCAL,
    "only a part": PART,
    "many processes": ENGINE,
    "scoring": SCORING,
    "gates and exit code": GATES,
    "against an earlier run": {**BASELINE, **DECIDED},
    "output": OUTPUT,
}
COMMON = (
    "--in",
    "--fixtures",
    "--registry",
    "--config",
    "--runner",
    "--model",
    "--base-url",
    "--repeat",
    "--only",
    "--limit",
    "--gate",
    "--baseline",
    "--name",
    "--resume",
    "--junit",
)  # what most people need


def build_parser() -> CommandParser:
    parser = CommandParser(
        "run",
        """
        Run a dataset: ask the model, answer its tool calls from the fixtures, score
        its answers, and judge the gates.

        Results and report are written, a summary is printed, and the exit code says
        how it ended. Any option can also be set in a callmark.yaml (`callmark init`);
        flags win.
        """,
        """
        callmark run --in eval.jsonl --fixtures fixtures/ --runner openai_http --model my-model
        callmark run --in dataset.jsonl --fixtures fixtures/ --runner replay --model answers.jsonl
        callmark run --only search-rope-01 --name one
        callmark run --baseline baseline.jsonl --junit junit.xml
        callmark run --resume
        """,
        common=COMMON,
    )
    add_groups(parser, {**GROUPS, "recording live tools": RECORDING})
    add_form_options(parser)
    parser.add_argument(
        "--show-prompt", metavar="ID", help="print the first request for this sample, and stop"
    )
    add_detail_options(parser, "verdict", "all gates and metrics, tools, locales and slices")
    return parser


def main(arguments: list[str]) -> int:
    options = build_parser().parse_args(arguments)
    config = config_of(options)
    if options.show_prompt is not None:
        from callmark.run.preview import show_prompt

        return _print_json(show_prompt(config, options.show_prompt))
    if config.dry_run:
        from callmark.run.preview import dry_run

        return _print_json(dry_run(config))
    with _place(config) as config:
        return _run(options, config)


def _run(options: argparse.Namespace, config: RunConfig) -> int:
    from callmark.run.conclude import INTERRUPTED
    from callmark.store.runs import results_of

    forms = forms_of(options)
    if config.baseline is not None:
        results_of(Path(config.baseline))  # a missing one is said before hours of running
    with live_tools(options, config) as tools:
        code = run_and_present(
            config, forms, quiet=options.quiet, verbose=options.verbose, tools=tools
        )
    if config.baseline is None:
        return code
    if _is_one_shard(config):
        print(
            f"not compared with {config.baseline}: a shard is compared after merge", file=sys.stderr
        )
        return code
    if code in (INTERRUPTED, Incomplete.exit_code):
        print(f"not compared with {config.baseline}: the run is not complete", file=sys.stderr)
        return code
    return min(code, compare_with_baseline(config, options), key=BY_URGENCY.index)


def run_and_present(
    config: RunConfig,
    forms: Sequence[WantedForm] = (),
    *,
    quiet: bool,
    verbose: bool = False,
    more: Sequence[str] = (),
    tools: GivenTools | None = None,
) -> int:
    from callmark.reports.layout import RunProgress
    from callmark.run.conclude import run
    from callmark.store.files import check_writable

    page = page_path(config)
    for written in (config.out, config.report, page):
        if written is not None:
            check_writable(Path(written))
    if config.out is not None and not config.resume and Path(config.out).is_file():
        print(f"{one_line(config.out)}: is replaced when this run is complete", file=sys.stderr)

    def publish(report: Report, is_whole: bool) -> None:
        results = Path(str(config.out)) if is_whole else None
        shown = None if is_too_large(report, config) else page
        publish_report(report, results, config, forms, shown)

    with RunProgress(sys.stderr, silent=quiet) as progress:
        outcome = run(config, progress=progress, publish=publish, tools=tools)
    for note in outcome.notes:
        print(one_line(note, NOTE_WIDTH), file=sys.stderr)
    if page is not None and is_too_large(outcome.report, config):
        page.unlink(missing_ok=True)  # an older one must not speak for this run
        more = (*more, f"callmark report {config.out} --html {page}: the page, {PAGE_COSTS}")
        page = None
    places = RunPaths(
        results=config.out,
        report=config.report,
        page=None if page is None else str(page),
        fixtures=config.fixtures,
        registry=config.registry,
        redact_pii=config.redact_pii,
        dataset=config.dataset,
    )
    present(outcome.report, places, quiet=quiet, verbose=verbose, more=more)
    return outcome.exit_code


def is_too_large(report: Report, config: RunConfig) -> bool:
    """For a page that nobody asked for."""
    return report.counts.trials > PAGE_TRIALS and config.source_of("html") == "default"


def page_path(config: RunConfig) -> Path | None:
    """None: nobody wants one, or the report goes somewhere that has no place beside it. A shard
    has one only if somebody asks for it: the run is looked at after merge."""
    from callmark.store.files import has_place

    unasked = _is_one_shard(config) and config.source_of("html") == "default"
    if not config.html or config.report is None or unasked:
        return None
    report = Path(config.report)
    path = report.with_suffix(".html")
    return path if has_place(report) and path != report else None


def publish_report(
    report: Report,
    results: Path | None,
    config: RunConfig,
    forms: Sequence[WantedForm],
    page: Path | None,
) -> None:
    """The forms that were asked for, the page, and the step summary. Only a whole run has results:
    what stands at `out` otherwise is an older one's."""
    from callmark.reports.finished_run import FinishedRun, write_forms
    from callmark.reports.html.page import write_html
    from callmark.run.play import cross_scorer
    from callmark.store.files import atomic_writer

    def markdown() -> str:
        from callmark.reports.markdown import report_markdown

        return report_markdown(finished)

    finished = FinishedRun(
        report=report,
        results=results,
        cross_score=cross_scorer(),
        fail_on_inconclusive=config.fail_on_inconclusive,
    )
    if forms:
        write_forms(finished, [form for form in forms if results is not None or not form.of_trials])
    if page is not None:
        with atomic_writer(page) as stream:
            if results is None and config.out is not None:
                _write_unfinished(report, Path(config.out), stream)
            else:
                write_html(finished, stream)
    append_step_summary(markdown)


def _write_unfinished(report: Report, out: Path, stream: BinaryIO) -> None:
    """The page of a run that has no results yet: its journal has what is finished."""
    from callmark.reports.html.page import write_run_page
    from callmark.store.files import run_name
    from callmark.store.journal import finished_trials, journal_path

    journal = journal_path(out)
    write_run_page(
        stream,
        report,
        lambda: finished_trials(journal) if journal.is_file() else iter(()),
        name=run_name(out),
    )


def compare_with_baseline(config: RunConfig, options: argparse.Namespace) -> int:
    """The new results against the baseline; written beside the report."""
    from callmark.compare.compare import Tools, compare_runs, write_comparison
    from callmark.reports.compare import comparison_markdown

    comparison = compare_runs(
        Path(str(config.baseline)),
        Path(str(config.out)),
        options_of(config),
        tools=Tools(config.registry, config.allowlist),
    )
    write_comparison(Path(str(config.report)).with_name(COMPARISON), comparison)
    append_step_summary(lambda: comparison_markdown(comparison))
    code = present_comparison(comparison, quiet=options.quiet, verbose=options.verbose)
    is_open = comparison.own_past.status == "inconclusive"
    return INCONCLUSIVE if is_open and config.fail_on_inconclusive and not code else code


def config_of(options: argparse.Namespace) -> RunConfig:
    """The settings of this command line. The results of a shard always have a place."""
    import msgspec

    from callmark.config import load_config
    from callmark.shards.merge import report_beside, shard_results
    from callmark.store.runs import RESULTS

    flags = flags_given(options, list(GROUPS.values()))
    if flags.pop("no_cache", False):
        flags["cache"] = None
    if flags.get("num_shards") == "auto":
        if "engine" in flags:
            raise UsageError(
                "--num-shards auto: is for a single shard; with --engine, leave it out"
            )
        flags["num_shards"], flags["shard_index"] = shard_of_this_process()
    if "shard_index" in flags:  # one shard: the engine of a settings file is for all of them
        flags = {"engine": None, "num_cpus": None, "num_gpus": None, **flags}
    file: Path | None = getattr(options, "config", None)
    config = load_config(file, flags)
    if not _is_one_shard(config):
        return config
    # One settings file serves all shards: they must not write over each other.
    out, report = config.out or RESULTS, config.report
    if config.source_of("out") != "flag":
        out = str(shard_results(Path(out), config.shard_index))
    if config.source_of("report") != "flag":
        report = str(report_beside(Path(out)))
    return msgspec.structs.replace(config, out=out, report=report)


@contextmanager
def _place(config: RunConfig) -> Iterator[RunConfig]:
    """With a place for the output, if nobody named one."""
    import msgspec

    from callmark.store.runs import RESULTS, as_it_is_now, latest_run_folder, new_run_folder

    with ExitStack() as stack:
        out = config.out
        if out is None:
            named = {name: getattr(config, name) for name in MAY_BE_LATEST}
            read = {name: as_it_is_now(path) for name, path in named.items() if path is not None}
            config = msgspec.structs.replace(config, **read)
            folder = latest_run_folder() if config.resume else None
            folder = folder or stack.enter_context(new_run_folder(_name_of(config)))
            out = str(folder / RESULTS)
        report = config.report or str(Path(out).with_name(REPORT))
        yield msgspec.structs.replace(config, out=out, report=report)


def _name_of(config: RunConfig) -> str:
    """Of a run: the one that is given, that of its settings file, or that of its dataset."""
    from callmark.config import AUTOMATIC

    if config.name is not None:
        return config.name
    settings = None if config.config_file is None else Path(config.config_file)
    if settings is not None and settings.name != AUTOMATIC.name:
        return settings.stem
    return "stdin" if config.dataset in (None, "-") else Path(str(config.dataset)).stem


def _is_one_shard(config: RunConfig) -> bool:
    return config.num_shards > 1 and config.engine is None


def _print_json(value: DryRun | ShownPrompt) -> int:
    import msgspec

    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
    return 0
