"""Expected calls of the six built-in tools, each with the fixture that answers it.

A fixture answers a little more than the expected call: another wording of a query that names the
thing, another number of hits, another revision. So a model that words a call otherwise is served,
and its arguments are still counted as wrong."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from callmark.datasets.generate.records import Day, MadeCall, Number, Span, World
from callmark.datasets.generate.topics import ENGLISH, Language, LocaleForm, Topic, english
from callmark.records.jsontext import Json

TOOL_NAMES = ("web.search", "web.open", "read_file", "code_exec", "file.write", "repo.read")

_ANY: dict[str, Json] = {"ignore": True}


def search(
    query: str,
    needle: str,
    hits: Sequence[Json],
    *,
    top_k: int | None = None,
    step: int = 0,
    spare: bool = False,
) -> MadeCall:
    """`needle`: every query that holds it is answered. Without `top_k` any number is right."""
    arguments: dict[str, Json] = {"q": query} if top_k is None else {"q": query, "top_k": top_k}
    return MadeCall(
        name="web.search",
        arguments=arguments,
        result={"ok": True, "hits": list(hits), **({} if hits else {"count": 0})},
        step=step,
        match={"q": {"contains": needle}, "top_k": _ANY},
        optional=("top_k",) if top_k is None else (),
        other={**arguments, "q": f"{needle} overview"},
        spare=spare,
    )


def hit(title: str, snippet: str, url: str) -> dict[str, Json]:
    return {"title": title, "snippet": snippet, "url": url}


def open_page(
    url: str, content: str, *, step: int = 0, error: str | None = None, seq: int | None = None
) -> MadeCall:
    result: Json = {"ok": True, "url": url, "content": content}
    other = f"{url}?print=yes"
    return MadeCall(
        name="web.open",
        arguments={"url": url},
        result=result if error is None else {"ok": False, "error": error},
        step=step,
        match={"url": {"one_of": [url, other]}},
        other={"url": other},
        seq=seq,
    )


def read_file(
    path: str, content: str, *, step: int = 0, error: str | None = None, seq: int | None = None
) -> MadeCall:
    result: Json = {"ok": True, "path": path, "content": content}
    other = f"backup/{path}"
    return MadeCall(
        name="read_file",
        arguments={"path": path},
        result=result if error is None else {"ok": False, "error": error},
        step=step,
        match={"path": {"one_of": [path, other]}},
        other={"path": other},
        seq=seq,
    )


def read_upload(file_id: str, content: str) -> MadeCall:
    return MadeCall(
        name="read_file",
        arguments={"file_id": file_id},
        result={"ok": True, "content": content},
    )


def run_code(
    expression: str, printed: str, *, language: str | None = None, step: int = 0
) -> MadeCall:
    """Prints an expression. Without `language` any is right."""
    arguments: dict[str, Json] = {"code": f"print({expression})"}
    if language is not None:
        arguments["language"] = language
    return MadeCall(
        name="code_exec",
        arguments=arguments,
        result={"ok": True, "stdout": f"{printed}\n", "stderr": "", "exit_code": 0},
        step=step,
        match={"code": {"contains": expression}, "language": _ANY},
        optional=("language",) if language is None else (),
        other={**arguments, "code": f"result = {expression}"},
    )


def write_file(
    path: str, content: str, *, step: int = 0, spare: bool = False, error: str | None = None
) -> MadeCall:
    size = len(content.encode())
    return MadeCall(
        name="file.write",
        arguments={"path": path, "content": content},
        result={"ok": True, "bytes_written": size} if error is None else _fail_with(error),
        step=step,
        match={"content": _ANY, "mode": _ANY},
        optional=("mode",),
        spare=spare,
    )


def read_repository(path: str, repository: str, content: str, *, step: int = 0) -> MadeCall:
    """Any revision is right."""
    return MadeCall(
        name="repo.read",
        arguments={"path": path, "repo": repository},
        result={"ok": True, "path": path, "content": content},
        step=step,
        match={"ref": _ANY, "repo": _ANY},
        optional=("ref",),
        other={"path": path, "repo": f"{repository}-mirror"},
    )


def offer_some(world: World, calls: Sequence[MadeCall]) -> dict[str, Json]:
    """Every fourth sample offers only some tools: never just those it needs."""
    if world.rng.randrange(4):
        return {}
    needed = {call.name for call in calls}
    others = [name for name in TOOL_NAMES if name not in needed]
    wanted = needed | {world.pick(others), world.pick(others)}
    return {"tools": [name for name in TOOL_NAMES if name in wanted]}


def _fail_with(error: str) -> dict[str, Json]:
    return {"ok": False, "error": error}


_DISTRACTOR = 7  # the number slot of what else a search finds


class Subject(msgspec.Struct, frozen=True, gc=False):
    entity: str
    region: str
    slug: str
    topic: Topic
    number: Number
    day: Day
    form: LocaleForm

    @property
    def query(self) -> str:
        return f"{self.entity} {self.region} {self.topic.aspect}"

    @property
    def question(self) -> str:
        return self.topic.ask.replace("{e}", self.entity).replace("{r}", self.region)

    @property
    def sheet(self) -> str:
        """How a source records it."""
        return self.topic.sheet.format(n=self.number.plain, d=self.day.iso)

    @property
    def url(self) -> str:
        return f"https://example.org/{self.slug}/sheet"

    def both(self) -> Span:
        return self._span(self.topic.both, self.number, self.day)

    def only_number(self) -> Span:
        return self._span(self.topic.number, self.number)

    def only_date(self) -> Span:
        return self._span(self.topic.date, self.day)

    def _span(self, pattern: str, *values: Number | Day) -> Span:
        return Span(pattern.replace("{e}", self.entity), values, self.form)


def subject_of(
    world: World, slot: int = 0, language: Language = ENGLISH, form: LocaleForm | None = None
) -> Subject:
    place, topic, form = world.place(slot), world.pick(language.topics), form or english()
    return Subject(
        entity=topic.entity.replace("{p}", place.name),
        region=place.region,
        slug=f"{place.name}-{place.region}".lower().replace(" ", "-"),
        topic=topic,
        number=Number(world.units(slot), topic.decimals),
        day=Day(*world.day(slot % 2)),
        form=form,
    )


def hits_on(world: World, subject: Subject, sheet: str | None = None) -> list[Json]:
    """The right hit, and one about something else."""
    path = f"{world.place(3).name}".lower().replace(" ", "-")
    metres = Number(world.units(_DISTRACTOR), 1).plain
    return [
        hit(
            f"{subject.region}: {subject.entity}, data sheet",
            subject.sheet if sheet is None else sheet,
            subject.url,
        ),
        hit(
            f"Walks around {subject.region}",
            f"A marked path of {metres} m with benches and a kiosk. Dogs on a lead.",
            f"https://example.com/walks/{path}",
        ),
    ]


def join_prompt(world: World, *sentences: str) -> str:
    """A prompt out of its sentences, on one line or on several."""
    return world.pick((" ", " ", "\n")).join(filter(None, sentences))
