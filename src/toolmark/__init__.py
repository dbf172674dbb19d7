"""toolmark: does a model call its tools rightly and build its answer on what they returned?

The public names below are resolved when first used, so that `import toolmark` stays cheap."""

from __future__ import annotations

from toolmark._version import __version__

_PUBLIC: dict[str, str] = {}

__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str) -> object:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'toolmark' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_PUBLIC[name]), name)
