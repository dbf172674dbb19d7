"""Locale probes: question and answer in another language, numbers and dates in its form."""

from __future__ import annotations

from functools import partial

from callmark.datasets.generate.families.lookups import FOLDERS, page_text
from callmark.datasets.generate.locales import form_of
from callmark.datasets.generate.records import (
    Answer,
    Day,
    Draft,
    MadeCall,
    Number,
    Recipe,
    made_turns,
)
from callmark.datasets.generate.tools import (
    Subject,
    hits_on,
    join_prompt,
    offer_some,
    read_file,
    search,
    subject_of,
)
from callmark.datasets.generate.topics import Language
from callmark.datasets.generate.words.languages import PROBES
from callmark.datasets.generate.world import World
from callmark.records.jsontext import Json


def by_search(world: World, locale: str, language: Language) -> Draft:
    subject = subject_of(world, 0, language, form_of(locale))
    call = search(subject.query, subject.entity, hits_on(world, subject))
    where = world.pick(language.search).format(q=subject.query)
    facts = (subject.number, subject.day)
    return _draft(
        world, subject, call, join_prompt(world, subject.question, where), language, facts
    )


def by_file(world: World, locale: str, language: Language) -> Draft:
    """Nothing is required by name: a wrong form shows in the probe alone."""
    subject = subject_of(world, 0, language, form_of(locale))
    path = f"{world.pick(FOLDERS)}/{subject.slug}.txt"
    where = world.pick(language.read).format(path=path)
    call = read_file(path, page_text(world, subject))
    return _draft(world, subject, call, join_prompt(world, subject.question, where), language)


def _draft(
    world: World,
    subject: Subject,
    call: MadeCall,
    request: str,
    language: Language,
    facts: tuple[Number | Day, ...] = (),
) -> Draft:
    metadata: dict[str, Json] = {
        "language": language.code,
        "locale": subject.form.locale,
        "locale_probe": True,
        **offer_some(world, (call,)),
    }
    before, after = world.pick(language.before), world.pick(language.after)
    return Draft(
        prompt=join_prompt(world, request, world.pick(language.marker)),
        calls=(call,),
        answer=Answer(made_turns((call,)), before, (subject.both(),), after),
        facts=facts,
        metadata=metadata,
    )


LOCALE_PROBES = tuple(
    Recipe(
        f"probe_{locale}_{structure}",
        "locale_report",
        "simple",
        structure,
        partial(make, locale=locale, language=language),
        share=share,
    )
    for locale, (language, share) in PROBES.items()
    for structure, make in (("text", by_search), ("path", by_file))
)
