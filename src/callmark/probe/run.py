"""The probe: every view is asked every case, the nulls too, and the answers become one report.

Of a series there is one decision for each checkpoint, and the first one that loses. Checkpoints are
tested in a fixed sequence, from the last one backwards, until one is no regression. Each test has
the whole 5 %: to confirm anything at all, the last one has to be called a regression first, so the
chance of a false word about the series is that of one test. A checkpoint beyond the end of the
sequence that looks worse is told as a dip, which is an observation and no finding."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

import msgspec

from callmark._version import __version__
from callmark.calls.registry import name_of_tool
from callmark.compare.compare import CompareOptions, Tools, compare_runs
from callmark.compare.records import Comparison
from callmark.config import RunConfig
from callmark.errors import Incomplete, UsageError
from callmark.plugins import find_runner
from callmark.probe.answers import MOST_FOLLOW_UPS, check_rendering, check_results, follow_ups
from callmark.probe.fidelity import Nulls, error_result, fidelity, valid_rate
from callmark.probe.local_views import LocalModel, NullCache, adapted_views, open_adapted
from callmark.probe.records import (
    Calibration,
    Checkpoint,
    CheckpointStanding,
    FidelityResult,
    NullRates,
    NullResult,
    ProbeReport,
    ProbeResult,
    SeriesPoint,
    SeriesResult,
    TurnCheck,
    ViewCall,
    WrittenAnswer,
    exit_code,
    exit_code_of,
)
from callmark.probe.spec import (
    FidelitySpec,
    Models,
    ModelSpec,
    NullAdapterSpec,
    ToolUseCase,
    calibration_spec,
)
from callmark.probe.stats import null_stats_of
from callmark.probe.views import (
    CannotAsk,
    ModelAlone,
    NullRun,
    Probe,
    Question,
    ServedModel,
    Tool,
    TwoModels,
    Views,
    probe_of,
)
from callmark.records.samples import Sample
from callmark.records.seams import Runner
from callmark.run.conclude import INTERRUPTED, run
from callmark.run.offers import open_offers
from callmark.run.prepare import Setup, decoding_of, prepare, runner_options
from callmark.runners.hf.loading import (
    ADAPTER_CONFIG,
    ADAPTER_WEIGHTS,
    CONFIG,
    adapter_folder,
    file_sha256,
    model_folder,
)
from callmark.runners.hf.local import LocalRunner
from callmark.runners.options import RunnerFactory, RunnerOptions
from callmark.stats.estimates import Z_TWO_SIDED, wilson
from callmark.store.runs import RESULTS

FINAL = "final"
_CHECKPOINT_NUMBER = re.compile(r"(\d{1,18})$")


def find_checkpoints(folder: Path) -> tuple[Checkpoint, ...]:
    """The checkpoints that a trainer left in a folder, by their steps; what it saved in the folder
    itself at the end comes last, unless it is the last checkpoint again."""
    if not folder.is_dir():
        raise UsageError(f"--checkpoints: {folder}: there is no such folder")
    folders = sorted(one for one in folder.iterdir() if one.is_dir() and _kind_of(one))
    unnumbered = [one for one in folders if _CHECKPOINT_NUMBER.search(one.name) is None]
    if unnumbered:
        raise UsageError(
            f"--checkpoints: {unnumbered[0]}: has no number at the end of its name, so its"
            " place in the series is not known. Rename it (checkpoint-100), or give each"
            " --adapter in order."
        )
    folders.sort(key=lambda one: (_step_of(one) or 0, one.name))
    if _kind_of(folder) is not None and not (folders and _is_same(folder, folders[-1])):
        folders.append(folder)
    if len(folders) < 2:
        raise UsageError(
            f"--checkpoints: {folder}: holds {len(folders) or 'no'} checkpoint"
            f"{'' if len(folders) == 1 else 's'}: a series takes two or more folders like"
            " checkpoint-100 with an adapter or a model in them"
        )
    kind = _kind_of(folders[0])
    other = next((one for one in folders if _kind_of(one) != kind), None)
    if other is not None:
        raise UsageError(
            f"--checkpoints: {other}: is no {kind}, but {folders[0]} is: a series holds either"
            " adapters or whole models"
        )
    return tuple(
        Checkpoint(label=FINAL, path=str(one))
        if one == folder
        else Checkpoint(label=one.name, path=str(one), step=_step_of(one))
        for one in folders
    )


def name_checkpoints(paths: Sequence[str]) -> tuple[Checkpoint, ...]:
    """Adapters in the order in which they were given; equal names get their number."""
    names = [Path(path).name or path for path in paths]
    labels = [
        name if names.count(name) == 1 else f"{name} ({at})"
        for at, name in enumerate(names, start=1)
    ]
    for path in paths:
        adapter_folder(path)  # what is missing is said before anything is loaded
    return tuple(
        Checkpoint(label=label, path=path) for label, path in zip(labels, paths, strict=True)
    )


def model_of(folder: str, base: ModelSpec) -> ModelSpec:
    """A checkpoint as a view: an adapter on top of the base, or a model of its own."""
    if _kind_of(Path(folder)) == "model":
        return ModelSpec(base=folder)
    return msgspec.structs.replace(base, adapter=folder)


def judge_series(
    checkpoints: Sequence[Checkpoint], results: Sequence[FidelityResult]
) -> SeriesResult:
    """One result for each checkpoint, in their order."""
    standings = _stand(results)
    points = tuple(
        SeriesPoint(
            checkpoint=checkpoint,
            standing=standing,
            valid_ci_95=_interval(result),
            result=result,
        )
        for checkpoint, standing, result in zip(checkpoints, standings, results, strict=True)
    )
    losing = [one.checkpoint.label for one in points if one.standing == "loses"]
    return SeriesResult(points=points, first_losing=losing[0] if losing else None)


def series_exit_code(series: SeriesResult, *, require_power: bool) -> int:
    """That of the last checkpoint; one that could not be asked leaves the series undecided."""
    last = exit_code(series.points[-1].result, require_power=require_power)
    broken = any(one.standing == "error" for one in series.points)
    return 5 if broken and last == 0 else last


def _stand(results: Sequence[FidelityResult]) -> list[CheckpointStanding]:
    found: list[CheckpointStanding] = []
    in_sequence = True
    for result in reversed(results):
        if result.decision is None:
            in_sequence = False
            found.append("error")
        elif result.decision == "regression":
            found.append("loses" if in_sequence else "dips")
        else:
            in_sequence = False
            found.append("holds")
    return found[::-1]


def _interval(result: FidelityResult) -> tuple[float, float] | None:
    evidence = result.evidence
    if evidence is None:
        return None
    return wilson(evidence.num_valid_ft, evidence.num_cases, Z_TWO_SIDED)


def _step_of(folder: Path) -> int | None:
    number = _CHECKPOINT_NUMBER.search(folder.name)
    return None if number is None else int(number[1])


def _kind_of(folder: Path) -> str | None:
    # An adapter's folder may hold a copy of the base's config too, so that is looked at second.
    if (folder / ADAPTER_CONFIG).is_file():
        return "adapter"
    return "model" if (folder / CONFIG).is_file() else None


def _is_same(one: Path, other: Path) -> bool:
    """Whether two folders hold the same weights: trainers save the last step twice."""
    if _kind_of(one) != _kind_of(other):
        return False
    if _kind_of(one) == "adapter":
        files = [folder / ADAPTER_WEIGHTS for folder in (one, other)]
        return all(path.is_file() for path in files) and len(set(map(file_sha256, files))) == 1
    both = [model_folder(str(folder)).weights for folder in (one, other)]
    return [*map(file_sha256, both[0])] == [*map(file_sha256, both[1])]


# What is being asked, for people who wait: the name of the view, and how many cases.
Asking = Callable[[str, int], None]


class Suite(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is asked of one pair of models. `nulls` None: no calibration.
    `require_power`: that no drop was seen is not enough. `series`: the checkpoints of a training,
    of which the models name the last; there is one probe then."""

    models: Models
    seed: int
    probes: tuple[Probe, ...]
    nulls: NullAdapterSpec | None = None
    require_power: bool = False
    series: tuple[Checkpoint, ...] = ()


class ProbeRun:
    """One suite with one set of views."""

    def __init__(
        self, suite: Suite, views: Views, cache: NullCache, asking: Asking | None = None
    ) -> None:
        self._suite = suite
        self._views = views
        self._cache = cache
        self._asking = asking or _say_nothing
        self._calibrations: list[Calibration] = []
        self._base_answers: dict[str, list[WrittenAnswer]] = {}
        self._started = time.perf_counter()

    def report(self, compare: Callable[[], Comparison] | None = None) -> ProbeReport:
        """`compare`: both models through the whole pipeline, after the single calls; not where
        these already show that there is nothing to compare."""
        earlier = self._earlier_results()
        results = tuple(
            ProbeResult(
                result=self._result(probe),
                case_names=tuple(question.name for question in probe.questions),
            )
            for probe in self._suite.probes
        )
        # A suite without cases still shows what nulls do, on cases that ship.
        self._calibrate_on_sentinels()
        asked = time.perf_counter()
        series = None
        if self._suite.series:
            series = judge_series(self._suite.series, [*earlier, results[0].result])
        broken = any(one.result.verdict == "error" for one in results)
        comparison = None if compare is None or broken else compare()
        return ProbeReport(
            callmark_version=__version__,
            models=msgspec.to_builtins(self._suite.models),
            seed=self._suite.seed,
            views=self._views.facts(),
            results=results,
            nulls=self._null_result(),
            series=series,
            comparison=comparison,
            warnings=self._views.warnings(),
            exit_code=exit_code_of(
                [one.result for one in results],
                comparison,
                require_power=self._suite.require_power,
            )
            if series is None
            else series_exit_code(series, require_power=self._suite.require_power),
            timing={
                "probe_sec": asked - self._started,
                "pipeline_sec": time.perf_counter() - asked,
                "nulls_from_cache": self._cache.found,
                **self._views.measured(),
            },
        )

    def _earlier_results(self) -> list[FidelityResult]:
        """Of every checkpoint of a series but the last, which is what the views were opened
        with."""
        results = []
        for checkpoint in self._suite.series[:-1]:
            with self._views.wearing(checkpoint.path or ""):
                results.append(self._result(self._suite.probes[0], checkpoint.label))
        return results

    def _result(self, probe: Probe, checkpoint: str | None = None) -> FidelityResult:
        """`checkpoint`: an earlier one of a series; only the last is compared with nulls."""
        spec, questions = probe.spec, probe.questions
        if not questions:
            return fidelity(spec, (), ())
        try:
            self._views.check(questions)
        except CannotAsk as why:
            return error_result(spec.name, str(why))
        if spec.name not in self._base_answers:
            self._asking("base", len(questions))
            self._base_answers[spec.name] = self._views.base(questions)
        base = self._base_answers[spec.name]
        self._asking(checkpoint or "tuned", len(questions))
        tuned = self._views.tuned(questions)
        nulls = self._nulls_of(probe) if checkpoint is None else None
        result = fidelity(spec, base, tuned, nulls=nulls, seed=self._suite.seed)
        return self._with_checks(result, questions) if checkpoint is None else result

    def _with_checks(self, result: FidelityResult, questions: Sequence[Question]) -> FidelityResult:
        """What only the views can tell: how prompts are rendered, and how results are answered."""
        evidence = result.evidence
        if evidence is None:
            return result
        checks = [*evidence.checks]
        rendering = self._views.rendering(questions)
        if rendering is not None:
            checks.append(check_rendering(rendering))
        calls, asked = follow_ups(questions, evidence.cases, self._most_follow_ups(len(questions)))
        if asked:
            self._asking("both views again, with results", len(asked))
            checks.append(self._results_check(calls, asked))
        evidence = msgspec.structs.replace(evidence, checks=tuple(checks))
        return msgspec.structs.replace(result, evidence=evidence)

    def _most_follow_ups(self, cases: int) -> int:
        """In a series both views' further answers are at most a tenth of all the others."""
        views = 1 + len(self._suite.series)
        return min(MOST_FOLLOW_UPS, cases * views // 20) if self._suite.series else MOST_FOLLOW_UPS

    def _results_check(self, calls: Sequence[ViewCall], asked: Sequence[Question]) -> TurnCheck:
        try:
            return check_results(calls, self._views.base(asked), self._views.tuned(asked))
        except Incomplete as error:
            # Some servers refuse a tool's result: that costs this line, and not the probe.
            note = f"how results are answered could not be asked: {error}"
            return TurnCheck(name="ignores_results", base=0, tuned=0, n=0, note=note)

    def _nulls_of(self, probe: Probe) -> Nulls | None:
        """The rates of the trained rank decide; other ranks are told apart."""
        calibration = self._calibrated(probe)
        if calibration is None:
            return None
        ranks = calibration.ranks
        own = next((one for one in ranks if one.rank_multiplier == 1), ranks[0])
        stats = {f"{one.rank_multiplier:g}": null_stats_of(one.rates) for one in ranks}
        known = {name: found for name, found in stats.items() if found is not None}
        return Nulls(rates=own.rates, by_rank=known)

    def _calibrated(self, probe: Probe, *, sentinels: bool = False) -> Calibration | None:
        nulls = self._suite.nulls
        if nulls is None or self._views.why_no_nulls is not None or not nulls.rank_multipliers:
            return None
        made = Calibration(
            probe=probe.spec.name,
            num_cases=len(probe.questions),
            sentinels=sentinels,
            ranks=tuple(
                NullRates(
                    rank_multiplier=multiplier, rates=tuple(self._rates(probe, nulls, multiplier))
                )
                for multiplier in dict.fromkeys(nulls.rank_multipliers)
            ),
        )
        self._calibrations.append(made)
        return made

    def _rates(self, probe: Probe, nulls: NullAdapterSpec, multiplier: float) -> Iterator[float]:
        identity = self._views.identity()
        for number in range(1, nulls.runs + 1):
            run = NullRun(
                spec=nulls, seed=self._suite.seed, number=number, rank_multiplier=multiplier
            )
            self._asking(f"null {number} of {nulls.runs}", len(probe.questions))
            texts = self._cache.texts(identity, probe.questions, run, self._views.null)
            yield valid_rate(probe.spec, texts)

    def _calibrate_on_sentinels(self) -> None:
        if not any(probe.questions for probe in self._suite.probes):
            self._calibrated(probe_of(calibration_spec()), sentinels=True)

    def _null_result(self) -> NullResult | None:
        nulls = self._suite.nulls
        if nulls is None:
            return None
        return NullResult(
            name=nulls.name,
            method=nulls.method,
            init_scale=nulls.init_scale if nulls.method == "init_scale" else None,
            runs=nulls.runs,
            unavailable=self._views.why_no_nulls,
            calibrations=tuple(self._calibrations),
        )


def _say_nothing(view: str, cases: int) -> None:
    return


def report_bytes(report: ProbeReport) -> bytes:
    return msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"


# The other kinds are names of runners.
RUNNERS = {"hf": "hf_local", "openai": "openai_http"}


@contextmanager
def open_views(models: Models, config: RunConfig, tools: Sequence[Tool]) -> Iterator[Views]:
    """`config`: how models are loaded and asked; which ones, the models say."""
    check_models(models)
    base, tuned = (options_of(model, config, tools) for model in (models.base, models.ft))
    if is_adapted(models):
        with open_adapted(tuned, models.base.adapter) as views:
            yield views
    else:
        yield TwoModels(_alone(models.base, base), _alone(models.ft, tuned))


def _alone(model: ModelSpec, options: RunnerOptions) -> ModelAlone:
    if model.kind == "hf":
        return LocalModel(options)
    return ServedModel(options, find_runner(_runner_of(model)))


def check_models(models: Models) -> None:
    if models.base == models.ft:
        raise UsageError(
            "models: base and ft are the same: name an adapter, or another model, for ft"
        )


def is_adapted(models: Models) -> bool:
    """Whether both views are one checkpoint, so that nothing has to be loaded twice."""
    base, tuned = models.base, models.ft
    same = base.kind == tuned.kind == "hf" and base.base == tuned.base and base.dtype == tuned.dtype
    return same and tuned.adapter is not None


def config_for(model: ModelSpec, config: RunConfig) -> RunConfig:
    """The settings with which one view is run; greedy, whatever a file says."""
    return msgspec.structs.replace(
        config,
        runner=_runner_of(model),
        model=model.base,
        adapter=model.adapter,
        dtype=model.dtype or config.dtype,
        base_url=model.endpoint or config.base_url,
        # Sampling would add noise of its own to a comparison of single calls.
        temperature=0.0,
        top_p=None,
        repeat=1,
    )


def _runner_of(model: ModelSpec) -> str:
    return RUNNERS.get(model.kind, model.kind)


def options_of(model: ModelSpec, config: RunConfig, tools: Sequence[Tool]) -> RunnerOptions:
    own = config_for(model, config)
    options = runner_options(own, open_offers(own.registry, own.allowlist), decoding_of(own))
    return msgspec.structs.replace(options, tools=tuple(tools))


CASE_TOKENS = 256
REPORT = "report.json"
FOLDERS = {"base": "base", "ft": "tuned"}


class DatasetProbe(msgspec.Struct, frozen=True):
    """The views, the cases of a dataset, and the comparison that can still be made."""

    views: Views
    probe: Probe
    compare: Callable[[], Comparison]


@contextmanager
def open_dataset_probe(
    models: Models, config: RunConfig, spec: FidelitySpec, out_dir: Path
) -> Iterator[DatasetProbe]:
    """`spec` is without cases: they come from the dataset of the config."""
    check_models(models)
    configs = {"base": config_for(models.base, config), "ft": config_for(models.ft, config)}
    with prepare(configs["ft"]) as setup:
        factories: dict[str, RunnerFactory | None] = {"base": None, "ft": None}
        views: Views
        if is_adapted(models) and isinstance(setup.runner, LocalRunner):
            views = adapted_views(setup.runner)
            factories = {
                "base": _always(setup.runner.without_adapter()),
                "ft": _always(setup.runner),
            }
        else:
            options = [
                runner_options(
                    configs[view], setup.offers, setup.decoding, raw_prompt=setup.prompts.raw
                )
                for view in ("base", "ft")
            ]
            views = TwoModels(*map(_alone, (models.base, models.ft), options))

        def compare() -> Comparison:
            for view, factory in factories.items():
                _run(configs[view], out_dir / FOLDERS[view], factory)
            return _compare(config, out_dir)

        yield DatasetProbe(views, dataset_probe(setup, spec), compare)


def dataset_probe(setup: Setup, spec: FidelitySpec) -> Probe:
    """A case for each eligible sample that expects a single call, asked as a run would ask it:
    with all the tools that the sample is offered."""
    chosen = setup.selection.chosen(setup.dataset)
    made = [case for sample in chosen if (case := _case(setup, sample)) is not None]
    cases = tuple(case for case, _ in made)
    return Probe(
        msgspec.structs.replace(spec, cases=cases), tuple(question for _, question in made)
    )


def _case(setup: Setup, sample: Sample) -> tuple[ToolUseCase, Question] | None:
    expected = sample.expectation
    # A single turn can be right about a single call only; the rest is for the whole pipeline.
    if expected.kind != "eligible" or len(expected.calls) != 1 or expected.retry:
        return None
    offer = setup.offers.to(sample)
    gold = offer.registry.resolve(expected.calls[0].name)
    tool = next((one for one in offer.tools if name_of_tool(one) == gold), None)
    if tool is None or gold is None:
        return None  # a call that no model could make correctly; the run warns of it
    question = Question(
        name=sample.sample_id,
        messages=setup.prompts.opening(sample, offer.tools),
        tools=offer.tools,
        max_new_tokens=min(CASE_TOKENS, setup.config.max_tokens or CASE_TOKENS),
    )
    prompt = sample.prompt if isinstance(sample.prompt, str) else sample.sample_id
    case = ToolUseCase(
        prompt=prompt,
        tool_spec=tool,
        other_tools=tuple(one for one in offer.tools if one is not tool),
        gold_tool_name=gold,
        max_new_tokens=question.max_new_tokens,
    )
    return case, question


def _always(runner: Runner) -> RunnerFactory:
    """A runner that is open already, and stays open."""
    return lambda _options: nullcontext(runner)


def _run(config: RunConfig, folder: Path, open_runner: RunnerFactory | None) -> None:
    """One model through the whole dataset; what an earlier probe left half done starts anew."""
    config = msgspec.structs.replace(
        config, out=str(folder / RESULTS), report=str(folder / REPORT), restart=True, resume=False
    )
    if run(config, open_runner=open_runner).exit_code == INTERRUPTED:
        # Comparing one model's whole run with another's half would be no comparison.
        raise KeyboardInterrupt


def _compare(config: RunConfig, out_dir: Path) -> Comparison:
    base, tuned = (out_dir / folder / RESULTS for folder in FOLDERS.values())
    options = CompareOptions(primary=config.primary_metrics, margin=config.margin)
    found = compare_runs(base, tuned, options, tools=Tools(config.registry, config.allowlist))
    # What a clock measured stands in one place of a probe's report, and this is another.
    return msgspec.structs.replace(found, timing={})
