"""callmark: does a model call its tools rightly and build its answer on what they returned?

The public names below are resolved when first used, so that `import callmark` stays cheap."""

from __future__ import annotations

from callmark._version import __version__

_PUBLIC: dict[str, str] = {
    "ToolBroker": "callmark.broker.broker",
    "check_privacy": "callmark.scorers.privacy",
    "compare": "callmark.api",
    "dataset_sha256": "callmark.datasets.reader",
    "extract_spans": "callmark.grounding.spans",
    "ground": "callmark.grounding.ground",
    "merge": "callmark.api",
    "parse_tool_calls": "callmark.api",
    "redact_pii": "callmark.scorers.redaction",
    "registry_sha256": "callmark.calls.registry",
    "render_prompt": "callmark.runners.wrappers",
    "run": "callmark.api",
    "sample_id_of": "callmark.core.identity",
    "score_item": "callmark.api",
    "shard_of": "callmark.core.identity",
    "summarize_results": "callmark.api",
    "tool_use_fidelity": "callmark.probe.given",
    "validate_arguments": "callmark.calls.registry",
    "validate_sharding": "callmark.api",
    "verify_dataset": "callmark.verifying.verify",
}

__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str) -> object:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'callmark' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_PUBLIC[name]), name)
