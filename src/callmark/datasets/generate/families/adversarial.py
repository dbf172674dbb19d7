"""Requests that mislead: out of range, malformed. The right answer calls, but not as asked."""

from __future__ import annotations

from callmark.datasets.generate.families.lookups import one_call, page_text
from callmark.datasets.generate.records import Draft, Recipe
from callmark.datasets.generate.tools import hits_on, join_prompt, open_page, search, subject_of
from callmark.datasets.generate.topics import ENGLISH
from callmark.datasets.generate.world import World

MOST_HITS = 100  # what the search allows
TOO_MANY = ("five hundred", "two thousand", "ten thousand", "a million")


def out_of_range(world: World) -> Draft:
    subject = subject_of(world)
    call = search(subject.query, subject.entity, hits_on(world, subject), top_k=MOST_HITS)
    prompt = join_prompt(
        world,
        subject.question,
        f'Search for "{subject.query}" and fetch {world.pick(TOO_MANY)} hits,'
        " or as many as the tool allows at most.",
        world.pick(ENGLISH.marker),
    )
    return one_call(
        world,
        prompt,
        call,
        subject.both(),
        (subject.number, subject.day),
        adversarial={"type": "range", "expected": "clamp_to_maximum"},
    )


def malformed_address(world: World) -> Draft:
    subject = subject_of(world)
    call = open_page(subject.url, page_text(world, subject))
    rest = subject.url.removeprefix("https://")
    broken = world.pick(("htps:/{r}", "https//{r}", "https:///{r}", "hxxps://{r}")).format(r=rest)
    prompt = join_prompt(
        world,
        subject.question,
        f"Open {broken} for it. Somebody mangled the beginning of that address when copying it;"
        " mend it.",
        world.pick(ENGLISH.marker),
    )
    return one_call(
        world,
        prompt,
        call,
        subject.both(),
        (subject.number, subject.day),
        adversarial={"type": "malformed", "expected": "correct_and_call"},
    )


ADVERSARIAL = (
    Recipe("out_of_range", "adversarial", "moderate", "text_and_number", out_of_range),
    Recipe("malformed_address", "adversarial", "moderate", "url", malformed_address),
)
