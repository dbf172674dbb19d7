"""Probing with a dataset: its single calls become cases, and both models also go through the
whole pipeline, so that every metric can be compared sample by sample."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import msgspec

from callmark.comparing.compare import Tools, compare_runs
from callmark.config import RunConfig
from callmark.core.compare import CompareOptions
from callmark.core.compare_records import Comparison
from callmark.core.protocols import Runner
from callmark.core.samples import Sample
from callmark.probe.local_views import TwoModels, adapted_views
from callmark.probe.opening import check_models, config_for, is_adapted
from callmark.probe.served_views import ServedViews
from callmark.probe.spec import FidelitySpec, Models, ToolUseCase
from callmark.probe.views import Probe, Question, Views
from callmark.runners.hf_local import LocalRunner
from callmark.runners.options import RunnerFactory
from callmark.running.run import INTERRUPTED, run
from callmark.running.selection import RESULTS
from callmark.running.setup import Setup, prepared
from callmark.running.wiring import runner_options

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
    with prepared(configs["ft"]) as setup:
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
            views = (TwoModels if models.ft.kind == "hf" else ServedViews)(*options)

        def compare() -> Comparison:
            for view, factory in factories.items():
                _run(configs[view], out_dir / FOLDERS[view], factory)
            return _compared(config, out_dir)

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
    if expected.kind != "eligible" or len(expected.calls) != 1 or expected.retry:
        return None
    offer = setup.offers.to(sample)
    gold = offer.registry.resolve(expected.calls[0].name)
    tool = next((one for one in offer.tools if one["function"]["name"] == gold), None)
    if tool is None or gold is None:
        return None  # a call that no model could make rightly; the run warns of it
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
        raise KeyboardInterrupt


def _compared(config: RunConfig, out_dir: Path) -> Comparison:
    base, tuned = (out_dir / folder / RESULTS for folder in FOLDERS.values())
    options = CompareOptions(primary=config.primary_metrics, margin=config.margin)
    return compare_runs(base, tuned, options, tools=Tools(config.registry, config.allowlist))
