"""The tools of a run: the registry, which of them are allowed, what each sample is offered; and
the specs that a run leaves beside its results, so that whoever scores them again has the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

import msgspec

from callmark.broker.broker import ToolBroker
from callmark.calls.formats import FORMATS, Format
from callmark.calls.registry import Registry, normalise
from callmark.datasets.reader import Dataset
from callmark.errors import BadInput, FingerprintMismatch
from callmark.plugins import with_formats
from callmark.records.jsontext import Json, canonical_json, digest, parse_json
from callmark.records.problems import hint, quote_name
from callmark.records.samples import Sample
from callmark.records.seams import Hit, Miss, Observed, ToolSource
from callmark.resources import allowlist, builtin_tools, load_registry_file
from callmark.store.files import LINE_DEPTH, atomic_writer, has_place

REMEMBERED = 1024  # different offers; most datasets have a handful


class Offer(msgspec.Struct, frozen=True):
    """What one sample is offered: names, the specs that a model is sent, and their hash."""

    registry: Registry
    names: frozenset[str]
    tools: list[dict[str, Json]]
    sha256: str


class Offers:
    """Every sample is offered its own tools or the whole registry, never only the expected ones."""

    def __init__(
        self, registry: Registry, allowed: frozenset[str], unknown: Sequence[str] = ()
    ) -> None:
        """`unknown`: names of the allowlist that are no tool of the registry."""
        self.registry = registry
        self.allowed = allowed
        self.unknown = tuple(unknown)
        self._offer = lru_cache(REMEMBERED)(self._made)

    def to(self, sample: Sample) -> Offer:
        return self._offer(sample.expectation.tools, sample.expectation.specs)

    def _made(self, given: tuple[str, ...] | None, own: tuple[str, ...]) -> Offer:
        wanted = self.registry.names if given is None else given
        registry = self.registry.offering([] if given is None else given, own)
        resolved = {name for one in wanted if (name := registry.resolve(one)) is not None}
        # The allowlist is about the registry: what a sample brings along, it allows.
        allowed = self.allowed | frozenset(registry.names if own else ())
        names = sorted(resolved & allowed)
        specs = {spec.name: spec.function for spec in registry.specs if spec.name in names}
        tools = registry.openai_tools(names)
        return Offer(registry, frozenset(names), tools, digest(specs))


def open_registry(path: str | None) -> Registry:
    """The built-in tools, or those of a file or folder."""
    if path is None:
        return Registry.from_specs(builtin_tools(), where="the built-in tools")
    file = load_registry_file(Path(path))
    return Registry.from_specs(file.specs, where=path, locate=file.locate)


def open_offers(registry_path: str | None, allowlist_path: str | None) -> Offers:
    """The shipped allowlist is about the built-in tools; another registry needs its own."""
    registry = open_registry(registry_path)
    if registry_path is not None and allowlist_path is None:
        return Offers(registry, frozenset(registry.names))
    return _allow(registry, allowlist_path)


def _allow(registry: Registry, allowlist_path: str | None) -> Offers:
    names = allowlist(None if allowlist_path is None else Path(allowlist_path))
    resolved = {name: registry.resolve(name) for name in names}
    unknown = [name for name, found in resolved.items() if found is None]
    return Offers(registry, frozenset(filter(None, resolved.values())), unknown)


def specs_beside(results: Path, sha256: str) -> Path:
    """Where the specs of this `tool_registry_sha256` stand, for results at `results`."""
    return results.with_name(f"tools-{sha256[:12]}.json")


def store_specs(results: Path, registry: Registry) -> None:
    """Once for all results of a folder that were made with these tools. The SHA-256 of the file is
    `tool_registry_sha256` itself. Results that go to a device have nothing beside them."""
    if not has_place(results):
        return
    path = specs_beside(results, registry.sha256)
    specs = {spec.name: spec.function for spec in registry.specs}
    data = canonical_json(specs).encode("utf-8", "surrogatepass")
    if not path.is_file() or path.read_bytes() != data:
        with atomic_writer(path) as stream:
            stream.write(data)


class ToolsOfResults:
    """The tools that the lines of one results file were made with: those that were stored beside
    it, or others of the same hash. `instead`: the tools at hand take their place, because somebody
    said so."""

    def __init__(
        self,
        results: Path,
        registry: str | None = None,
        allowlist: str | None = None,
        *,
        instead: bool = False,
    ) -> None:
        self._results = results
        self._allowlist = allowlist
        self._instead = instead
        self.at_hand = open_offers(registry, allowlist)
        self._name = registry or "the built-in tools"
        self._known = {self.at_hand.registry.sha256: self.at_hand}
        self._replaced: dict[str, None] = {}

    def of(self, sha256: str | None) -> Offers:
        """For lines that say this `tool_registry_sha256`; None: they do not say."""
        if sha256 is None or self._instead:
            if sha256 not in (None, self.at_hand.registry.sha256):
                self._replaced[str(sha256)] = None
            return self.at_hand
        found = self._known.get(sha256)
        if found is None:
            found = self._known[sha256] = self._opened(sha256)
        return found

    def warnings(self) -> list[str]:
        """That other tools than those of the run were asked for."""
        ours = self.at_hand.registry.sha256
        return [
            f"--registry {self._name} (tool_registry_sha256 {ours}) was used instead of the tools"
            f" of the run ({sha256})"
            for sha256 in self._replaced
        ]

    def _opened(self, sha256: str) -> Offers:
        path = specs_beside(self._results, sha256)
        if not path.is_file():
            builtin = open_offers(None, self._allowlist)
            if builtin.registry.sha256 == sha256:
                return builtin
            raise FingerprintMismatch(
                f"{self._results}: was made with other tools than those at hand:"
                f" tool_registry_sha256 is {sha256}, that of {self._name}"
                f" {self.at_hand.registry.sha256}. Copy {path.name}, which a run writes beside its"
                " results, to this place too, or name the tools with --registry. (An older version"
                " wrote none: run it again.)"
            )
        registry = open_registry(str(path))
        if registry.sha256 != sha256:
            raise FingerprintMismatch(
                f"{path}: was changed since the run wrote it: tool_registry_sha256 of the results"
                f" is {sha256}, that of this file {registry.sha256}. Copy it again from the run,"
                " or name the tools with --registry"
            )
        if self._allowlist is not None:
            return _allow(registry, self._allowlist)
        return Offers(registry, frozenset(registry.names))


def check_allowed(offers: Offers) -> list[str]:
    """Warns of names in the allowlist that allow nothing."""
    return [
        f"the allowlist names {name!r}, which is not a tool in the registry"
        for name in offers.unknown
    ]


def check_tools(dataset: Dataset, offers: Offers, *, are_live: bool = False) -> list[str]:
    """Refuses samples that name tools nobody has, and warns of expected calls that no model could
    make because their tool is not offered. `are_live`: the tools are those of a recording, which
    may be about others than a dataset expects."""
    registry = offers.registry
    known = ", ".join(map(quote_name, registry.names)) or "none"
    facts = dataset.facts
    problems = [
        f"{dataset.name}:{facts.offered_line[name]}: metadata.tools: {name!r}"
        f" (samples: {count}) is not a tool in the registry, which has {known};"
        " name another one with --registry"
        for name, count in facts.offered.items()
        if registry.resolve(name) is None
    ]
    # A tool that does not exist is never called: a check that it is not would pass by a typo.
    problems += [
        f"{dataset.name}:{line}: metadata.checks: {name!r} is no tool of the registry, which has"
        f" {known}; name another one with --registry"
        for name, line in facts.checked_line.items()
        if registry.resolve(name) is None and name not in facts.brought
    ]
    if problems:
        raise BadInput(problems[:20])
    unoffered = {
        name: count
        for name, count in facts.tools.items()
        if registry.resolve(name) not in offers.allowed and name not in facts.brought
    }
    unknown = [name for name in unoffered if registry.resolve(name) is None]
    if unknown and len(unknown) == len(facts.tools) and not are_live:
        # Whatever a model did, it would fail: that is no finding about the model.
        raise BadInput(
            [
                f"{dataset.name}: expects calls of {', '.join(map(repr, unknown[:5]))}, and the"
                f" registry has {known}; name your tools with --registry"
            ]
        )
    return [
        f"calls of {name!r} are expected (samples: {count}), but "
        + (
            f"the registry has no such tool{hint(name, registry.names)}"
            if name in unknown
            else "no sample is ever offered it"
        )
        for name, count in unoffered.items()
    ]


class NoFixtures:
    """The tools of a run without fixtures: what was not recorded is missed, and counted."""

    fixtures_sha256: str | None = None

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def session(self, sample_id: str | None = None) -> NoFixtures:
        return self

    def with_tools(self, registry: Registry) -> NoFixtures:
        return NoFixtures(registry)

    def answer(self, name: str, arguments: Json) -> Hit | Miss:
        call = normalise(name, arguments, registry=self._registry)
        key = None if call is None else parse_json(call.key_json, max_depth=LINE_DEPTH)
        return Miss(name, arguments, key)

    def has_answer(self, name: str, arguments: Json | None) -> bool:
        return False


class GivenTools(msgspec.Struct, frozen=True):
    """Tools that a caller brings along, in the place of registry and fixtures. `observed` says at
    the end what a report has to know of them."""

    offers: Offers
    source: ToolSource
    observed: Callable[[], Observed]


def open_source(fixtures: str | None, registry: Registry) -> ToolBroker | NoFixtures:
    if fixtures is None:
        return NoFixtures(registry)
    if not Path(fixtures).exists():
        raise BadInput(
            f"{fixtures}: no such fixture folder; make it, or name another with --fixtures"
        )
    return ToolBroker(fixtures, registry)


def installed_formats() -> tuple[Format, ...]:
    """The built-in ones and those of plug-ins."""
    return with_formats(FORMATS)
