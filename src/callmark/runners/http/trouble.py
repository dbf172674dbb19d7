"""What a server says instead of an answer: the model's outcome, something the user has to mend, or
a failure that may pass."""

from __future__ import annotations

import re
from collections.abc import Collection
from email.utils import parsedate_to_datetime

import msgspec

from callmark.errors import Incomplete, UsageError
from callmark.records.jsontext import Json, NotJson, encode_json, parse_json
from callmark.records.seams import Reply
from callmark.runners.options import SERVED, Address

LONGEST_QUOTE = 300
LONGEST_READ = 20_000
# No error is longer; of what is, nothing is read.
LONGEST_BODY = 1 << 20

BUSY = frozenset({429, 503, 529})
PASSING = frozenset({408, 409, 425}) | BUSY
NAMES_SOMETHING = frozenset({400, 404, 405, 422})
PLAIN_WORDS = frozenset(
    {"messages", "model", "input", "system", "include", "store", "type", "name", "format", "mode"}
)
# With these a text about lengths is about rates or the server's own state.
NEVER_OVERFLOW = frozenset({401, 403, 404, 502, 504}) | BUSY

# How servers say that the conversation is too long for the model.
OVERFLOW = re.compile(
    r"""
    context_length_exceeded | exceed_context_size | context_window_exceeded
    | max(imum|\.)?\ (allowed\ )?(context|prompt|model)\ (length|size|window)
    | (available|allowed|model'?s?|the)\ context\ (size|length|window)
    | context\ (size|length|window|limit)\ .{0,40}\b(exceed|overflow|of\ only|full)
    | exceeds?\ .{0,40}\bcontext\ (size|length|window|limit)
    | prompt\ (is\ )?too\ long | prompt\ .{0,40}\bis\ (too\ long|longer\ than)
    | input\ is\ too\ long | input\ (token\ count|tokens|length)\ .{0,60}\bexceed
    | too\ many\ (input\ )?tokens | token\ limit\ exceeded | exceeded\ model\ token\ limit
    | exceeds\ the\ maximum\ number\ of\ tokens
    | `?inputs`?\ (must\ have\ less\ than\ \d+\ tokens | tokens\ \+)
    | too\ large\ for\ model\ with
    | reduce\ (the\ length\ of\ (the|your)\ (messages|prompt|input) | your\ prompt)
    | range\ of\ input\ length\ should\ be | max_tokens\ must\ be\ at\ least\ 1,\ got\ -
    """,
    re.IGNORECASE | re.VERBOSE,
)
FILTERED = re.compile(
    r"content_filter|content_policy_violation|responsible_?ai_?policy|input was flagged"
    r"|data_inspection_failed|prompt was (blocked|filtered)|\binvalid_prompt\b|\bbio_policy\b"
    r"|misalignment_policy_violation|output blocked by content filtering",
    re.IGNORECASE,
)
NO_CREDIT = re.compile(
    r"insufficient_quota|insufficient[ _](balance|credit)|billing", re.IGNORECASE
)
# This one comes as an invalid request.
EMPTY_ACCOUNT = re.compile(r"credit balance is too low", re.IGNORECASE)
# A request for reasoning that a model does not have; only some servers name the field.
NO_REASONING = re.compile(r"encrypted content is not supported", re.IGNORECASE)
TOOLS = re.compile(r"\b(tools?|function[ _-]call(ing|s)?)\b", re.IGNORECASE)
SUPPORT = re.compile(r"\b(supports?|supported|unsupported)\b|--enable", re.IGNORECASE)
NO_MODEL = re.compile(
    r"model_not_found|invalid_model|unknown_model"
    r"|\bmodels?\b.{0,200}?\b(not found|not exist|n't exist|not available|not a valid|is unknown)"
    r"|\b(no such|unknown|invalid|not a valid|unable to find|not find( the)?) model\b"
    r"|not_found_error model: ",
    re.IGNORECASE | re.DOTALL,
)


# Of one body: as it comes, and inflated.
MOST_BYTES = 64 << 20


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """`asked`: seconds of its Retry-After."""

    status: int
    content_type: str
    body: bytes
    asked: float | None


class Lost(msgspec.Struct, frozen=True):
    """There was no response, or not a whole one. `unreachable`: not even a connection;
    `for_good`: it would be lost again."""

    reason: str
    unreachable: bool = False
    timed_out: bool = False
    for_good: bool = False


CUT = Lost("the connection was cut before the answer was whole")
NO_HTTP = Lost("the answer is not HTTP", for_good=True)
NOT_INFLATED = Lost("the answer is compressed in a way that cannot be undone", for_good=True)
TOO_LARGE = Lost(f"the answer is larger than {MOST_BYTES >> 20} MB", for_good=True)
NO_CONNECTION = Lost("no connection in time", unreachable=True, timed_out=True)


class Retry(msgspec.Struct, frozen=True):
    """It may work the next time. `asked`: seconds that the server wants us to wait; `overloaded`:
    it has too much to do."""

    reason: str
    asked: float | None = None
    overloaded: bool = False


class Refused(msgspec.Struct, frozen=True):
    """It would fail again in the same way."""

    reason: str


class Complaint(msgspec.Struct, frozen=True, kw_only=True):
    """An error in the server's words, whatever its shape. `generated`: what the model had written
    when the server refused to pass it on as a call."""

    status: int
    message: str
    code: str = ""
    param: str = ""
    generated: str | None = None
    flagged: bool = False

    @property
    def read(self) -> str:
        """What is searched for the words of a known trouble."""
        return f"{self.code[:LONGEST_QUOTE]} {self.message[:LONGEST_READ]}"

    @property
    def quoted(self) -> str:
        text = " ".join(self.message[:LONGEST_READ].split())
        return text if len(text) <= LONGEST_QUOTE else text[: LONGEST_QUOTE - 1] + "…"

    def __str__(self) -> str:
        return f"{self.status}: {self.quoted}" if self.message else str(self.status)


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about server and request: where, which model, the fields that were sent, the
    models that the server listed, whether a key was sent and whether it has ever answered.
    `spoken_in`: the fields that hold the conversation."""

    where: str
    model: str
    fields: Collection[str]
    listed: tuple[str, ...]
    has_key: bool
    has_answered: bool
    address: Address = SERVED["openai_http"]
    spoken_in: frozenset[str] = frozenset()


def complaint_of(status: int, body: bytes) -> Complaint:
    if len(body) > LONGEST_BODY:
        return Complaint(status=status, message=f"a body of {len(body):,} bytes")
    text = body.decode("utf-8", "replace").strip()
    try:
        value = parse_json(body)
    except NotJson:
        value = None
    if isinstance(value, list) and value:
        value = value[0]
    if isinstance(value, dict):
        return complaint_in(status, value)
    is_page = text.startswith("<")
    return Complaint(status=status, message="an HTML page" if is_page else text)


def complaint_in(status: int, value: Json) -> Complaint:
    """`value`: the object with `error`, or what stands in there."""
    inner = value.get("error", value) if isinstance(value, dict) else value
    if not isinstance(inner, dict):
        return Complaint(status=status, message=_text(inner))
    message, param = _message_of(inner), _text(inner.get("param"))
    detail = inner.get("detail")
    if isinstance(detail, list) and detail and isinstance(detail[0], dict):
        message = _text(detail[0].get("msg"))
        place = detail[0].get("loc")
        steps = place if isinstance(place, list) else [place]
        param = next((one for one in steps if isinstance(one, str) and one != "body"), "")
    more = inner.get("metadata")
    generated = inner.get("failed_generation")
    return Complaint(
        status=status,
        message=message,
        code=" ".join(filter(None, (_text(inner.get("code")), _text(inner.get("type"))))),
        param=param,
        generated=generated if isinstance(generated, str) else None,
        flagged=isinstance(more, dict) and "flagged_input" in more,
    )


def judge_complaint(
    complaint: Complaint, situation: Situation, asked: float | None = None
) -> Reply | Retry | Refused:
    """Raises what the user has to mend."""
    status, text = complaint.status, complaint.read
    if status not in NEVER_OVERFLOW and OVERFLOW.search(text):
        return Reply(text="", finish="context_exceeded")
    if complaint.generated is not None:
        return Reply(text=complaint.generated)
    if complaint.flagged or (status not in BUSY and FILTERED.search(text)):
        return Reply(text="", finish="content_filter")
    is_broke = status == 402 or (status == 429 and NO_CREDIT.search(complaint.code))
    if is_broke or (status < 500 and EMPTY_ACCOUNT.search(text)):
        raise Incomplete(
            f"{situation.where}: {complaint}; what is finished is kept: run again with --resume"
        )
    if status in (401, 403):
        raise _not_let_in(complaint, situation)
    if 300 <= status < 400:
        if situation.has_answered:
            return Refused(f"{complaint}: the server sends us elsewhere, where no key goes")
        raise UsageError(
            f"{situation.where}: the server is elsewhere ({complaint}): change --base-url"
        )
    if status in NAMES_SOMETHING:
        _stop_if_named(complaint, situation)
    if status in PASSING or status >= 500 or status == 404:
        return Retry(str(complaint), asked, overloaded=status in BUSY)
    return Refused(str(complaint))


def _not_let_in(complaint: Complaint, situation: Situation) -> UsageError:
    what = "does not accept the key" if situation.has_key else "wants a key, and none was given"
    return UsageError(
        f"{situation.where}: the server {what} ({complaint});"
        f" set {situation.address.key_variable}, or api_key: ${{NAME}} in callmark.yaml"
    )


def _stop_if_named(complaint: Complaint, situation: Situation) -> None:
    """A 400, 404 or 422 that names what is wrong with every request ends the run."""
    where, said, text = situation.where, complaint.message[:LONGEST_READ], complaint.read
    if TOOLS.search(said) and SUPPORT.search(said):
        raise UsageError(
            f"{where}: the server does not do tools with {situation.model!r} ({complaint});"
            " start it so that it does, or choose another --model"
        )
    if complaint.param == "model" or (not complaint.param and NO_MODEL.search(text)):
        raise UsageError(
            f"--model: {where} has no {situation.model!r} ({complaint}){_there(situation)}"
        )
    named = complaint.param or _field_in(said, situation.fields)
    if NO_REASONING.search(said):
        named = "include"
    if named in situation.spoken_in:
        return  # about what one sample says
    if named:
        home = "extra_body: {include: null}" if named == "include" else "null"
        raise UsageError(
            f"{where}: the server does not take {named[:LONGEST_QUOTE]!r} as it is ({complaint});"
            f" change it, or leave it out of the request: {home} in callmark.yaml"
        )
    if complaint.status in (404, 405) and not situation.has_answered:
        raise UsageError(
            f"{where}: there is no {situation.address.path} ({complaint});"
            f" a base URL looks like {situation.address.example}"
        )


def _there(situation: Situation) -> str:
    shown = ", ".join(situation.listed[:10])
    more = len(situation.listed) - 10
    return f"; it has: {shown}" + (f" and {more} more" if more > 0 else "") if shown else ""


def _field_in(message: str, fields: Collection[str]) -> str | None:
    """The first field of the request that the text speaks of, if its name is no word of its own."""
    words = set(re.findall(r"\w+", message)) - PLAIN_WORDS
    return next((name for name in sorted(fields) if name in words), None)


def _message_of(inner: dict[str, Json]) -> str:
    for key in ("message", "msg", "detail", "error_message", "title"):
        if isinstance(inner.get(key), str) and inner[key]:
            return str(inner[key])
    return _text(inner)


def _text(value: Json) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else encode_json(value).decode()


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
