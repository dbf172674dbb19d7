"""What a run depends on, computed before the first generation and compared with what is pinned."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

import msgspec

from callmark._version import __version__
from callmark.calls.formats import Format
from callmark.config import RunConfig
from callmark.datasets.reader import Dataset
from callmark.errors import BadInput, FingerprintMismatch
from callmark.plugins import plugin_marks
from callmark.records.jsontext import Json, canonical_json, digest, plain_object
from callmark.records.report import ReportHeader
from callmark.records.results import Decoding, Fingerprints, ScorerMark
from callmark.records.samples import Header
from callmark.records.seams import Runner
from callmark.scorers.score import SCORER_VERSION
from callmark.stats.key_index import KeyIndex
from callmark.store.problems import show_value
from callmark.store.recorded import Recorded, RecordedIndex, read_recorded
from callmark.summary.trials import ConflictingResults

Check = Literal["equal", "different", "unchecked"]

# What a header can pin. The tokenizer is known only to runners that have one.
PINNED = ("dataset_sha256", "tool_registry_sha256", "fixtures_sha256", "tokenizer_fingerprint")
LIBRARIES = ("msgspec", "jsonschema-rs", "json-repair", "Babel", "phonenumbers", "python-stdnum")

# Settings beside the fingerprints on which the lines of a results file depend. What is left out
# (gates, report, limits on errors) may change between a run and its resumption.
RESUME_SETTINGS = (
    "repeat",
    "num_shards",
    "shard_index",
    "span_extractor",
    "integration_span_cap",
    "strict_keys",
    "url_allowlist",
    "privacy_echo",
    "redact_pii",
    "miss_reply",
    "limit",
    "only",
    "slice",
)
MAY_GROW = ("limit",)
# What a merge has to go by that no line depends on.
MERGE_SETTINGS = (
    "determinism_mode",
    "max_errors",
    "fail_on_gate_failure",
    "fail_on_inconclusive",
)


def runner_fingerprint(
    config: RunConfig,
    runner: Runner,
    decoding: Decoding,
    *,
    wrapper_sha256: str | None,
    system: str | None,
    formats: Sequence[Format],
    plugins: Sequence[Json] = (),
) -> str:
    """`plugins`: the marks of the runner and of the formats that do not ship with callmark."""
    return digest(
        {
            **({"plugins": [*plugins]} if plugins else {}),
            "runner": runner.name,
            "prompt_wrapper_sha256": wrapper_sha256,
            "system": system,
            "parse_text": config.parse_text,
            "formats": list(dict.fromkeys(row.name for row in formats)),
            "max_turns": decoding.max_turns,
            "max_tokens": decoding.max_tokens,
            "tool_choice": decoding.tool_choice,
            **runner.fingerprint_parts(),
        }
    )


def compare_pinned(header: Header, computed: Fingerprints) -> dict[str, Check]:
    """For each fingerprint that the header pins. What cannot be computed is never equal."""
    checks: dict[str, Check] = {}
    for name in PINNED:
        pinned, found = getattr(header, name), getattr(computed, name)
        if pinned is not None:
            same: Check = "equal" if pinned == found else "different"
            checks[name] = "unchecked" if found is None else same
    return checks


def refuse_other_pins(
    where: str,
    header: Header,
    computed: Fingerprints,
    checks: dict[str, Check],
    *,
    may_differ: bool,
) -> list[str]:
    """Raises if anything differs from what the header at `where` says; warnings instead where that
    was asked for."""
    differing = [
        f"{name}: the header of the dataset has {_show(getattr(header, name))},"
        f" this run {_show(getattr(computed, name))}"
        for name, check in checks.items()
        if check == "different"
    ]
    if differing and not may_differ:
        raise FingerprintMismatch(
            f"{where}: made for other data than this:\n  "
            + "\n  ".join(differing)
            + "\nUse the dataset, tools and fixtures that belong together, or explore with"
            " --no-fail-on-fingerprint-mismatch."
        )
    unchecked = [
        f"{name}: pinned by the header of the dataset, but this run cannot compute it: unchecked"
        for name, check in checks.items()
        if check == "unchecked"
    ]
    return differing + unchecked


def resume_key(
    config: RunConfig,
    fingerprints: Fingerprints,
    decoding: Decoding,
    allowed: frozenset[str],
    only: frozenset[str] | None,
    scorers: Sequence[ScorerMark] = (),
) -> dict[str, Json]:
    """Everything that must be equal for one journal to hold the lines of two runs."""
    settings = {name: getattr(config, name) for name in RESUME_SETTINGS}
    chosen = {"only": None if only is None else digest(sorted(only))}
    everything = {
        **msgspec.structs.asdict(fingerprints),
        **settings,
        **chosen,
        "decoding": msgspec.structs.asdict(decoding),
        "allowed_tools": sorted(allowed),
        "scorer_version": SCORER_VERSION,
        **({"scorers": scorers} if scorers else {}),
    }
    return plain_object(everything)


def shard_settings(config: RunConfig, key: dict[str, Json]) -> dict[str, Json]:
    """What all shards of a run share beside what stands in the header of their reports. `key` is
    their `resume_key`."""
    in_header = ReportHeader.__struct_fields__
    shared = {name: value for name, value in key.items() if name not in in_header}
    return {**shared, **{name: getattr(config, name) for name in MERGE_SETTINGS}}


def provenance(checks: dict[str, Check]) -> dict[str, Json]:
    """Where the numbers come from. Shown, never a key."""
    return {
        "callmark": __version__,
        "python": platform.python_version(),
        "host": f"{platform.system()} {platform.machine()}",
        "libraries": {name: _version_of(name) for name in LIBRARIES},
        "pinned": dict(checks),
        **({"plugins": marks} if (marks := plugin_marks()) else {}),
    }


def _version_of(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _show(value: Json) -> str:
    return value if isinstance(value, str) else canonical_json(value)


def locate_conflict(conflict: ConflictingResults, path: Path) -> BadInput:
    """The same with file and lines."""
    if not path.is_file():
        return BadInput(f"{path}: {conflict}")
    first, second = conflict.sample_ids
    found = [line for line in read_recorded(path) if _is_meant(line, conflict)]
    line = found[-1].line
    if first == second:
        what = f"sample_id: {show_value(first)}, trial {conflict.trial}"
        advice = "number repeated answers with `trial`"
        return BadInput(f"{path}:{line}: {what} stands on line {found[0].line} too: {advice}")
    other = next(entry for entry in found if entry.sample_id != found[-1].sample_id)
    what = (
        f"index: {conflict.index} is that of {show_value(other.sample_id)} on line {other.line} too"
    )
    advice = "results of different datasets cannot be summarised together"
    return BadInput(f"{path}:{line}: {what}: {advice}")


def unasked(index: RecordedIndex, dataset: Dataset, count: int) -> BadInput:
    """Some lines have an id or a trial that no sample of the dataset asked for: names the first."""
    trials = KeyIndex(numbers_only=True)
    for sample in dataset.samples():
        found = 0
        while index.get(sample.sample_id, found) is not None:
            found += 1
        trials.setdefault(sample.sample_id, found + 1)
    for line in read_recorded(index.path):
        asked = trials.setdefault(line.sample_id, 0).value
        if line.trial >= asked - 1:
            break
    what = f"sample_id: {show_value(line.sample_id)} is no sample of {dataset.name}"
    if asked:
        what = f"trial: is {line.trial}, but {show_value(line.sample_id)} has no trial {asked - 1}"
    more = f" ({count - 1} more such lines)" if count > 1 else ""
    return BadInput(f"{index.path}:{line.line}: {what}{more}: is it the right dataset?")


def _is_meant(line: Recorded, conflict: ConflictingResults) -> bool:
    first, second = conflict.sample_ids
    if first == second:
        return line.sample_id == first and line.trial == conflict.trial
    return line.sample_id in conflict.sample_ids
