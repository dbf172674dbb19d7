"""The settings of a run as a runner gets them, secrets resolved."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from callmark.config import RunConfig
from callmark.errors import UsageError
from callmark.records.jsontext import Json, want_object
from callmark.records.results import Decoding
from callmark.run.offers import Offers
from callmark.runners.options import LocalOptions, RunnerOptions, ServedOptions

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
# Headers whose value is a secret by its nature: never written out in a config file.
_SECRET_HEADERS = re.compile(r"authorization|cookie|token|secret|key", re.IGNORECASE)
_PASSWORD = re.compile(r"//[^/@]*:(?!\$\{)[^/@]+@")


_SERVED = (
    "base_url", "api_key", "headers", "extra_body", "max_connections", "request_timeout",
    "sample_timeout", "max_retries", "model_revision",
)  # fmt: skip
_LOCAL = ("adapter", "dtype", "device", "batch_size")
# What the built-in runners never look at. Decoding is recorded whoever answers, and is not here.
_UNUSED = {
    "openai_http": _LOCAL,
    "hf_local": _SERVED,
    "replay": (*_SERVED, *_LOCAL),
}


def refuse_unused(config: RunConfig) -> list[str]:
    """Refuses settings that do nothing for the runner. Where a flag chose another runner than the
    settings file is for, what the file says for its own is left aside with a warning."""
    left: list[str] = []
    for name in _UNUSED.get(config.runner, ()):
        source = config.source_of(name)
        if source == "default" or getattr(config, name) in (None, {}):
            continue
        if source == "config" and config.source_of("runner") == "flag":
            left.append(f"{config.places.get(name, config.config_file)}: {name}")
            continue
        raise UsageError(
            f"--{name.replace('_', '-')}: does nothing for the runner {config.runner}:"
            f" leave it out, or choose --runner {'hf_local' if name in _LOCAL else 'openai_http'}"
        )
    if not left:
        return []
    return [f"left aside, because --runner {config.runner} does not use it: {', '.join(left)}"]


def runner_options(
    config: RunConfig,
    offers: Offers,
    decoding: Decoding,
    *,
    raw_prompt: bool = False,
    asked: Callable[[str], bool] | None = None,
) -> RunnerOptions:
    return RunnerOptions(
        model=config.model,
        decoding=decoding,
        tool_registry_sha256=offers.registry.sha256,
        tools=tuple(offers.registry.openai_tools(sorted(offers.allowed))),
        parse_text=config.parse_text,
        determinism_mode=config.determinism_mode,
        raw_prompt=raw_prompt,
        asked=asked,
        served=_served_options(config),
        local=LocalOptions(
            adapter=config.adapter,
            dtype=config.dtype,
            device=config.device,
            batch_size=None if config.batch_size == "auto" else int(config.batch_size),
        ),
    )


def _served_options(config: RunConfig) -> ServedOptions:
    if config.source_of("base_url") == "config" and _PASSWORD.search(config.base_url or ""):
        raise UsageError("--base-url: a password must not stand in a file: write ${NAME}")
    if config.api_key is not None and not _VARIABLE.fullmatch(config.api_key):
        raise UsageError("--api-key: a key must not stand in a file: write ${NAME_OF_A_VARIABLE}")
    for name, value in config.headers.items():
        if _SECRET_HEADERS.search(name) and not _VARIABLE.search(value):
            raise UsageError(
                f"--headers.{name}: a secret must not stand in a file: write ${{NAME}}"
            )
    auto = config.max_connections == "auto"
    secrets: list[str] = []
    return ServedOptions(
        base_url=resolve_text(config.base_url or "", "base_url", secrets)
        or os.environ.get("OPENAI_BASE_URL"),
        api_key=(
            os.environ.get("OPENAI_API_KEY")
            if config.api_key is None
            else resolve_text(config.api_key, "api_key", secrets)
        ),
        headers={
            name: resolve_text(value, f"headers.{name}", secrets)
            for name, value in config.headers.items()
        },
        extra_body=want_object(resolve_secrets(config.extra_body, "extra_body", secrets)),
        extra_body_written=config.extra_body,
        secrets=tuple(secrets),
        max_connections=None if auto else int(config.max_connections),
        request_timeout=config.request_timeout,
        max_retries=0 if config.determinism_mode else config.max_retries,
        model_revision=config.model_revision,
    )


def resolve_text(text: str, where: str, secrets: list[str]) -> str:
    """`${NAME}` replaced by the environment's value. What was put in is added to `secrets`."""
    return _VARIABLE.sub(lambda found: _variable(found.group(1), where, secrets), text)


def resolve_secrets(value: Json, where: str, secrets: list[str]) -> Json:
    """The same at every depth."""
    if isinstance(value, str):
        return resolve_text(value, where, secrets)
    if isinstance(value, list):
        return [resolve_secrets(one, where, secrets) for one in value]
    if isinstance(value, dict):
        return {key: resolve_secrets(one, f"{where}.{key}", secrets) for key, one in value.items()}
    return value


def _variable(name: str, where: str, secrets: list[str]) -> str:
    try:
        found = os.environ[name]
    except KeyError:
        raise UsageError(f"--{where}: the environment variable {name} is not set") from None
    secrets.append(found)
    return found
