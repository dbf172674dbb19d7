"""Dense answers (the slice `teacher_heavy`) and long documents (the slice `long_context`)."""

from __future__ import annotations

from callmark.datasets.generate.families.lookups import FOLDERS, one_call, page_text, plain_answer
from callmark.datasets.generate.locales import english
from callmark.datasets.generate.records import Draft, Label, Number, Recipe, Span
from callmark.datasets.generate.tools import (
    hits_on,
    join_prompt,
    offer_some,
    read_file,
    search,
    subject_of,
)
from callmark.datasets.generate.topics import ENGLISH, SYSTEM
from callmark.datasets.generate.words.documents import OPENINGS, SENTENCES
from callmark.datasets.generate.world import World
from callmark.records.jsontext import Json

LONG_BYTES = 24 * 1024


def dense(world: World) -> Draft:
    """Three lines, as many as are scored, and material for a fourth."""
    subject = subject_of(world)
    path = f"{world.pick(FOLDERS)}/{subject.slug}.md"
    label = Label(f"{subject.slug[:2].upper()}-{world.units(1)}")
    cost, staff, visits = (
        Number(world.units(slot), decimals) for slot, decimals in ((2, 2), (3, 1), (4, 0))
    )
    content = "\n".join(
        (
            page_text(world, subject),
            f"File mark: {label.text}",
            f"Upkeep: {cost.plain} EUR",
            f"Hours worked: {staff.plain}",
            f"Enquiries: {visits.plain}",
        )
    )
    call = read_file(path, content)
    spans = (
        subject.both(),
        Span("the file mark is {i}, and upkeep came to {n} EUR", (label, cost), english()),
        Span("staff put in {n} hours", (staff,), english()),
    )
    prompt = join_prompt(
        world,
        subject.question,
        f"Also tell me file mark, upkeep and hours worked. All of it is in {path}.",
        "Write three lines, each beginning with Integration:",
    )
    return Draft(
        prompt=prompt,
        calls=(call,),
        answer=plain_answer(world, (call,), *spans),
        facts=(subject.number, subject.day, label, cost, staff),
        metadata={"slices": ["teacher_heavy"], **offer_some(world, (call,))},
        spare_span=Span("people sent {n} enquiries", (visits,), english()),
    )


def long_search(world: World) -> Draft:
    subject = subject_of(world)
    call = search(subject.query, subject.entity, hits_on(world, subject))
    where = world.pick(ENGLISH.search).format(q=subject.query)
    prompt = _long_prompt(world, f"{subject.question} {where}")
    facts = (subject.number, subject.day)
    return one_call(world, prompt, call, subject.both(), facts, long_context=True)


def long_file(world: World) -> Draft:
    subject = subject_of(world)
    path = f"{world.pick(FOLDERS)}/{subject.slug}.txt"
    call = read_file(path, page_text(world, subject))
    where = world.pick(ENGLISH.read).format(path=path)
    prompt = _long_prompt(world, f"{subject.question} {where}")
    return one_call(world, prompt, call, subject.both(), long_context=True)


def _long_prompt(world: World, question: str) -> list[dict[str, Json]]:
    """Minutes of a meeting that have nothing to do with the question behind them."""
    text = f"{_document(world)}\n\n{question}\n{world.pick(ENGLISH.marker)}"
    return [
        {"role": "system", "content": world.pick(SYSTEM)},
        {"role": "user", "content": text},
    ]


def _document(world: World) -> str:
    places = [world.place(slot) for slot in range(4)]
    paragraphs = [world.pick(OPENINGS).format(name=places[1].name, region=places[1].region)]
    size = len(paragraphs[0])
    draw = world.rng.random
    while size < LONG_BYTES:
        chosen = [SENTENCES[int(draw() * len(SENTENCES))] for _ in range(6)]
        place = places[int(draw() * 4)]
        paragraph = " ".join(chosen).format(name=place.name, region=place.region)
        paragraphs.append(paragraph)
        size += len(paragraph) + 2
    return "\n\n".join(paragraphs)


REPORTS = (
    Recipe("dense", "dense", "complex", "path", dense),
    Recipe("long_search", "long", "complex", "text", long_search),
    Recipe("long_file", "long", "complex", "path", long_file),
)
