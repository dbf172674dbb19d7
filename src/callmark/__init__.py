"""callmark: does a model call its tools correctly and build its answer on what they returned?

The public names below are resolved when first used, so that `import callmark` stays cheap."""

from __future__ import annotations

import sys
from types import ModuleType

from callmark._version import __version__

# Type checkers know the name by itself, and `typing` would double what `import callmark` costs.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from callmark.api import (
        compare,
        merge,
        parse_tool_calls,
        read_results,
        run,
        score_item,
        statements,
        summarize_results,
        validate_sharding,
    )
    from callmark.broker.broker import ToolBroker
    from callmark.calls.registry import registry_sha256, validate_arguments
    from callmark.compare.records import Comparison
    from callmark.datasets.reader import dataset_sha256
    from callmark.grounding.ground import ground
    from callmark.grounding.spans import extract_spans
    from callmark.plugins import call_format, importer, report, runner, scorer
    from callmark.probe.fidelity import tool_use_fidelity
    from callmark.records.report import Report
    from callmark.records.results import Result
    from callmark.records.samples import sample_id_of, shard_of
    from callmark.run.preview import DryRun
    from callmark.run.verify import verify_dataset
    from callmark.runners.wrappers import render_prompt
    from callmark.scorers.privacy import check_privacy
    from callmark.scorers.redaction import redact_pii
    from callmark.shards.validate import Validation

_PUBLIC: dict[str, str] = {
    "Comparison": "callmark.compare.records",
    "DryRun": "callmark.run.preview",
    "Report": "callmark.records.report",
    "Result": "callmark.records.results",
    "ToolBroker": "callmark.broker.broker",
    "Validation": "callmark.shards.validate",
    "call_format": "callmark.plugins",
    "check_privacy": "callmark.scorers.privacy",
    "compare": "callmark.api",
    "dataset_sha256": "callmark.datasets.reader",
    "extract_spans": "callmark.grounding.spans",
    "ground": "callmark.grounding.ground",
    "importer": "callmark.plugins",
    "merge": "callmark.api",
    "parse_tool_calls": "callmark.api",
    "read_results": "callmark.api",
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
    "statements": "callmark.api",
    "summarize_results": "callmark.api",
    "tool_use_fidelity": "callmark.probe.fidelity",
    "validate_arguments": "callmark.calls.registry",
    "validate_sharding": "callmark.api",
    "verify_dataset": "callmark.run.verify",
}

__all__ = [
    "Comparison",
    "DryRun",
    "Report",
    "Result",
    "ToolBroker",
    "Validation",
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
    "read_results",
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
    "statements",
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
        return sorted({*__all__, *(name for name in self.__dict__ if name.startswith("__"))})


sys.modules[__name__].__class__ = _Facade


if not TYPE_CHECKING:  # a type checker that saw this would let every name pass

    def __getattr__(name: str) -> object:
        if name not in _PUBLIC:
            raise AttributeError(f"module 'callmark' has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(_PUBLIC[name]), name)
