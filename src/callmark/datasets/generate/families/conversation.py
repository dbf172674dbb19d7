"""Samples in which no call is right: controls, and requests that are unclear."""

from __future__ import annotations

from functools import partial

from callmark.datasets.generate.records import Answer, Draft, MadeCall, Recipe
from callmark.datasets.generate.tools import hit, offer_some
from callmark.datasets.generate.words.conversation import DECLINE, NO_TOOL, UNCLEAR, Exchange
from callmark.datasets.generate.world import World
from callmark.records.jsontext import Json


def talk(world: World, table: tuple[Exchange, ...], **metadata: Json) -> Draft:
    """A model that searches all the same gets an answer: a call here is an act, not a miss."""
    place, exchange = world.place(), world.pick(table)
    prompt = exchange.prompt.format(n=place.name, r=place.region)
    found = hit(f"About {place.region}", "A page for guests.", "https://example.com/guests")
    tempting = MadeCall(
        name="web.search",
        arguments={"q": f"{place.name} {place.region}"},
        result={"ok": True, "hits": [found]},
        match="any",
    )
    return Draft(
        prompt=prompt,
        answer=Answer((), exchange.answer.format(n=place.name, r=place.region)),
        metadata={**metadata, "language": exchange.language, **offer_some(world, (tempting,))},
        tempting=(tempting,),
    )


no_tool = partial(talk, table=NO_TOOL, expected_behaviour="no_tool")
decline = partial(talk, table=DECLINE, expected_behaviour="decline")
unclear = partial(talk, table=UNCLEAR, adversarial={"type": "ambiguity", "expected": "ask_clarify"})

CONVERSATIONS = (
    Recipe("no_tool", "control", "simple", "none", no_tool, "control", share=3),
    Recipe("decline", "control", "simple", "none", decline, "control", share=2),
    Recipe("unclear", "clarify", "simple", "none", unclear, "clarify"),
)
