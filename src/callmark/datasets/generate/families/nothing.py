"""Negative controls: the tools answer with nothing, or with something else than was asked."""

from __future__ import annotations

import msgspec

from callmark.datasets.generate.locales import english, form_of
from callmark.datasets.generate.records import Answer, Draft, Recipe, made_turns
from callmark.datasets.generate.tools import (
    Subject,
    hits_on,
    join_prompt,
    offer_some,
    search,
    subject_of,
)
from callmark.datasets.generate.words.english import ENGLISH
from callmark.datasets.generate.words.languages import FRENCH, GERMAN, SPANISH
from callmark.datasets.generate.words.topic import Language
from callmark.datasets.generate.world import World
from callmark.records.jsontext import Json

_LANGUAGES = (ENGLISH, ENGLISH, ENGLISH, GERMAN, SPANISH, FRENCH)


def empty(world: World) -> Draft:
    subject, language = _subject(world)
    return _draft(world, subject, language, [], decoys=())


def decoy(world: World) -> Draft:
    """The hit is about another thing of the same kind, and its figures tempt."""
    subject, language = _subject(world)
    place = world.place(1)
    stranger = msgspec.structs.replace(
        subject,
        entity=subject.topic.entity.replace("{p}", place.name),
        region=place.region,
        slug=place.name.lower().replace(" ", "-"),
    )
    hits = hits_on(world, stranger)[:1]
    return _draft(world, subject, language, hits, decoys=(subject.number.json, subject.day.iso))


def _subject(world: World) -> tuple[Subject, Language]:
    language = world.pick(_LANGUAGES)
    form = english() if language is ENGLISH else form_of(language.code)
    return subject_of(world, 0, language, form), language


def _draft(
    world: World,
    subject: Subject,
    language: Language,
    hits: list[Json],
    decoys: tuple[Json, ...],
) -> Draft:
    call = search(subject.query, subject.entity, hits)
    where = world.pick(language.search).format(q=subject.query)
    metadata: dict[str, Json] = {"negative_control": True, "language": language.code}
    if language is not ENGLISH:
        metadata["locale"] = language.code
    if decoys:
        metadata["decoy_values"] = list(decoys)
    said = world.pick(language.nothing).format(e=subject.entity)
    return Draft(
        prompt=join_prompt(world, subject.question, where, world.pick(language.marker)),
        calls=(call,),
        answer=Answer(made_turns((call,)), said),
        metadata={**metadata, **offer_some(world, (call,))},
        claim=subject.only_number(),
    )


NOTHING_FOUND = (
    Recipe("empty", "nothing_found", "simple", "text", empty, "negative_control"),
    Recipe("decoy", "nothing_found", "simple", "text", decoy, "negative_control"),
)
