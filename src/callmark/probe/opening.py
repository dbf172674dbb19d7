"""From the models of a spec to views that can be asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec

from callmark.config import RunConfig
from callmark.errors import UsageError
from callmark.probe.local_views import TwoModels, open_adapted
from callmark.probe.served_views import ServedViews
from callmark.probe.spec import Models, ModelSpec
from callmark.probe.views import Tool, Views
from callmark.runners.options import RunnerOptions
from callmark.running.decoding import decoding_of
from callmark.running.offers import open_offers
from callmark.running.wiring import runner_options

RUNNERS = {"hf": "hf_local", "openai": "openai_http"}


@contextmanager
def open_views(models: Models, config: RunConfig, tools: Sequence[Tool]) -> Iterator[Views]:
    """`config`: how models are loaded and asked; which ones, the models say."""
    check_models(models)
    base, tuned = (options_of(model, config, tools) for model in (models.base, models.ft))
    if models.base.kind == "openai":
        yield ServedViews(base, tuned)
    elif is_adapted(models):
        with open_adapted(tuned, models.base.adapter) as views:
            yield views
    else:
        yield TwoModels(base, tuned)


def check_models(models: Models) -> None:
    base, tuned = models.base, models.ft
    if base.kind != tuned.kind:
        raise UsageError(
            f"models: base is of kind {base.kind}, ft of kind {tuned.kind}: both views have to be"
            " asked in the same way"
        )
    if base == tuned:
        raise UsageError(
            "models: base and ft are the same: name an adapter, or another model, for ft"
        )


def is_adapted(models: Models) -> bool:
    """Whether both views are one checkpoint, so that nothing has to be loaded twice."""
    same = models.base.kind == "hf" and models.base.base == models.ft.base
    return same and models.ft.adapter is not None


def config_for(model: ModelSpec, config: RunConfig) -> RunConfig:
    """The settings with which one view is run; greedy, whatever a file says."""
    return msgspec.structs.replace(
        config,
        runner=RUNNERS[model.kind],
        model=model.base,
        adapter=model.adapter,
        base_url=model.endpoint or config.base_url,
        temperature=0.0,
        top_p=None,
        repeat=1,
    )


def options_of(model: ModelSpec, config: RunConfig, tools: Sequence[Tool]) -> RunnerOptions:
    own = config_for(model, config)
    options = runner_options(own, open_offers(own.registry, own.allowlist), decoding_of(own))
    return msgspec.structs.replace(options, tools=tuple(tools))
