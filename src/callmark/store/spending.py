"""What each trial took: tokens, seconds, money, one line each in `OUT.timing.jsonl`, beside the
results, which hold nothing that a clock or a meter said."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import fsum
from pathlib import Path
from typing import Literal, get_args

import msgspec

from callmark.records.jsontext import Json
from callmark.records.seams import Spent, Usage
from callmark.store.files import has_place

Measured = Literal["tokens", "latency", "cost"]
Price = Literal["prompt", "completion", "cached"]
MILLION = 1_000_000
TIMING = ".timing.jsonl"

_encode = msgspec.json.Encoder().encode


class TrialSpending(msgspec.Struct, frozen=True, kw_only=True):
    """What one trial took, as far as somebody counted. A trial that was lost and played again has
    a line for each time. `latency_sec`: of all its answers together."""

    index: int
    sample_id: str
    trial: int
    answers: int
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    latency_sec: float | None = None
    cost: float | None = None


_decode = msgspec.json.Decoder(TrialSpending).decode


def timing_path(out: Path) -> Path:
    return out.with_name(out.name + TIMING)


def is_timing(path: Path) -> bool:
    """By its name: such a file stands beside results and holds none."""
    return path.name.endswith(TIMING)


def add_usage(counts: Sequence[Usage]) -> Usage | None:
    """None: nobody counted."""
    if not counts:
        return None
    if len(counts) == 1:
        return counts[0]
    return Usage(
        sum(one.prompt_tokens for one in counts),
        sum(one.completion_tokens for one in counts),
        sum(one.cached_tokens for one in counts),
    )


def spending_of(
    index: int, sample_id: str, trial: int, spent: Spent, prices: Mapping[Price, float]
) -> TrialSpending:
    """`prices`: of a million tokens each."""
    usage = spent.usage
    line = TrialSpending(
        index=index,
        sample_id=sample_id,
        trial=trial,
        answers=spent.answers,
        latency_sec=spent.seconds,
    )
    if usage is None:
        return line
    return msgspec.structs.replace(
        line,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        cached_tokens=usage.cached_tokens,
        cost=cost_of(usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens, prices),
    )


def cost_of(
    prompt: int, completion: int, cached: int, prices: Mapping[Price, float]
) -> float | None:
    """None: no price is known. What was cached costs as much as the rest, unless said otherwise."""
    if not prices:
        return None
    price = prices.get("prompt", 0.0)
    fresh = max(0, prompt - cached) * price
    again = min(cached, prompt) * prices.get("cached", price)
    return (fresh + again + completion * prices.get("completion", 0.0)) / MILLION


def encode_spending(line: TrialSpending) -> bytes:
    return _encode(line) + b"\n"


class SpendingFile:
    """Grows with the trials of a run. What was measured is worth less than the run: where it cannot
    be written there is none."""

    def __init__(self, out: Path) -> None:
        self.path = timing_path(out)
        self._fd: int | None = None
        self._is_lost = not has_place(out)

    def start(self) -> None:
        """A new run: what an earlier one took is not its own."""
        with suppress(OSError):
            self.path.unlink(missing_ok=True)

    def append(self, lines: bytes) -> None:
        if self._is_lost or not lines:
            return
        try:
            if self._fd is None:
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
                self._fd = os.open(self.path, flags, 0o666)
            os.write(self._fd, lines)
        except OSError:
            self._is_lost = True

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def read_spending(out: Path) -> Iterator[TrialSpending]:
    """What is told beside these results. A line that was torn by a kill tells nothing."""
    try:
        stream = timing_path(out).open("rb")
    except OSError:
        return
    with stream:
        for line in stream:
            with suppress(msgspec.MsgspecError, UnicodeError):
                yield _decode(line)


def sum_up_spending(lines: Iterable[TrialSpending]) -> dict[str, Json]:
    """Totals, and how long a trial took; without what nobody counted. Tokens and cost of a trial
    that was played twice were spent twice."""
    tokens: dict[str, int] = {}
    costs: list[float] = []
    latencies: list[float] = []
    for line in lines:
        for name in ("prompt_tokens", "completion_tokens", "cached_tokens"):
            count = getattr(line, name)
            if count is not None:
                tokens[name] = tokens.get(name, 0) + count
        if line.cost is not None:
            costs.append(line.cost)
        if line.latency_sec is not None:
            latencies.append(line.latency_sec)
    latencies.sort()
    found: dict[str, Json] = {**tokens}
    if latencies:
        found |= {
            "latency_mean": fsum(latencies) / len(latencies),
            "latency_p50": _nearest(latencies, 0.5),
            "latency_p95": _nearest(latencies, 0.95),
        }
    if costs:
        found["cost"] = fsum(costs)
    return found


def average_spending(lines: Iterable[TrialSpending]) -> dict[Measured, float]:
    """Of a trial, over those of which it is known."""
    held: dict[Measured, list[float]] = {name: [] for name in get_args(Measured)}
    for line in lines:
        if line.prompt_tokens is not None:
            held["tokens"].append(line.prompt_tokens + (line.completion_tokens or 0))
        if line.latency_sec is not None:
            held["latency"].append(line.latency_sec)
        if line.cost is not None:
            held["cost"].append(line.cost)
    return {name: fsum(found) / len(found) for name, found in held.items() if found}


def _nearest(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
