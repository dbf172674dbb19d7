"""callmark: does a model call its tools rightly and build its answer on what they returned?

The public names below are resolved when first used, so that `import callmark` stays cheap."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

from callmark._version import __version__

if TYPE_CHECKING:
    from callmark.api import (
        compare,
        merge,
        parse_tool_calls,
        run,
        score_item,
        summarize_results,
        validate_sharding,
    )
    from callmark.broker.broker import ToolBroker
    from callmark.calls.registry import registry_sha256, validate_arguments
    from callmark.datasets.reader import dataset_sha256
    from callmark.grounding.ground import ground
    from callmark.grounding.spans import extract_spans
    from callmark.plugins import call_format, importer, report, runner, scorer
    from callmark.probe.given import tool_use_fidelity
    from callmark.records.samples import sample_id_of, shard_of
    from callmark.run.verify import verify_dataset
    from callmark.runners.wrappers import render_prompt
    from callmark.scorers.privacy import check_privacy
    from callmark.scorers.redaction import redact_pii

_PUBLIC: dict[str, str] = {
    "ToolBroker": "callmark.broker.broker",
    "call_format": "callmark.plugins",
    "check_privacy": "callmark.scorers.privacy",
    "compare": "callmark.api",
    "dataset_sha256": "callmark.datasets.reader",
    "extract_spans": "callmark.grounding.spans",
    "ground": "callmark.grounding.ground",
    "importer": "callmark.plugins",
    "merge": "callmark.api",
    "parse_tool_calls": "callmark.api",
    "redact_pii": "callmark.scorers.redaction",
    "registry_sha256": "callmark.calls.registry",
    "render_prompt": "callmark.runners.wrappers",
    "report": "callmark.plugins",
    "run": "callmark.api",
    "runner": "callmark.plugins",
    "sample_id_of": "callmark.records.samples",
    "score_item": "callmark.api",
    "scorer": "callmark.plugins",
    "shard_of": "callmark.records.samples",
    "summarize_results": "callmark.api",
    "tool_use_fidelity": "callmark.probe.given",
    "validate_arguments": "callmark.calls.registry",
    "validate_sharding": "callmark.api",
    "verify_dataset": "callmark.run.verify",
}

__all__ = [
    "ToolBroker",
    "__version__",
    "call_format",
    "check_privacy",
    "compare",
    "dataset_sha256",
    "extract_spans",
    "ground",
    "importer",
    "merge",
    "parse_tool_calls",
    "redact_pii",
    "registry_sha256",
    "render_prompt",
    "report",
    "run",
    "runner",
    "sample_id_of",
    "score_item",
    "scorer",
    "shard_of",
    "summarize_results",
    "tool_use_fidelity",
    "validate_arguments",
    "validate_sharding",
    "verify_dataset",
]


class _Facade(ModuleType):
    """`callmark.run` is the function, also after something has imported `callmark.run.loop`: the
    import system would put the folder of that name in its place."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _PUBLIC and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *_PUBLIC})


sys.modules[__name__].__class__ = _Facade


def __getattr__(name: str) -> object:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'callmark' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_PUBLIC[name]), name)
