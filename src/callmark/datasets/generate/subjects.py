"""What a sample is about: a thing in a place, with its number and its date."""

from __future__ import annotations

import msgspec

from callmark.core.jsontext import Json
from callmark.datasets.generate.forms import LocaleForm, english
from callmark.datasets.generate.records import Day, Number, Span
from callmark.datasets.generate.tools import hit
from callmark.datasets.generate.words.english import ENGLISH
from callmark.datasets.generate.words.topic import Language, Topic
from callmark.datasets.generate.world import World

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


def asked(world: World, *sentences: str) -> str:
    """A prompt out of its sentences, on one line or on several."""
    return world.pick((" ", " ", "\n")).join(filter(None, sentences))
