"""Is everything installed, readable and consistent? One line a check; none stops another."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

from callmark.broker.broker import ToolBroker
from callmark.broker.check import check_fixtures
from callmark.config import load_config
from callmark.core.jsontext import Json
from callmark.core.results import Fingerprints
from callmark.datasets.reader import open_dataset
from callmark.errors import BadInput, CallmarkError
from callmark.resources import (
    allowlist,
    default_config,
    demo_paths,
    schema,
)
from callmark.running.fingerprints import compare_pinned, refuse_other_pins
from callmark.running.offers import open_registry

OLDEST_PYTHON = (3, 11)
DEPENDENCIES = (
    "msgspec",
    "PyYAML",
    "jsonschema-rs",
    "json-repair",
    "Babel",
    "phonenumbers",
    "python-stdnum",
    "numpy",
    "rich",
    "aiohttp",
    "Jinja2",
    "google-re2",
)


class Check(msgspec.Struct, frozen=True):
    subject: str
    ok: bool
    detail: str


class Files(msgspec.Struct, frozen=True):
    """What belongs together: a dataset, and the tools and fixtures that it was made for."""

    dataset: str | None
    fixtures: str | None
    registry: str | None


def examine(config: Path | None, flags: dict[str, Json]) -> Iterator[Check]:
    """This machine and the shipped files; then the user's own, if flags or settings name some."""
    yield _python()
    yield from map(_dependency, DEPENDENCIES)
    yield from _shipped()
    try:
        settings = load_config(config, flags)
    except CallmarkError as error:
        yield Check("settings", False, str(error))
        return
    own = Files(settings.dataset, settings.fixtures, settings.registry)
    if own != Files(None, None, None):
        yield from _examine_files("", own)


def _python() -> Check:
    found = ".".join(map(str, sys.version_info[:3]))
    wanted = ".".join(map(str, OLDEST_PYTHON))
    return Check("Python", sys.version_info >= OLDEST_PYTHON, f"{found}; {wanted} is the oldest")


def _dependency(name: str) -> Check:
    try:
        return Check(name, True, version(name))
    except PackageNotFoundError:
        return Check(name, False, f"is not installed: pip install {name}")


def _shipped() -> Iterator[Check]:
    yield _tried("default settings", lambda: f"{len(default_config()['gates'])} gates")
    yield _tried("result schema", lambda: str(schema("eval_result")["$id"]))
    yield _tried("allowlist", lambda: f"{len(allowlist())} tools")
    demo = demo_paths()
    yield from _examine_files("bundled ", Files(str(demo.dataset), str(demo.fixtures), None))


def _examine_files(whose: str, files: Files) -> Iterator[Check]:
    yield _tried(f"{whose}tools", lambda: f"{len(open_registry(files.registry).names)} tools")
    if files.fixtures is not None:
        yield _tried(f"{whose}fixtures", lambda: _fixtures(files))
    if files.dataset is not None:
        yield _tried(f"{whose}dataset", lambda: _dataset(files))


def _tried(subject: str, look: Callable[[], str]) -> Check:
    try:
        return Check(subject, True, look())
    except CallmarkError as error:
        return Check(subject, False, str(error))
    except OSError as error:
        return Check(subject, False, f"{error.filename}: {error.strerror}")


def _broker(files: Files) -> ToolBroker | None:
    if files.fixtures is None:
        return None
    return ToolBroker(files.fixtures, open_registry(files.registry))


def _fixtures(files: Files) -> str:
    broker = _broker(files)
    if broker is None:
        raise BadInput("no folder was named")
    check = check_fixtures(broker)
    rate = f"{check.total.hits} of {check.total.calls} calls answered"
    text = f"{files.fixtures}: {check.fixtures} fixtures, {rate}"
    if not check.ok:
        raise BadInput(f"{text}; see: callmark fixtures check {files.fixtures}")
    return text


def _dataset(files: Files) -> str:
    """Readable, and what its header pins is what is there."""
    with open_dataset(Path(files.dataset or "")) as dataset:
        broker = _broker(files)
        computed = Fingerprints(
            dataset_sha256=dataset.sha256,
            tool_registry_sha256=open_registry(files.registry).sha256,
            fixtures_sha256=None if broker is None else broker.fixtures_sha256,
        )
        pinned = compare_pinned(dataset.header, computed)
        warnings = refuse_other_pins(
            dataset.name, dataset.header, computed, pinned, may_differ=False
        )
        notes = "".join(f"; {warning}" for warning in (*dataset.warnings, *warnings))
        return f"{dataset.name}: {dataset.facts.samples} samples{notes}"
