"""When to try again: capped exponential waits with jitter, or what the server asks for."""

from __future__ import annotations

from email.utils import parsedate_to_datetime

import msgspec


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds. `longest_asked`: a server that asks for more is tried again after this long."""

    first_wait: float = 0.5
    longest_wait: float = 30.0
    longest_asked: float = 120.0


def wait_before(policy: RetryPolicy, retry: int, asked: float | None, chance: float) -> float:
    """Seconds before the retry of this number, from 1. `chance` in [0, 1) keeps many clients from
    coming back at the same moment."""
    if asked is not None:
        return min(asked, policy.longest_asked) * (1 + chance / 10)
    # The exponent is bounded because 2.0 ** 1024 is none.
    whole = min(policy.longest_wait, policy.first_wait * 2.0 ** min(retry - 1, 60))
    return whole * (0.5 + chance / 2)


def asked_wait(retry_after: str | None, date: str | None, now: float) -> float | None:
    """`Retry-After` as seconds or as a date. A date counts from the server's own clock, if it
    told us its time."""
    if retry_after is None:
        return None
    try:
        seconds = float(retry_after)
    except ValueError:
        until = _timestamp(retry_after)
        server = _timestamp(date)
        if until is None:
            return None
        seconds = until - (now if server is None else server)
    return max(0.0, seconds) if seconds < float("inf") else None


def _timestamp(date: str | None) -> float | None:
    if date is None:
        return None
    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, OverflowError):
        return None
