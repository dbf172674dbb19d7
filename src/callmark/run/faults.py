"""Faults that are planted into a run: some calls of some tools fail, time out, or answer with an
error, with nothing, or with only a part of their result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, assert_never, get_args

import msgspec

from callmark.calls.registry import Registry
from callmark.config import RunConfig
from callmark.datasets.reader import Dataset, PartOfDataset
from callmark.errors import UsageError
from callmark.records.jsontext import Json, canonical_json, digest
from callmark.records.problems import KeySet, quote_name, show_value, typed_problem, word_problem
from callmark.records.samples import CALL_FREE, Sample
from callmark.records.seams import Hit, Miss, ToolSession
from callmark.records.trace import FAULT, FaultKind, FaultyCall, is_mcp_result, text_of
from callmark.store.settings import read_settings

EVERY_TOOL = "*"
FAILED = frozenset(f"{FAULT}{kind}" for kind in ("fail", "timeout", "error"))
LISTED = 5
# What the model is told where the rule does not say it.
_TOLD: dict[FaultKind, str] = {
    "fail": "the tool failed and gave no answer",
    "timeout": "timeout: the tool did not answer in time",
    "error": "internal error",
}
_KEYS = KeySet(
    known=("tool", "kind", "call", "samples", "result", "keep"),
    synonyms={
        **dict.fromkeys(("name", "function"), "tool"),
        **dict.fromkeys(("fault", "type"), "kind"),
        **dict.fromkeys(("nth", "n", "seq", "number"), "call"),
        **dict.fromkeys(("sample", "sampleid", "sampleids", "only"), "samples"),
        **dict.fromkeys(("characters", "length"), "keep"),
    },
)


class FaultRule(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of a faults file. `tool`: its name, or `*` for each tool by itself; `samples` None:
    in all of them; `result`: what an `error` says; `keep`: how many characters `truncated` leaves
    (None: half of them)."""

    tool: Annotated[str, msgspec.Meta(min_length=1)]
    kind: FaultKind
    call: Annotated[int, msgspec.Meta(ge=1)] = 1
    samples: frozenset[str] | None = None
    result: Json = msgspec.UNSET
    keep: Annotated[int, msgspec.Meta(ge=0)] | None = None

    def fits(self, tool: str, call: int) -> bool:
        return self.call == call and self.tool in (tool, EVERY_TOOL)

    def spoil(self, result: Json) -> Json:
        """What is answered instead of this result."""
        match self.kind:
            case "fail" | "timeout" | "error":
                told: Json = {"ok": False, "error": _TOLD[self.kind]}
                return told if self.result is msgspec.UNSET else self.result
            case "empty":
                return _empty(result)
            case "truncated":
                text = _text(result)
                kept = len(text) // 2 if self.keep is None else self.keep
                return text[: min(kept, max(len(text) - 1, 0))]
            case _:
                assert_never(self.kind)


def _empty(result: Json) -> Json:
    """Nothing, in the shape of something."""
    if is_mcp_result(result):
        return {"content": [], "isError": False}
    match result:
        case dict():
            return {}
        case list():
            return []
        case str():
            return ""
        case _:
            return None


def _text(result: Json) -> str:
    """As a model is shown it: whoever cuts a result off cuts this."""
    if is_mcp_result(result):
        return text_of(result)
    return result if isinstance(result, str) else canonical_json(result)


class ToolFaults(msgspec.Struct, frozen=True):
    """The rules of a file, the first that fits a call first."""

    rules: tuple[FaultRule, ...]
    sha256: str

    def plant(self, session: ToolSession, sample: Sample, registry: Registry) -> FaultySession:
        # A step is over after one turn: nobody could try again; a control calls nothing.
        expectation = sample.expectation
        rules = () if expectation.is_step or expectation.kind in CALL_FREE else self.rules
        here = [rule for rule in rules if rule.samples is None or sample.sample_id in rule.samples]
        return FaultySession(session, here, list(_expected(sample, registry)))


class FaultySession:
    """The tools of one trial, with faults. Only calls that have an answer count, each tool by
    itself: a call that no fixture answers stays a miss, whatever its number."""

    def __init__(
        self, session: ToolSession, rules: list[FaultRule], expected: list[tuple[str, int]]
    ) -> None:
        """`expected`: the tool and the number of each call that the sample expects."""
        self._session = session
        self._rules = rules
        self._expected = expected
        self._answered: dict[str, int] = {}
        self._met: dict[tuple[str, int], FaultKind] = {}
        # A fault takes the place of an answer, which the next try gets.
        self._held: dict[tuple[str, str], Hit] = {}

    def answer(self, name: str, arguments: Json) -> Hit | Miss:
        key = (name, canonical_json(arguments)) if self._rules else ("", "")
        answer = self._held.pop(key, None) or self._session.answer(name, arguments)
        if isinstance(answer, Miss) or not self._rules:
            return answer
        call = self._answered.get(name, 0) + 1
        self._answered[name] = call
        rule = self._rule_for(name, call)
        if rule is None:
            return answer
        self._met[name, call] = rule.kind
        self._held[key] = answer
        result = rule.spoil(answer.result)
        line = {"fault": rule.kind, "name": name, "result": result}
        return Hit(result, f"{FAULT}{rule.kind}", digest(line))

    def has_answer(self, name: str, arguments: Json | None) -> bool:
        return self._session.has_answer(name, arguments)

    def may_strike(self, tool: str | None) -> bool:
        """Whether any call of this tool is to go wrong in this trial."""
        return any(rule.tool in (tool, EVERY_TOOL) for rule in self._rules)

    def faults(self) -> tuple[FaultyCall, ...]:
        """Those that were met, and those that lay in wait for a call that the sample expects."""
        due = {place: rule.kind for place in self._expected if (rule := self._rule_for(*place))}
        return tuple(
            FaultyCall(*place, kind) for place, kind in sorted({**due, **self._met}.items())
        )

    def _rule_for(self, tool: str, call: int) -> FaultRule | None:
        return next((rule for rule in self._rules if rule.fits(tool, call)), None)


def _expected(sample: Sample, registry: Registry) -> Iterator[tuple[str, int]]:
    counts: dict[str, int] = {}
    for call in sample.expectation.calls:
        tool = registry.resolve(call.name) or call.name
        counts[tool] = counts.get(tool, 0) + 1
        yield tool, counts[tool]


def open_faults(path: Path, config: RunConfig, registry: Registry, dataset: Dataset) -> ToolFaults:
    """Raises UsageError for a file that plants nothing, or other than it seems to."""
    if config.max_turns == 1:
        raise UsageError(
            "--faults: a model needs a further turn to try again: leave out --max-turns 1"
        )
    found = read_settings(path).values
    rows = found.get("faults")
    if not isinstance(rows, list) or not rows or len(found) > 1:
        raise UsageError(
            f"{path}: must hold one key, `faults`, with a list of {{tool, kind, call}}"
        )
    rules: dict[str, FaultRule] = {}
    for at, row in enumerate(rows):
        where = f"{path}: faults[{at}]"
        rule = _resolve(where, _rule(where, row), registry, dataset)
        only = None if rule.samples is None else sorted(rule.samples)
        same = canonical_json([rule.tool, rule.call, only])
        if same in rules:
            raise UsageError(f"{where}: another entry is about the same call: remove one of them")
        rules[same] = rule
    if not isinstance(dataset, PartOfDataset):
        _check_samples(path, rules.values(), dataset)
    plain = [{"about": about, **_effect(rule)} for about, rule in rules.items()]
    return ToolFaults(tuple(rules.values()), digest(plain))


def _effect(rule: FaultRule) -> dict[str, Json]:
    told = {} if rule.result is msgspec.UNSET else {"result": rule.result}
    return {"kind": rule.kind, "keep": rule.keep, **told}


def _rule(where: str, row: Json) -> FaultRule:
    if not isinstance(row, dict):
        raise UsageError(f"{where}: must be an object {{tool, kind, call}}, not {show_value(row)}")
    for key in row:
        if key not in _KEYS.names:
            raise UsageError(f"{where}.{quote_name(str(key))}: {_KEYS.refusal(str(key), row)}")
    kinds = get_args(FaultKind)
    if "kind" in row and (problem := word_problem(kinds, row["kind"])):
        raise UsageError(f"{where}.kind: {problem}")
    try:
        canonical_json(row)  # YAML knows dates, which no tool answers with
        rule = msgspec.convert(row, FaultRule)
    except msgspec.ValidationError as error:
        raise UsageError(f"{where}.{typed_problem(error)}") from None
    except (TypeError, ValueError):
        raise UsageError(f"{where}.result: must be JSON: put a date into quotes") from None
    for name, kind, given in (
        ("result", "error", rule.result is not msgspec.UNSET),
        ("keep", "truncated", rule.keep is not None),
    ):
        if given and rule.kind != kind:
            raise UsageError(f"{where}.{name}: is for the kind {kind}, not for {rule.kind}")
    return rule


def _resolve(where: str, rule: FaultRule, registry: Registry, dataset: Dataset) -> FaultRule:
    """With the tool's own name. One that nobody has would never be called: a typo would pass for a
    model that meets no fault."""
    if rule.tool == EVERY_TOOL or rule.tool in dataset.facts.brought:
        return rule
    tool = registry.resolve(rule.tool)
    if tool is None:
        known = ", ".join(map(quote_name, registry.names)) or "none"
        raise UsageError(
            f"{where}.tool: {show_value(rule.tool)} is not a tool in the registry, which has"
            f" {known}; name another one with --registry"
        )
    return msgspec.structs.replace(rule, tool=tool)


def _check_samples(path: Path, rules: Iterable[FaultRule], dataset: Dataset) -> None:
    named = {one for rule in rules for one in rule.samples or ()}
    missing = sorted(named.difference(dataset.ids()) if named else ())
    if missing:
        shown = ", ".join(missing[:LISTED])
        more = f" and {len(missing) - LISTED} more" if len(missing) > LISTED else ""
        raise UsageError(f"{path}: samples: {dataset.name} has no sample {shown}{more}")
