"""The index of the page: one row for each trial, as columns, so that 100,000 of them are small."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Collection, Mapping, Sequence

import msgspec

from callmark.records.jsontext import Json
from callmark.records.results import Result
from callmark.records.samples import expectation_of
from callmark.reports.neutral import one_line

PROMPT_BYTES = 64
ANSWER_BYTES = 36
ROW_BYTES = 40  # of the numbers and codes of one row
FACETS: dict[str, str] = {
    "fails": "falls short of",
    "warns": "warned by",
    "status": "status",
    "kind": "kind",
    "tool": "tool",
    "locale": "locale",
    "slice": "slice",
    "stop": "stopped by",
}
NUMBERS = ("F1 lax", "F1 strict")
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


class Row(msgspec.Struct, frozen=True, kw_only=True):
    sample_id: str
    trial: int
    text: str
    facets: Mapping[str, tuple[str, ...]]
    numbers: tuple[float | None, ...]

    @property
    def cost(self) -> int:
        """About how many bytes of the file it takes."""
        return ROW_BYTES + len(self.sample_id.encode()) + len(self.text.encode())


class IndexBuilder:
    def __init__(
        self, labels: Mapping[str, str] = FACETS, numbers: Sequence[str] = NUMBERS
    ) -> None:
        self._labels = labels
        self._facets = {key: _FacetBuilder() for key in labels}
        self._index = Index(
            ids=[],
            trials=[],
            texts=[],
            at=[],
            facets=[],
            numbers=[PageNumber(label, []) for label in numbers],
        )

    def add(self, row: Row, at: int) -> None:
        index = self._index
        index.ids.append(row.sample_id)
        index.trials.append(row.trial)
        index.texts.append(row.text)
        index.at.append(at)
        for key, facet in self._facets.items():
            facet.add(row.facets.get(key, ()))
        for column, number in zip(index.numbers, row.numbers, strict=True):
            # More digits than a page shows would only make the file larger.
            column.values.append(None if number is None else round(number, 4))

    def built(self) -> Index:
        """Without the facets that no row has anything in."""
        facets = [
            facet.built(key, self._labels[key])
            for key, facet in self._facets.items()
            if any(facet.sets)
        ]
        return msgspec.structs.replace(self._index, facets=facets)


class _FacetBuilder:
    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        self.sets: dict[tuple[str, ...], int] = {}
        self.codes: list[int] = []

    def add(self, names: tuple[str, ...]) -> None:
        self.codes.append(self.sets.setdefault(names, len(self.sets)))

    def built(self, key: str, label: str) -> Facet:
        names = sorted({name for group in self.sets for name in group})
        place = {name: at for at, name in enumerate(names)}
        sets = [[place[name] for name in group] for group in self.sets]
        return Facet(key, label, names, sets, self.codes)


def row_of(result: Result, short: tuple[str, ...] = (), warnings: Collection[str] = ()) -> Row:
    """`short`: the gates that the sample falls short of; `warnings`: those that only warn."""
    scores = result.scores
    eligible = scores is not None and scores.kind == "eligible"
    fails = tuple(name for name in short if name not in warnings)
    warns = tuple(name for name in short if name in warnings)
    return Row(
        sample_id=result.sample_id,
        trial=result.trial,
        text=excerpt_of(result),
        facets=facets_of(result, fails, warns),
        numbers=(
            scores.lax.f1 if scores is not None and eligible else None,
            scores.strict.f1 if scores is not None and eligible and scores.strict_keys else None,
        ),
    )


def facets_of(
    result: Result, fails: tuple[str, ...], warns: tuple[str, ...] = ()
) -> dict[str, tuple[str, ...]]:
    expectation = expectation_of(result.metadata)
    scores = result.scores
    tools = {entry.name for entry in result.tool_trace if entry.name}
    tools |= {call.name for call in expectation.calls}
    return {
        "fails": fails,
        "warns": warns,
        "status": (_standing(result, fails, warns), *_remarks(result)),
        "kind": (expectation.kind if scores is None else scores.kind,),
        "tool": tuple(sorted(tools)),
        "locale": () if expectation.locale is None else (expectation.locale,),
        "slice": expectation.slices,
        "stop": (result.stop,),
    }


def _standing(result: Result, fails: tuple[str, ...], warns: tuple[str, ...]) -> str:
    """What the mark of a row says. An answer of which nothing is expected is marked by the worst
    label of what it states: no gate looks at it, and nothing checked is nothing passed."""
    scores = result.scores
    if scores is None or result.status == "error":
        return "not scored"
    if fails:
        return "falls short"
    if scores.kind == "unclassified":
        if scores.values.get("unsupported"):
            return "not supported"
        is_checked = scores.checks_ok or scores.values.get("supported")
        if not is_checked and not scores.values.get("derived"):
            return "nothing checked"
    return "only warns" if warns else "passes"


def _remarks(result: Result) -> list[str]:
    if result.scores is None or result.status == "error":
        return []
    found = []
    if result.scores.unresolved:
        found.append("call without a fixture")
    if result.scores.calls.wrong_calls:
        found.append("wrong call")
    if any(entry.status == "malformed" for entry in result.tool_trace):
        found.append("malformed call")
    if result.scores.json_args_valid is False:
        found.append("invalid arguments")
    if result.scores.values.get("unsupported"):
        found.append("unsupported value")
    return found


def excerpt_of(result: Result) -> str:
    """The start of what was asked, and on a second line of what was answered."""
    asked = _cut(last_question(result.prompt), PROMPT_BYTES)
    return f"{asked}\n{_cut(result.model_output, ANSWER_BYTES)}"


def last_question(prompt: str | list[dict[str, Json]]) -> str:
    """What the user said last in the prompt."""
    if isinstance(prompt, str):
        return prompt
    for message in reversed(prompt):
        content = message.get("content")
        if message.get("role") == "user" and isinstance(content, str):
            return content
    return ""


def _cut(text: str, limit: int) -> str:
    """At most so many bytes of one line."""
    # Cut before it is split: an answer may be megabytes, its excerpt is a line.
    shown = " ".join(text[: 4 * limit].split())
    raw = one_line(shown).encode("utf-8", "replace")
    return raw.decode() if len(raw) <= limit else raw[:limit].decode("utf-8", "ignore") + "…"


# Together with style, scripts and head they stay below 60 MB.
INDEX_BYTES = 21_000_000
SAMPLE_BYTES = 36_000_000


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
