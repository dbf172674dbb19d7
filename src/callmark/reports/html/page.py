"""The page of one run. Of more trials than it can list nothing but numbers is kept: they are read
twice."""

from __future__ import annotations

import base64
import hashlib
import json
import operator
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from tempfile import TemporaryFile
from types import TracebackType
from typing import Any, BinaryIO, Self

import msgspec

from callmark.records.jsontext import Json
from callmark.records.report import GateRule, Report
from callmark.records.results import ByteRange, ListedTrial, Result, Scores, TrialTraits
from callmark.records.samples import Expectation, Extractor, ExtractorBy
from callmark.records.trace import ThoughtCall, TraceEntry, UserTurn
from callmark.reports.finished_run import FinishedRun
from callmark.reports.html.overview import (
    Distribution,
    PageHead,
    bin_of,
    run_head,
    shares_of,
)
from callmark.reports.layout import one_line
from callmark.resources import data_path
from callmark.store.files import read_results, run_name
from callmark.store.run_index import SMALLEST
from callmark.summary.failing import (
    FALLS_SHORT,
    NOT_SCORED,
    ONLY_WARNS,
    PASSES,
    failing_rows,
    list_trial,
)
from callmark.summary.metrics import ChanceSample, CrossScore, Pair, Subset
from callmark.summary.summary import DEFAULT_SEED
from callmark.summary.trials import Trials

PROMPT_BYTES = 64
ANSWER_BYTES = 36
ROW_BYTES = 50  # of the numbers and codes of one row
FACETS: dict[str, str] = {
    "fails": "falls short of",
    "warns": "warned by",
    "status": "status",
    "kind": "kind",
    "tool": "tool",
    "locale": "locale",
    "slice": "slice",
    "label": "states something",
    "rule": "flagged by rule",
    "like": "what went wrong",
    "stop": "stopped by",
}
NUMBERS = ("F1 lax", "F1 strict")
MOST_KINDS, LONGEST_KIND = 4, 80  # of failures of one trial
REMEMBERED = 1 << 12  # different facets
NOT_IN_THE_FILE = -1


class Facet(msgspec.Struct, frozen=True):
    """`codes` has one number a row: which of `sets`, which hold places in `names`."""

    key: str
    label: str
    names: list[str]
    sets: list[list[int]]
    codes: list[int]


class PageNumber(msgspec.Struct, frozen=True):
    label: str
    values: list[float | None]


class Index(msgspec.Struct, frozen=True, kw_only=True):
    """`at`: the place of the row's sample among those that are in the file in full, or -1."""

    ids: list[str]
    trials: list[int]
    texts: list[str]
    at: list[int]
    facets: list[Facet]
    numbers: list[PageNumber]


class Row(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    sample_id: str
    trial: int
    text: str
    facets: Mapping[str, tuple[str, ...]]
    numbers: tuple[float | None, ...]
    like: tuple[str, ...] = ()  # what went wrong, if it falls short of a gate

    @property
    def cost(self) -> int:
        """About how many bytes of the file it takes."""
        name, text = self.sample_id, self.text
        if name.isascii() and text.isascii():
            return ROW_BYTES + len(name) + len(text)
        return ROW_BYTES + len(name.encode()) + len(text.encode())


class IndexBuilder:
    def __init__(
        self, labels: Mapping[str, str] = FACETS, numbers: Sequence[str] = NUMBERS
    ) -> None:
        self._labels = labels
        self._facets = {key: _FacetBuilder() for key in labels}
        self._known: dict[int, tuple[int, Mapping[str, tuple[str, ...]]]] = {}
        self._kinds = 0  # of rows, by their facets
        self._codes: array[int] = array("I")
        self._numbers = numbers
        self._rows: list[Row] = []
        self._at: list[int] = []

    def add(self, row: Row, at: int) -> None:
        self._rows.append(row)
        self._at.append(at)
        self._codes.append(self._kind_of(row.facets))

    def _kind_of(self, facets: Mapping[str, tuple[str, ...]]) -> int:
        """Which of the different facets these are. Rows share them: each is looked at once."""
        known = self._known.get(id(facets))
        if known is not None:
            return known[0]
        for key, facet in self._facets.items():
            facet.add(facets.get(key, ()))
        if len(self._known) == REMEMBERED:
            self._known.clear()
        self._known[id(facets)] = self._kinds, facets  # kept, so that no other gets its id
        self._kinds += 1
        return self._kinds - 1

    def built(self) -> Index:
        """Without the facets that no row has anything in."""
        facets = [
            facet.built(key, self._labels[key], self._codes)
            for key, facet in self._facets.items()
            if any(facet.sets)
        ]
        rows = self._rows
        columns = (
            zip(*(row.numbers for row in rows), strict=True) if rows else [()] * len(self._numbers)
        )
        return Index(
            ids=[row.sample_id for row in rows],
            trials=[row.trial for row in rows],
            texts=[row.text for row in rows],
            at=self._at,
            facets=facets,
            # More digits than a page shows would only make the file larger.
            numbers=[
                PageNumber(label, [None if one is None else _rounded(one) for one in column])
                for label, column in zip(self._numbers, columns, strict=True)
            ],
        )


@lru_cache(REMEMBERED, typed=True)
def _rounded(number: float) -> float:
    return round(number, 4)


class _FacetBuilder:
    def __init__(self) -> None:
        self.sets: dict[tuple[str, ...], int] = {}
        self.codes: list[int] = []  # of each kind of rows

    def add(self, names: tuple[str, ...]) -> None:
        self.codes.append(self.sets.setdefault(names, len(self.sets)))

    def built(self, key: str, label: str, kinds: Iterable[int]) -> Facet:
        names = sorted({name for group in self.sets for name in group})
        place = {name: at for at, name in enumerate(names)}
        sets = [[place[name] for name in group] for group in self.sets]
        return Facet(key, label, names, sets, [*map(self.codes.__getitem__, kinds)])


def row_of(
    result: Result, fails: tuple[str, ...] = (), expectation: Expectation | None = None
) -> Row:
    """`fails`: the gates that it falls short of; `expectation`: where somebody has read it."""
    return listed_row(list_trial(result, expectation), fails)


def listed_row(one: ListedTrial, fails: tuple[str, ...] = ()) -> Row:
    return Row(
        sample_id=one.sample_id,
        trial=one.trial,
        text=excerpt_of(one),
        facets=traits_facets(one.traits, fails),
        numbers=_numbers_of(one.f1, one.f1_strict),
        like=_kinds(one.traits),
    )


@lru_cache(REMEMBERED)
def _numbers_of(*numbers: float | None) -> tuple[float | None, ...]:
    """One tuple for all rows that have the same."""
    return numbers


def judge_row(row: Row, short: tuple[str, ...], warnings: Collection[str]) -> Row:
    """The row of a sample that falls short of these gates, some of which may only warn."""
    if not short:
        return row
    fails = tuple(name for name in short if name not in warnings)
    warns = tuple(name for name in short if name in warnings)
    standing, *remarks = row.facets["status"]
    if standing != NOT_SCORED and fails:
        standing = FALLS_SHORT
    elif standing == PASSES and warns:
        standing = ONLY_WARNS
    judged = {"fails": fails, "warns": warns, "status": (standing, *remarks), "like": row.like}
    return msgspec.structs.replace(row, facets={**row.facets, **judged})


# Many trials have the same traits; the facets of all of them are one object.
@lru_cache(REMEMBERED)
def traits_facets(traits: TrialTraits, fails: tuple[str, ...]) -> Mapping[str, tuple[str, ...]]:
    standing = FALLS_SHORT if fails and traits.standing != NOT_SCORED else traits.standing
    return {
        "fails": fails,
        "warns": (),
        "status": (standing, *traits.remarks),
        "kind": (traits.kind,),
        "tool": traits.tools,
        "locale": () if traits.locale is None else (traits.locale,),
        "slice": traits.slices,
        "label": traits.labels,
        "rule": traits.rules,
        "like": _kinds(traits) if fails or traits.is_wrong else (),
        "stop": (traits.stop,),
    }


@lru_cache(REMEMBERED)
def _kinds(traits: TrialTraits) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one_line(kind, LONGEST_KIND) for kind in traits.like))[:MOST_KINDS]


def excerpt_of(one: ListedTrial) -> str:
    """The start of what was asked, and on a second line of what was answered."""
    return f"{_cut(one.asked, PROMPT_BYTES)}\n{_cut(one.answered, ANSWER_BYTES)}"


def _cut(text: str, limit: int) -> str:
    """At most so many bytes of one line."""
    # Cut before it is split: an answer may be megabytes, its excerpt is a line.
    shown = " ".join(text[: 4 * limit].split())
    if len(shown) <= limit and shown.isascii() and shown.isprintable():
        return shown
    shown = one_line(shown)
    raw = shown.encode("utf-8", "replace")
    return raw.decode() if len(raw) <= limit else raw[:limit].decode("utf-8", "ignore") + "…"


# Together with style, scripts and head they stay below 60 MB.
INDEX_BYTES = 22_000_000
SAMPLE_BYTES = 35_000_000


class TrialChoice(msgspec.Struct, frozen=True):
    """One flag for each candidate, in the order in which they were offered."""

    rows: bytearray
    full: bytearray

    def counts(self) -> tuple[int, int, int]:
        return len(self.rows), sum(self.rows), sum(self.full)


class Candidates:
    """Offered one by one; 17 bytes of each are kept until the choice is made."""

    def __init__(self, seed: int) -> None:
        self._seed = str(seed).encode()
        self._lot: array[int] = array("Q")
        self._row: array[int] = array("I")
        self._size: array[int] = array("I")

    def __len__(self) -> int:
        return len(self._lot)

    def offer(self, sample_id: str, trial: int, *, row: int, size: int) -> None:
        """`row`, `size`: what its row, and all of it, would take."""
        name = f"{sample_id}\0{trial}".encode("utf-8", "surrogatepass")
        lot = hashlib.sha256(self._seed + b"\0" + name).digest()[:8]
        self._lot.append(int.from_bytes(lot, "big"))
        self._row.append(min(row, INDEX_BYTES + 1))
        self._size.append(min(size, SAMPLE_BYTES + 1))

    def chosen(self, tiers: bytes | bytearray) -> TrialChoice:
        """`tiers`: lower ones first, one for each candidate. What does not fit is passed over."""
        count = len(self._lot)
        rows, full = bytearray(count), bytearray(count)
        row_room, room = INDEX_BYTES, SAMPLE_BYTES
        for at in sorted(range(count), key=lambda at: (tiers[at], self._lot[at])):
            if self._row[at] <= row_room:
                rows[at] = 1
                row_room -= self._row[at]
                if self._size[at] <= room:
                    full[at] = 1
                    room -= self._size[at]
        return TrialChoice(rows, full)


CHUNK_BYTES = 250_000
STYLES = ("page.css", "sample.css")
# In this order they are one script. Who shows the page otherwise than as a file replaces the last.
SCRIPTS = ("text.js", "dom.js", "source.js", "plots.js", "overview.js", "filters.js", "list.js",
           "json.js", "answer.js", "talk.js", "sides.js", "sample.js", "app.js")  # fmt: skip
START = "start.js"

_encode = msgspec.json.Encoder().encode
# JSON inside of HTML: nothing in it can end its element or open another one.
_HARMLESS = (
    (b"<", rb"\u003c"),
    (b">", rb"\u003e"),
    (b"&", rb"\u0026"),
    ("\u2028".encode(), rb"\u2028"),
    ("\u2029".encode(), rb"\u2029"),
)


def page_json(value: Any) -> bytes:
    """A record as JSON that may stand in a script element."""
    try:
        data = _encode(value)
    except (UnicodeEncodeError, OverflowError):
        # Lone surrogates and integers of any size can come from a model.
        data = json.dumps(msgspec.to_builtins(value), separators=(",", ":")).encode()
    return harmless(data)


def harmless(data: bytes) -> bytes:
    for mark, escaped in _HARMLESS:
        data = data.replace(mark, escaped)
    return data


def page_style(*more: str) -> str:
    return _join((*STYLES, *more))


def page_script(*start: str) -> str:
    """The whole program: one function, so that nothing of it is global. `start` are the files that
    say where samples come from, and begin; none: the page is a file."""
    return f'(() => {{\n"use strict";\n{_join((*SCRIPTS, *(start or (START,))))}}})();\n'


def policy_of(style: str, *scripts: str, connects: bool = False) -> str:
    """What the browser may do: run these scripts and show this style, and nothing else. `connects`:
    the script may ask the server that it came from."""
    allowed = " ".join(map(_hash_of, scripts))
    return (
        f"default-src 'none'; style-src {_hash_of(style)}; script-src {allowed}; "
        + ("connect-src 'self'; " if connects else "")
        + "base-uri 'none'; form-action 'none'"
    )


def shell(
    *, title: str, style: str, script: str, connects: bool = False, template: str = "page.html"
) -> tuple[str, str, str]:
    """The page before the head's data, between them and the samples, and after those."""
    page = data_path("page", template).read_text("utf-8")
    policy = policy_of(style, script, connects=connects)
    fills = {"title": _text(one_line(title)), "policy": policy, "style": style, "script": script}
    for name, fill in fills.items():
        page = page.replace(f"<!--{name}-->", fill)
    first, middle, last = page.split("<!--data-->")
    return first, middle, last


class PageFile:
    """Written from top to bottom: the head, then samples, and the index at the end."""

    def __init__(self, stream: BinaryIO, title: str) -> None:
        self._stream = stream
        script = page_script()
        self._parts = shell(title=title, style=page_style(), script=script)
        self._chunk: list[bytes] = []
        self._chunk_size = 0
        self._samples = 0

    def __enter__(self) -> Self:
        self._stream.write(self._parts[0].encode())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self._stream.write(self._parts[2].encode())

    def head(self, head: PageHead) -> None:
        self._data('id="head"', page_json(msgspec.structs.replace(head, timing=None)))
        if head.timing is not None:
            self._data('id="timing"', page_json(head.timing))
        self._stream.write(self._parts[1].encode())

    def sample(self, encoded: bytes) -> int:
        """Its place among the samples of the file."""
        if self._chunk_size + len(encoded) > CHUNK_BYTES:
            self._flush()
        self._chunk.append(encoded)
        self._chunk_size += len(encoded)
        self._samples += 1
        return self._samples - 1

    def index(self, index: Index) -> None:
        self._flush()
        self._data('id="index"', page_json(index))

    def _flush(self) -> None:
        if self._chunk:
            first = self._samples - len(self._chunk)
            self._data(f'class="chunk" data-first="{first}"', b"[" + b",".join(self._chunk) + b"]")
        self._chunk = []
        self._chunk_size = 0

    def _data(self, attributes: str, data: bytes) -> None:
        self._stream.write(f'<script type="application/json" {attributes}>'.encode())
        self._stream.write(data)
        self._stream.write(b"</script>\n")


def _join(names: Iterable[str]) -> str:
    return "".join(data_path("page", name).read_text("utf-8") for name in names)


def _hash_of(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _text(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


Read = Callable[[], Iterator[Result]]


class PageResult(msgspec.Struct, frozen=True):
    """One trial as the page shows it: a line of results without what is the same in all lines."""

    sample_id: str
    trial: int
    prompt: str | list[dict[str, Json]]
    metadata: dict[str, Json]
    said: tuple[UserTurn, ...]
    model_output: str
    turns: tuple[ByteRange, ...] | None
    reasoning: str
    thought_calls: tuple[ThoughtCall, ...] | msgspec.UnsetType
    tool_trace: tuple[TraceEntry, ...]
    span_extractor: Extractor
    span_extractor_by: ExtractorBy | None
    scores: Scores | None
    status: str
    stop: str
    error: str | None


class PageSide(msgspec.Struct, frozen=True):
    label: str
    result: PageResult


class PageSample(msgspec.Struct, frozen=True):
    """What one row of the index leads to: one trial, or the same one of two runs."""

    sides: tuple[PageSide, ...]


_shown = operator.attrgetter(*PageResult.__struct_fields__)


def page_result(result: Result) -> PageResult:
    return PageResult(*_shown(result))


def page_sample(result: Result) -> bytes:
    encoded = page_json(PageSample((PageSide("", page_result(result)),)))
    if len(encoded) <= TRIAL_BYTES:
        return encoded
    return page_json(PageSample((PageSide("", _shorten_trial(page_result(result))),)))


TRIAL_BYTES = 8_000_000  # a browser draws no more of one trial; of a longer one texts are cut
SHORTEST = 300


def _shorten_trial(shown: PageResult) -> PageResult:
    """What was said and called stays, what is large in it is cut. Answer and scores are whole: they
    hold the places of each other."""
    parts = len(shown.tool_trace) + (len(shown.prompt) if isinstance(shown.prompt, list) else 1)
    room = max(SHORTEST, TRIAL_BYTES // 4 // parts)
    prompt = shown.prompt
    return msgspec.structs.replace(
        shown,
        prompt=[
            {name: _shorten(value, room) for name, value in message.items()} for message in prompt
        ]
        if isinstance(prompt, list)
        else _shorten_text(prompt, max(room, TRIAL_BYTES // 4)),
        reasoning=_shorten_text(shown.reasoning, TRIAL_BYTES // 4),
        tool_trace=tuple(
            msgspec.structs.replace(
                entry,
                arguments=_shorten(entry.arguments, room),
                result=_shorten(entry.result, room),
                raw=None if entry.raw is None else _shorten_text(entry.raw, room),
            )
            for entry in shown.tool_trace
        ),
    )


def _shorten(value: Json, room: int) -> Json:
    """The value itself if it fits; else the beginning of its text, with how much there is."""
    text = value if isinstance(value, str) else page_json(value).decode()
    return value if len(text) <= room else _shorten_text(text, room)


def _shorten_text(text: str, room: int) -> str:
    if len(text) <= room:
        return text
    return f"{text[:room]}… (cut: {len(text):,} characters; `callmark show RUN ID --full` has them)"


def write_html(finished: FinishedRun, stream: BinaryIO) -> None:
    """Without trials the page shows the report alone."""
    results = finished.results
    survey = samples = None
    if results is not None and results.stat().st_size >= SMALLEST:
        from callmark.reports.html.indexed_run import samples_as_written, survey_of_run

        survey = survey_of_run(results, finished.report, finished.cross_score)
        samples = None if survey is None else samples_as_written(results)
    write_run_page(
        stream,
        finished.report,
        lambda: iter(()) if results is None else read_results(results),
        name="report" if results is None else run_name(results),
        cross_score=finished.cross_score,
        survey=survey,
        samples=samples,
    )


def write_run_page(
    stream: BinaryIO,
    report: Report,
    read: Read,
    *,
    name: str,
    cross_score: CrossScore | None = None,
    survey: Survey | None = None,
    samples: Iterable[bytes] | None = None,
) -> None:
    """`read` opens the results, each time anew. `cross_score` gives the distribution of chance;
    `survey`: by the index of these results; `samples`: all of them for the page, if nobody has to
    read them."""
    survey = survey or Survey(report, cross_score)
    with TemporaryFile() as spool:
        sizes: array[int] = array("I")
        for result, encoded in survey.encoded(read, samples):
            survey.add(result, len(encoded) + 1)
            if survey.rows is not None:
                spool.write(encoded)
                sizes.append(len(encoded))
        choice = survey.choice()
        spool.seek(0)
        # Chosen after all were seen. More than a page can list are read a second time.
        full = (
            map(spool.read, sizes)
            if survey.rows is not None
            else (page_sample(one) if choice.full[at] else b"" for at, one in enumerate(read()))
        )
        with PageFile(stream, name) as page:
            page.head(run_head(report, name, survey.distribution(), choice.counts()))
            listing = IndexBuilder()
            for at, (row, encoded) in enumerate(zip(survey.judged(read), full, strict=True)):
                place = page.sample(encoded) if choice.full[at] else NOT_IN_THE_FILE
                if choice.rows[at]:
                    listing.add(row, place)
            page.index(listing.built())


class Survey:
    """The first look at the results: which samples fall short, and how large all of it is."""

    def __init__(self, report: Report, cross_score: CrossScore | None) -> None:
        self._report = report
        self._cross_score = cross_score
        self._seed = DEFAULT_SEED if report.header.seed is None else report.header.seed
        self._candidates = Candidates(self._seed)
        self._trials = Trials()
        self._samples: array[int] = array("Q")
        self._lost: set[int] = set()
        self._own: Counter[int] = Counter()
        self._chance = ChanceSample()
        self._short: dict[int, tuple[str, ...]] | None = None
        self.rows: list[Row] | None = []  # None: they do not all fit into an index
        self._room = INDEX_BYTES

    def encoded(
        self, read: Read, samples: Iterable[bytes] | None
    ) -> Iterator[tuple[Result | None, bytes]]:
        """What is to be added, and how a page has it."""
        return ((result, page_sample(result)) for result in read())

    def add(self, result: Result | None, size: int = 0) -> None:
        """`size`: what all of it takes in a file, where it is written to one."""
        if result is None:
            return
        row = row_of(result, (), self._trials.add(result))
        self._candidates.offer(result.sample_id, result.trial, row=row.cost, size=size)
        self._keep(row)
        self._samples.append(result.index)
        scores = result.scores
        if scores is None or result.status == "error":
            self._lost.add(len(self._samples) - 1)
        elif scores.kind == "eligible":
            self._own[bin_of(scores.lax.f1)] += 1
            if self._cross_score is not None:
                self._chance.add(result)

    def _keep(self, row: Row) -> None:
        self._room -= row.cost
        if self._room < 0:
            self.rows = None
        elif self.rows is not None:
            self.rows.append(row)

    def falls_short(self) -> dict[int, tuple[str, ...]]:
        """By the place of a sample in its dataset: the gates that it falls short of."""
        if self._short is None:
            self._short = falling_short(self._trials, self._report.header.gates, self._seed)
        return self._short

    def judged(self, read: Read) -> Iterator[Row]:
        """All rows, with the gates that they fall short of; `read` where they were not kept."""
        short, warnings = self.falls_short(), self._report.warning_gates
        rows = map(row_of, read()) if self.rows is None else self.rows
        for index, row in zip(self._samples, rows, strict=True):
            yield judge_row(row, short[index], warnings) if index in short else row

    def choice(self) -> TrialChoice:
        """First what failed or was lost, then what falls short of a gate that passed."""
        failed = {outcome.name for outcome in self._report.gates if outcome.status == "fail"}
        short = self.falls_short()
        tiers = bytearray(
            0
            if at in self._lost or not failed.isdisjoint(short.get(sample, ()))
            else 1 + (sample not in short)
            for at, sample in enumerate(self._samples)
        )
        return self._candidates.chosen(tiers)

    def distribution(self) -> Distribution:
        chance: Counter[int] | None = None
        if self._cross_score is not None:
            chance = Counter(bin_of(pair.chance) for pair in self._pairs(self._cross_score))
        return Distribution(shares_of(self._own), None if chance is None else shares_of(chance))

    def _pairs(self, cross_score: CrossScore) -> Sequence[Pair]:
        return self._chance.pairs(cross_score)


def falling_short(
    trials: Trials, rules: Mapping[str, GateRule], seed: int
) -> dict[int, tuple[str, ...]]:
    """By the place of a sample in its dataset: the gates, out of these, that it falls short of."""
    found: dict[int, list[str]] = {}
    samples = trials.samples()
    whole = Subset(samples, range(len(samples)), seed)
    for name, rows in failing_rows(whole, rules):
        if name in rules:
            for row in rows:
                found.setdefault(samples.index_at(row), []).append(name)
    return {place: tuple(names) for place, names in found.items()}
