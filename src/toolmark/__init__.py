"""toolmark: does a model call its tools rightly and build its answer on what they returned?

The public names below are resolved when first used, so that `import toolmark` stays cheap."""

from __future__ import annotations

from toolmark._version import __version__

_PUBLIC: dict[str, str] = {
    "ToolBroker": "toolmark.broker.broker",
    "check_privacy": "toolmark.scorers.privacy",
    "compare": "toolmark.api",
    "dataset_sha256": "toolmark.datasets.reader",
    "extract_spans": "toolmark.grounding.spans",
    "ground": "toolmark.grounding.ground",
    "merge": "toolmark.api",
    "parse_tool_calls": "toolmark.api",
    "redact_pii": "toolmark.scorers.redaction",
    "registry_sha256": "toolmark.calls.registry",
    "render_prompt": "toolmark.runners.wrappers",
    "run": "toolmark.api",
    "sample_id_of": "toolmark.core.identity",
    "score_item": "toolmark.api",
    "shard_of": "toolmark.core.identity",
    "summarize_results": "toolmark.api",
    "tool_use_fidelity": "toolmark.probe.given",
    "validate_arguments": "toolmark.calls.registry",
    "verify_dataset": "toolmark.verifying.verify",
}

__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str) -> object:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'toolmark' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_PUBLIC[name]), name)
