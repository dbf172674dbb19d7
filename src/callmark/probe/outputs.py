"""The probe for outputs that somebody already has: plain JSON values in and out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeGuard

import msgspec

from callmark.errors import BadInput
from callmark.probe.fidelity import Nulls, fidelity
from callmark.probe.spec import (
    FidelitySpec,
    SpecReader,
    ToolUseCase,
    Where,
    cases_of,
    check_format,
    check_tools,
    keys_of,
)
from callmark.probe.stats import NullStats
from callmark.records.jsontext import Json, plain_object, well_formed
from callmark.records.problems import show_value

_TOO_LARGE = 2**1023


def tool_use_fidelity(
    cases: Iterable[ToolUseCase | Mapping[str, Json]],
    base_outputs: Sequence[str | None],
    tuned_outputs: Sequence[str | None],
    *,
    null_rates: Sequence[float] = (),
    null_stats: Mapping[str, Json] | None = None,
    null_stats_by_rank: Mapping[str, Mapping[str, Json]] | None = None,
    spec: FidelitySpec | Mapping[str, Json] | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Say what a fine-tune did to the tool calls, from outputs that you already have.

    Args:
        cases: what was asked: `prompt`, `tool_spec`, `gold_tool_name`, …
        base_outputs: what the model before answered, one text per case; None is no answer.
        tuned_outputs: the same of the model after.
        null_rates: the rates of changed calls under adapters that learnt nothing.
        null_stats: `{mean, std, n, degenerate}` of such adapters, each optional; without a mean
            there is no z.
        null_stats_by_rank: the same for each rank.
        spec: the fields of a suite entry, its cases apart.
        seed: of the intervals.

    Returns:
        `verdict`, `decision`, `score`, `raw`, `z_score`, `base_value`, `ft_value`, `ci_95`,
        `evidence` and `message`.

    Raises:
        BadInput: what is wrong with the arguments, each by its place.

    >>> import callmark
    >>> case = {"prompt": "Boats?", "gold_tool_name": "search",
    ...         "tool_spec": {"name": "search", "parameters": {"type": "object"}}}
    >>> call = '<tool_call>{"name": "search", "arguments": {}}</tool_call>'
    >>> found = callmark.tool_use_fidelity([case], [call], ["I do not know."])
    >>> found["base_value"], found["ft_value"]
    (1.0, 0.0)
    """
    reader = SpecReader()
    made = _spec_of(cases, spec, reader)
    base = _texts(base_outputs, "base_outputs", reader)
    tuned = _texts(tuned_outputs, "tuned_outputs", reader)
    nulls = Nulls(
        rates=_rates(null_rates, reader),
        stats=_stats(null_stats, reader, ("null_stats",)),
        by_rank=_stats_by_rank(null_stats_by_rank, reader),
    )
    if not _is_number(seed) or isinstance(seed, float):
        reader.add(("seed",), f"must be a whole number, not {show_value(seed)}")
    if made is None or reader.problems.count:
        raise BadInput(reader.problems.found)
    return plain_object(fidelity(made, base, tuned, nulls=nulls, seed=seed))


def read_spec_values(
    cases: Iterable[ToolUseCase | Mapping[str, Json]], spec: Mapping[str, Json] | None
) -> FidelitySpec:
    """Cases and the other fields of a suite entry, checked; raises BadInput."""
    reader = SpecReader()
    made = _spec_of(cases, spec, reader)
    if made is None or reader.problems.count:
        raise BadInput(reader.problems.found)
    return made


def _spec_of(cases: Json, given: Json, reader: SpecReader) -> FidelitySpec | None:
    listed = list(cases) if isinstance(cases, Iterable) and not _is_text(cases) else cases
    if isinstance(listed, list):
        listed = reader.plain([_as_plain(case) for case in listed], ("cases",))
    value = reader.plain(_as_plain({} if given is None else given), ("spec",))
    if reader.problems.count:
        return None
    if isinstance(value, dict) and value.pop("cases", None):
        reader.add(("spec", "cases"), "give the cases as the first argument")
    spec = reader.record(value, FidelitySpec, ("spec",))
    made = cases_of(listed, reader, ("cases",))
    if spec is None or reader.problems.count:
        return None
    check_tools(made, spec.schema, reader, ("cases",))
    check_format(spec, reader, ("spec",))
    return msgspec.structs.replace(spec, cases=made)


def _as_plain(value: Json) -> Json:
    return msgspec.structs.asdict(value) if isinstance(value, msgspec.Struct) else value


def _texts(outputs: Json, name: str, reader: SpecReader) -> list[str]:
    """A model that answered with nothing may give None."""
    if _is_text(outputs) or not isinstance(outputs, Sequence):
        reader.add((name,), f"must be a list of texts, not {show_value(outputs)}")
        return []
    texts = []
    for at, text in enumerate(outputs):
        if not isinstance(text, str | None):
            reader.add((name, at), f"must be a text, not {show_value(text)}")
        else:
            texts.append(well_formed(text or ""))
    return texts


def _rates(rates: Json, reader: SpecReader) -> tuple[float, ...]:
    if _is_text(rates) or not isinstance(rates, Sequence):
        reader.add(("null_rates",), f"must be a list of rates, not {show_value(rates)}")
        return ()
    for at, rate in enumerate(rates):
        if not _is_number(rate) or not 0 <= rate <= 1:
            reader.add(("null_rates", at), f"must be a number from 0 to 1, not {show_value(rate)}")
    return tuple(rates)


def _stats(given: Json, reader: SpecReader, where: Where) -> NullStats | None:
    """Numbers that are none (NaN) stay: they give no z."""
    if given is None:
        return None
    if not isinstance(given, Mapping):
        reader.add(where, f"must be an object, not {show_value(given)}")
        return None
    for field, value in given.items():
        if field not in NullStats.__struct_fields__:
            reader.add((*where, str(field)), keys_of(NullStats).refusal(str(field)))
        elif value is not None and not _is_number(value) and not isinstance(value, bool):
            reader.add((*where, field), f"must be a number, not {show_value(value)}")
    n: Json = given.get("n")
    return NullStats(
        mean=given.get("mean"),
        std=given.get("std"),
        n=int(n) if _is_number(n) and 0 <= n < 2**53 else None,
        degenerate=given.get("degenerate") or False,
    )


def _stats_by_rank(given: Json, reader: SpecReader) -> dict[str, NullStats] | None:
    where = ("null_stats_by_rank",)
    if given is None:
        return None
    if not isinstance(given, Mapping):
        reader.add(where, f"must be an object {{rank: stats}}, not {show_value(given)}")
        return None
    found = {
        well_formed(str(rank)): _stats(stats, reader, (*where, str(rank)))
        for rank, stats in given.items()
    }
    return {rank: stats for rank, stats in found.items() if stats is not None}


def _is_text(value: Json) -> bool:
    return isinstance(value, str | bytes | Mapping)


def _is_number(value: Json) -> TypeGuard[int | float]:
    """Of a size that can be reckoned with."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, float) or abs(value) < _TOO_LARGE
