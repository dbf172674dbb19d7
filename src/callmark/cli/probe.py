"""`callmark probe`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from callmark.cli.options import (
    INPUTS,
    LOCAL,
    SERVED,
    CommandParser,
    Group,
    add_groups,
    flags_given,
)
from callmark.cli.reporting import (
    add_detail_options,
    add_own_forms,
    append_step_summary,
    own_forms_of,
    say_warnings,
    write_own_forms,
)
from callmark.errors import UsageError
from callmark.reports.layout import FOLD, TextLine, line, write

if TYPE_CHECKING:
    import msgspec

    from callmark.config import RunConfig
    from callmark.probe.local_views import NullCache
    from callmark.probe.records import Checkpoint, ProbeReport
    from callmark.probe.spec import Models, NullAdapterSpec, ProbeSpec
    from callmark.records.jsontext import Json
    from callmark.reports.html.probe import BothSides

Record = TypeVar("Record", bound="msgspec.Struct")

OUT_DIR = Path("probe-run")
MODEL_FLAGS = ("base", "adapter", "checkpoints", "tuned", "base_url", "tuned_url", "kind",
               "tuned_kind", "tuned_dtype", "dataset")  # fmt: skip
CHURN = {
    0.0: "the fine-tune only loses calls",
    0.05: "it also fixes 5 of 100 calls and breaks 5 more",
}
SERVED_FLAGS = ("base_url", "tuned_url", "kind", "tuned_kind")
_MODEL = "--model: "  # how a runner calls what it was given


class Once(argparse.Action):
    """An option that may stand there once: of two models the last must not win unseen."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        if hasattr(namespace, self.dest):
            flag = self.option_strings[0]
            raise UsageError(f"{flag}: given more than once: one is meant")
        setattr(namespace, self.dest, values)


SERVED_KINDS = ("openai", "openai_responses", "anthropic_messages")
_ONE_OF_EACH: Group = {
    "--base": {
        "metavar": "M",
        "help": "the base model: a checkpoint, or the name of a served model",
    },
    "--tuned": {
        "metavar": "M",
        "help": "the fine-tune: a checkpoint, or the name of a served model",
    },
    "--base-url": {"metavar": "URL", "help": "the endpoint, if the models are served"},
    "--tuned-url": {
        "metavar": "URL",
        "help": "where --tuned is served (default: at --base-url); without --base-url the model"
        " here (--base, with --adapter if given) is compared with it",
    },
    "--kind": {
        "choices": SERVED_KINDS,
        "help": "what the endpoints speak (default: openai, which is chat completions)",
    },
    "--tuned-kind": {
        "choices": SERVED_KINDS,
        "help": "what --tuned-url speaks, if it is another one",
    },
    "--tuned-dtype": {
        "choices": ("float32", "bfloat16", "float16"),
        "help": "type of the tuned view's weights; alone, the base is compared with itself",
    },
}
MODELS: Group = {flag: {"action": Once, **rest} for flag, rest in _ONE_OF_EACH.items()}
MODELS = {
    "--base": MODELS.pop("--base"),
    "--adapter": {
        "metavar": "A",
        "action": "append",
        "help": "the fine-tune: a PEFT adapter on top of --base; several, in the order of"
        " training, are a series",
    },
    "--checkpoints": {
        "metavar": "DIR",
        "type": Path,
        "action": Once,
        "help": "a series: every checkpoint-N in this folder, adapters or whole models",
    },
    **MODELS,
}
ASKED: Group = {
    "--cases": {
        "metavar": "FILE",
        "type": Path,
        "help": "the cases, JSONL of {prompt, tool_spec, gold_tool_name}",
    },
    "--dataset": {"metavar": "FILE", "help": "take the cases from this dataset, and run all of it"},
    "--limit": {"type": int, "metavar": "N", "help": "only the first N samples of the dataset"},
    "--schema": {
        "choices": ("full", "minimal"),
        "help": "check calls by JSON Schema (full, default), or by required keys and types",
    },
}
ASKED["--expect-format"] = {
    "metavar": "F",
    "help": "the format that the tuned model's calls should have (default: the base's)",
}
NULLS: Group = {
    "--nulls": {
        "type": int,
        "metavar": "K",
        "help": "number of random adapters to compare with; 0 for none (default: 5)",
    },
    "--null-method": {
        "choices": ("matched", "init_scale"),
        "help": "with the trained update's singular values (matched, default), or drawn from"
        " N(0, --init-scale)",
    },
    "--init-scale": {
        "type": float,
        "metavar": "S",
        "help": "standard deviation for init_scale (default: 0.02)",
    },
    "--rank-multiplier": {
        "type": float,
        "action": "append",
        "metavar": "X",
        "help": "also random adapters with this multiple of the rank; may be repeated",
    },
}
READ: Group = {
    flag: INPUTS[flag]
    for flag in ("--fixtures", "--registry", "--allowlist", "--config", "--plugin")
}
HOW: Group = {
    **{flag: LOCAL[flag] for flag in ("--dtype", "--device", "--batch-size")},
    **{flag: SERVED[flag] for flag in ("--request-timeout", "--max-retries", "--max-connections")},
    "--seed": {
        "type": int,
        "metavar": "N",
        "help": "seed of random adapters and intervals (default: 0)",
    },
}
GROUPS: dict[str, Group] = {
    "which models": MODELS,
    "what they are asked": ASKED,
    "random adapters": NULLS,
    "tools and settings": READ,
    "how they are run": HOW,
}
# How the flags for nulls are called in a spec.
FIELDS = {
    "nulls": "runs",
    "null_method": "method",
    "init_scale": "init_scale",
    "rank_multiplier": "rank_multipliers",
}
FOR_SPECS = ("base", "adapter", "checkpoints", "tuned", "base_url", "tuned_url", "kind",
             "tuned_kind", "tuned_dtype", "cases", "dataset",
             "limit", "schema", "expect_format", "nulls", "null_method", "init_scale",
             "rank_multiplier", "seed")  # fmt: skip
COMMON = (
    "--base",
    "--adapter",
    "--checkpoints",
    "--tuned",
    "--base-url",
    "--cases",
    "--dataset",
    "--fixtures",
    "--json",
    "--html",
    "--plan",
    "--require-power",
)  # what most people need


def build_parser() -> CommandParser:
    parser = CommandParser(
        "probe",
        """
        What did a fine-tune do to the tool calls? Ask the model the same cases before
        and after it, and compare.

        Decoding is greedy; calls are read and checked against the tool's schema.
        Random adapters of the same shape show what noise would do.

        With --checkpoints, or several --adapter, the base is asked once and every
        checkpoint is judged. The first one that loses is named; the exit code is that
        of the last. With --dataset, both models also go through the whole pipeline,
        and every metric is compared sample by sample.

        Exit code: 0 no regression, or no drop seen in 20 cases or more. 1 regression,
        invented tools, no call in either view, or an adapter that is not applied. 5
        inconclusive.
        """,
        """
        callmark probe spec.yaml --json probe.json
        callmark probe --base models/base --adapter adapters/mine --cases cases.jsonl
        callmark probe --base models/base --adapter adapters/mine --dataset d.jsonl --fixtures fx
        callmark probe --base models/base --checkpoints outputs --cases cases.jsonl --html p.html
        callmark probe --base one --tuned two --base-url http://127.0.0.1:8000/v1 --cases c.jsonl
        """,
        common=COMMON,
    )
    parser.add_argument("spec", nargs="?", type=Path, metavar="SPEC", help="a YAML spec")
    add_groups(parser, GROUPS)
    add_own_forms(parser, "report")
    parser.add_argument(
        "--out-dir",
        type=Path,
        metavar="DIR",
        default=OUT_DIR,
        help=f"with --dataset: where the results of both models go (default: {OUT_DIR})",
    )
    parser.add_argument(
        "--plan",
        type=float,
        metavar="POINTS",
        help="no probe: how many cases would find a drop of so many points (with --cases: and"
        " what those would find)",
    )
    parser.add_argument(
        "--no-cache",
        action="store_true",
        help="ask random adapters again even if their answers are cached",
    )
    parser.add_argument(
        "--require-power",
        action="store_true",
        help="exit 5 unless a drop beyond the floor is ruled out; seeing no drop is not enough",
    )
    add_detail_options(parser, "decision", "every table")
    return parser


def main(arguments: list[str]) -> int:
    options = build_parser().parse_args(arguments)
    if options.plan is not None:
        write(plan_lines(options), sys.stdout)
        return 0

    from callmark.probe.local_views import NullCache
    from callmark.probe.run import report_bytes
    from callmark.reports.html.probe import write_probe_page
    from callmark.reports.probe import next_blocks, probe_blocks, probe_markdown, quiet_lines

    forms = own_forms_of(options)
    series = series_of(vars(options))
    spec = spec_of(options, series)
    config = config_of(options, spec)
    cache = NullCache(None) if options.no_cache else NullCache.of_this_user()
    try:
        report = probe_views(
            spec,
            config,
            options.out_dir,
            cache,
            quiet=options.quiet,
            require_power=options.require_power,
            series=series,
        )
    except UsageError as error:
        raise _as_given(error, spec.models, options.spec) from None

    def write_page(stream: BinaryIO) -> None:
        write_probe_page(stream, report, _both_sides(report, config, options.out_dir))

    write_own_forms(
        forms,
        {
            ".json": lambda stream: stream.write(report_bytes(report)),
            ".md": lambda stream: stream.write(probe_markdown(report).encode()),
            ".html": write_page,
        },
    )
    append_step_summary(lambda: probe_markdown(report))
    if not options.quiet:
        kept, page = (
            next((path for path, ending in forms.items() if ending == wanted), None)
            for wanted in (".json", ".html")
        )
        steps = next_blocks(report, kept, page)
        write(chain(probe_blocks(report, verbose=options.verbose), steps), sys.stdout, FOLD)
    else:
        write(quiet_lines(report), sys.stdout)
        say_warnings(report.warnings)
    return report.exit_code


def plan_lines(options: argparse.Namespace) -> Iterator[TextLine]:
    """How many cases are enough; models play no part in it."""
    from callmark.probe.spec import FidelitySpec, read_cases
    from callmark.probe.stats import POWER, cases_needed, cases_to_rule_out, power_of

    floor = FidelitySpec().assert_validity_delta_gte
    flag = next((name for name in ("spec", *MODEL_FLAGS) if getattr(options, name, None)), None)
    if flag is not None:
        word = flag if flag == "spec" else f"--{flag.replace('_', '-')}"
        raise UsageError(f"--plan: asks no model: leave out {word}")
    drop = options.plan / 100
    if not -floor < drop <= 1:
        raise UsageError(
            f"--plan: {options.plan:g}: give the drop in points, more than {-100 * floor:g} (up to"
            " there nothing is called a regression) and at most 100: --plan 10"
        )
    yield line(
        f"a drop of {options.plan:g} points is called a regression in {POWER:.0%} of probes",
        "strong",
    )
    for gained, where in CHURN.items():
        if drop + 2 * gained <= 1:
            needed = cases_needed(drop, gained, floor)
            yield line(f"with {needed or 'more than 20000'} cases, where {where}", indent=2)
    yield line(
        f"to rule out a drop of more than {-100 * floor:g} points takes"
        f" {cases_to_rule_out(floor)} cases without a single change, more with changes"
    )
    if hasattr(options, "cases"):
        cases = read_cases(options.cases, getattr(options, "schema", "full"))
        given = sum(1 for case in cases if case.gold_tool_name is not None)
        chance = power_of(given, drop, 0.0, floor)
        counted = f"{options.cases}: {given} cases"
        yield line(f"{counted} find it in {chance:.0%} of probes, if calls are only lost")


def probe_views(
    spec: ProbeSpec,
    config: RunConfig,
    out_dir: Path,
    cache: NullCache,
    *,
    quiet: bool,
    require_power: bool = False,
    series: tuple[Checkpoint, ...] = (),
) -> ProbeReport:
    import msgspec

    from callmark.probe.run import ProbeRun, Suite, open_dataset_probe, open_views
    from callmark.probe.spec import FidelitySpec, NullAdapterSpec
    from callmark.probe.views import probe_of, tools_of

    fidelity = [one for one in spec.suite if isinstance(one, FidelitySpec)]
    nulls = next((one for one in spec.suite if isinstance(one, NullAdapterSpec)), None)
    suite = Suite(
        models=spec.models,
        seed=spec.defaults.seed,
        probes=tuple(map(probe_of, fidelity)),
        nulls=nulls,
        require_power=require_power,
        series=series,
    )
    asking = None if quiet or not sys.stderr.isatty() else _say
    if config.dataset is not None:
        with open_dataset_probe(spec.models, config, fidelity[0], out_dir) as found:
            suite = msgspec.structs.replace(suite, probes=(found.probe,))
            return ProbeRun(suite, found.views, cache, asking).report(found.compare)
    questions = [question for probe in suite.probes for question in probe.questions]
    with open_views(spec.models, config, tools_of(questions)) as views:
        return ProbeRun(suite, views, cache, asking).report()


def _as_given(error: UsageError, models: Models, spec: Path | None) -> UsageError:
    """What is wrong with a model is said of the option, or of the field, that names it here."""
    text = str(error)
    if type(error) is not UsageError or not text.startswith(_MODEL):
        return error
    names = {"ft": models.ft.base, "base": models.base.base}
    found = [view for view, name in names.items() if name in text]
    # One name may be the beginning of the other; where both are the same, it is the base.
    view = max(found or ["base"], key=lambda view: (len(names[view]), view == "base"))
    flag = "--base" if view == "base" else "--tuned"
    where = flag if spec is None else f"{spec}: models.{view}.base"
    return UsageError(f"{where}: {text.removeprefix(_MODEL)}")


def _both_sides(report: ProbeReport, config: RunConfig, out_dir: Path) -> BothSides | None:
    """What both models said to a whole dataset, scored as it was compared."""
    from callmark.compare.compare import Tools, results_compared
    from callmark.probe.run import FOLDERS
    from callmark.reports.html.probe import BothSides

    if report.comparison is None:
        return None
    tools = Tools(config.registry, config.allowlist)
    return BothSides(*(results_compared(out_dir / name, tools) for name in FOLDERS.values()))


def series_of(given: dict[str, Json]) -> tuple[Checkpoint, ...]:
    """The checkpoints of a series, in the order of training; none: one fine-tune is probed."""
    if "checkpoints" not in given and len(_adapters_of(given)) < 2:
        return ()
    flag = "--checkpoints" if "checkpoints" in given else "--adapter"
    for other in ("adapter", "tuned", *SERVED_FLAGS, "tuned_dtype", "dataset"):
        if other in given and f"--{other}" != flag:
            raise UsageError(
                f"{flag}: a series is of local checkpoints and asked --cases: leave out"
                f" --{other.replace('_', '-')}"
            )
    from callmark.probe.run import find_checkpoints, name_checkpoints

    folder = given.get("checkpoints")
    if isinstance(folder, Path):
        return find_checkpoints(folder)
    return name_checkpoints(_adapters_of(given))


def _adapters_of(given: dict[str, Json]) -> list[str]:
    adapters = given.get("adapter")
    return [str(one) for one in adapters] if isinstance(adapters, list) else []


def spec_of(options: argparse.Namespace, series: tuple[Checkpoint, ...] = ()) -> ProbeSpec:
    """The spec of a file, or the one that the flags spell out."""
    from callmark.probe.spec import (
        Defaults,
        FidelitySpec,
        ProbeSpec,
        expected_formats,
        read_cases,
        read_spec,
    )

    given = vars(options)
    if options.spec is not None:
        flag = next((name for name in FOR_SPECS if name in given), None)
        if flag is not None:
            raise UsageError(
                f"--{flag.replace('_', '-')}: the spec {options.spec} says that: change it there"
            )
        return read_spec(options.spec)
    if "cases" in given and "dataset" in given:
        raise UsageError("--cases: cannot be combined with --dataset: give one or the other")
    if "cases" not in given and "dataset" not in given:
        raise UsageError(
            "--cases: what should be asked? Give --cases FILE, or --dataset FILE --fixtures DIR,"
            " or a spec\n  see: callmark probe --help"
        )
    schema = given.get("schema", "full")
    cases = read_cases(given["cases"], schema) if "cases" in given else ()
    expected = given.get("expect_format")
    if expected is not None:
        expected_formats(expected, "--expect-format")
    fidelity = FidelitySpec(cases=cases, schema=schema, expect_format=expected)
    # Every null is one more view, and a series is asked for its course.
    nulls = None if series and "nulls" not in given else _nulls_of(given)
    return ProbeSpec(
        version=1,
        models=_models_of(given, series),
        defaults=_make(Defaults, {"seed": given.get("seed", 0)}),
        suite=(fidelity,) if nulls is None else (nulls, fidelity),
    )


def config_of(options: argparse.Namespace, spec: ProbeSpec) -> RunConfig:
    """How models are run. Which ones, and the decoding, the probe decides itself."""
    import msgspec

    from callmark.config import load_config

    flags = flags_given(options, [READ, HOW])
    flags["seed"] = spec.defaults.seed
    for name in ("dataset", "limit"):
        if hasattr(options, name):
            flags[name] = getattr(options, name)
    config = load_config(getattr(options, "config", None), flags)
    if config.source_of("dataset") != "flag":
        config = msgspec.structs.replace(config, dataset=None)
    return config


def _models_of(given: dict[str, Json], series: tuple[Checkpoint, ...]) -> Models:
    from callmark.probe.run import model_of
    from callmark.probe.spec import Models, ModelSpec

    if "base" not in given:
        raise UsageError("--base: which model was tuned? Name its folder, or its served name")
    if series:
        before = ModelSpec(base=str(given["base"]))
        return Models(base=before, ft=model_of(series[-1].path or "", before))
    texts = {name: value for name, value in given.items() if isinstance(value, str)}
    adapter = next(iter(_adapters_of(given)), None)
    _check_models(texts, adapter)
    base, tuned = texts["base"], texts.get("tuned")
    url, tuned_url = texts.get("base_url"), texts.get("tuned_url") or texts.get("base_url")
    kind = texts.get("kind", SERVED_KINDS[0])
    served = {"kind": texts.get("tuned_kind", kind), "base": tuned, "endpoint": tuned_url}
    if url is not None:
        before = _make(ModelSpec, {"kind": kind, "base": base, "endpoint": url})
        return Models(base=before, ft=_make(ModelSpec, served))
    # What is tuned is the second view; beside one of its own, the adapter belongs to the first.
    before = ModelSpec(base=base, adapter=None if tuned is None else adapter)
    if tuned_url is not None:
        return Models(base=before, ft=_make(ModelSpec, served))
    here = {"base": tuned or base, "adapter": adapter if tuned is None else None}
    return Models(base=before, ft=_make(ModelSpec, {**here, "dtype": texts.get("tuned_dtype")}))


def _check_models(texts: dict[str, str], adapter: str | None) -> None:
    """Which flags for models go together."""
    is_served = "base_url" in texts or "tuned_url" in texts
    if adapter is None and "tuned" not in texts and ("tuned_dtype" not in texts or is_served):
        raise UsageError("--adapter: what is the fine-tune? Give either --adapter or --tuned")
    if "base_url" in texts and adapter is not None:
        raise UsageError("--adapter: a served model takes none: name the tuned model with --tuned")
    if is_served and "tuned" not in texts:
        raise UsageError("--tuned: which model is served there? Name it with --tuned")
    if is_served and "tuned_dtype" in texts:
        raise UsageError("--tuned-dtype: a server chooses the type of its weights: leave it out")
    for flag in ("kind", "tuned_kind"):
        if flag in texts and not is_served:
            raise UsageError(f"--{flag.replace('_', '-')}: is for served models: give --base-url")


def _nulls_of(given: dict[str, Json]) -> NullAdapterSpec | None:
    from callmark.probe.spec import NullAdapterSpec

    if given.get("nulls", 5) == 0:
        return None
    fields = {field: given[flag] for flag, field in FIELDS.items() if flag in given}
    if "rank_multipliers" in fields:
        from callmark.records.jsontext import want_list

        fields["rank_multipliers"] = [1.0, *want_list(fields["rank_multipliers"])]
    return _make(NullAdapterSpec, fields)


def _make(kind: type[Record], fields: Mapping[str, Json]) -> Record:
    import msgspec

    from callmark.records.problems import typed_problem

    try:
        return msgspec.convert(fields, kind)
    except msgspec.ValidationError as error:
        field, _, what = typed_problem(error).partition(": ")
        flag = next((flag for flag, name in FIELDS.items() if name == field), field)
        raise UsageError(f"--{flag.replace('_', '-')}: {what}") from None


def _say(view: str, cases: int) -> None:
    print(f"asking {view}: {cases} cases", file=sys.stderr, flush=True)
