"""Records and right answers about them: each statement is known with its place and its label.

Numbers are drawn so that none of them is another one by chance, in another unit either."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from random import Random
from typing import NamedTuple

import msgspec

from callmark.datasets.generate.records import MadeCall
from callmark.records.jsontext import Json, canonical_json
from callmark.records.statements import RULES, StatementLabel
from dev.campaign.altering import MONTHS

OPEN_ARGUMENTS = ("until", "voucher")  # which the second call may have
WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
PLACES = "Melness Varnby Tolmoor Eskwick Brandholm Lindhaven Orrsund Castrey".split()


class Trade(msgspec.Struct, frozen=True):
    """What a world is about. `sizes`: key, how an answer says it, the wrong unit, and the number
    above which they are drawn. `flags` are yes for one half of the records and no for the other,
    `unknown` is null."""

    things: str
    thing: str
    prefix: str
    key: str
    place: str
    fee: str
    sizes: tuple[tuple[str, str, str, int], ...]
    dated: tuple[str, str]
    flags: tuple[str, str]
    unknown: str
    states: tuple[str, str]
    deeds: tuple[str, str]  # what the second tool does, and what none does


TRADES = (
    Trade(
        "boats", "boat", "BT-", "boat_id", "harbour", "deposit",
        (("weight_kg", "weighs {} kg", "lbs", 5000), ("length_m", "is {} m long", "feet", 13)),
        ("launched", "was launched"), ("life_raft", "diesel_heater"), "bow_thruster",
        ("moored", "afloat"), ("reserve", "cancel"),
    ),
    Trade(
        "flights", "flight", "HAT", "flight_number", "airport", "baggage_fee",
        (
            ("distance_km", "covers {} km", "miles", 2400),
            ("altitude_m", "climbs to {} m", "feet", 7000),
        ),
        ("departs_on", "departs"), ("free_wifi", "power_outlets"), "vegan_menu",
        ("boarding", "delayed"), ("book", "cancel"),
    ),
    Trade(
        "cabins", "cabin", "CB", "cabin_number", "valley", "cleaning_fee",
        (
            ("distance_km", "lies {} km from the station", "miles", 17),
            ("plot_m2", "has a plot of {} m²", "acres", 900),
        ),
        ("renovated", "was renovated"), ("outdoor_sauna", "private_jetty"), "ski_storage",
        ("vacant", "taken"), ("book", "cancel"),
    ),
)  # fmt: skip


class StatedMark(NamedTuple):
    """Characters of an answer and their label. A flag has its rule, and the leaf that it should
    have been, where there is one."""

    start: int
    end: int
    label: StatementLabel
    rule: str = ""
    path: str | None = None

    @property
    def is_firm(self) -> bool:
        return bool(self.rule) and RULES[self.rule].tier == "firm"


class Phrase(NamedTuple):
    """One sentence, or one item of a list."""

    text: str
    marks: tuple[StatedMark, ...] = ()


class Spoken(NamedTuple):
    """A part of a phrase that is a statement."""

    text: str
    label: StatementLabel = "supported"
    rule: str = ""
    path: str | None = None


def flag(text: str, rule: str, path: str | None = None) -> Spoken:
    return Spoken(text, RULES[rule].label, rule, path)


def say(pattern: str, *parts: Spoken | str) -> Phrase:
    """`{}` are the parts, in their order; a plain text is a statement that results support."""
    text, marks = "", []
    pieces = pattern.split("{}")
    for piece, part in zip(pieces, (*parts, ""), strict=True):
        text += piece
        spoken = Spoken(part) if isinstance(part, str) else part
        if spoken.text:
            end = len(text) + len(spoken.text)
            marks.append(StatedMark(len(text), end, spoken.label, spoken.rule, spoken.path))
        text += spoken.text
    return Phrase(text, tuple(marks))


class Thing(NamedTuple):
    """One record, and where it stands in the result."""

    at: int
    fields: dict[str, Json]

    def text(self, key: str) -> str:
        return str(self.fields[key])


class Scene:
    """What one sample is about: its records, its calls, and the right things to say."""

    def __init__(self, seed: str, number: int) -> None:
        self.rng = Random(f"{seed} {number}")  # noqa: S311 - reproducible on purpose
        self.trade = TRADES[number % len(TRADES)]
        self.place = self.rng.choice(PLACES)
        self.code, self.sign = self.rng.choice((("EUR", "€"), ("GBP", "£"), ("USD", "$")))
        many = self.rng.randrange(3, 7)
        self._money = iter(self.rng.sample(range(131, 987), 2 * many))
        self.things = [self._thing(at, many) for at in range(many)]
        self.first, self.second, self.third = self.rng.sample(self.things, 3)

    def _thing(self, at: int, many: int) -> Thing:
        trade, rng = self.trade, self.rng
        fields: dict[str, Json] = {
            # Odd and far apart: an even one is near to one of them, and is none.
            trade.key: f"{trade.prefix}{1021 + 1400 * at + 2 * rng.randrange(600)}",
            "price": next(self._money),
            trade.fee: next(self._money),
            "currency": self.code,
        }
        for key, _, _, least in trade.sizes:
            fields[key] = self._size(least, at, many)
        day = date(1983, 3, 1) + timedelta(days=400 * at + rng.randrange(390))
        fields[trade.dated[0]] = day.isoformat()
        fields |= {trade.flags[0]: at % 2 == 0, trade.flags[1]: at % 2 == 1}
        fields[trade.unknown] = None
        fields["status"] = trade.states[at % 2]
        return Thing(at, fields)

    def _size(self, least: int, at: int, many: int) -> Json:
        """Within one and a half of the least: in another unit it is no other one of them."""
        step = least * 5 / many
        tenths = least * 10 + int(step * at) + self.rng.randrange(1, max(2, int(step)))
        return tenths / 10 if least < 100 else tenths // 10

    @property
    def result(self) -> Json:
        trade = self.trade
        return {
            trade.place: self.place,
            trade.things: [thing.fields for thing in self.things],
            "office": dict.fromkeys(WEEKDAYS[:5], "9:0-17:0"),
        }

    @property
    def calls(self) -> tuple[MadeCall, MadeCall]:
        """The first lists, the second does what it is asked, whatever else it is told."""
        trade = self.trade
        return (
            MadeCall(
                name=f"list_{trade.things}",
                arguments={trade.place: self.place},
                result=self.result,
            ),
            MadeCall(
                name=f"{trade.deeds[0]}_{trade.thing}",
                arguments={trade.key: self.first.fields[trade.key]},
                result={"ok": True},
                match={key: {"ignore": True} for key in OPEN_ARGUMENTS},
            ),
        )

    @property
    def required(self) -> list[Json]:
        """What every answer has to tell; no mistake of one value touches it."""
        return [self.third.fields[self.trade.fee], self.first.fields[self.trade.sizes[1][0]]]

    @property
    def prompt(self) -> str:
        deed = self.trade.deeds[0]
        return (
            f"Which {self.trade.things} are there in {self.place}, and what is known of them?"
            f" Then {deed} {self.name_of(self.first)}."
        )

    def name_of(self, thing: Thing) -> str:
        return thing.text(self.trade.key)

    def path(self, thing: Thing, key: str) -> str:
        return f"/{self.trade.things}/{thing.at}/{key}"

    # --- what is said of a thing; with another part, what is wrongly said

    def cost(self, thing: Thing, price: Spoken | str = "", name: Spoken | str = "") -> Phrase:
        wordings = ("{} costs %s{}.", "{} is priced at %s{}.", "{} ({}) is on the list.")
        pattern = wordings[thing.at % 3]
        if pattern.startswith("{} ("):
            pattern = pattern.replace("({})", "(%s{})")
        return say(pattern % self.sign, name or self.name_of(thing), price or thing.text("price"))

    def size(
        self, thing: Thing, which: int, number: Spoken | None = None, unit: str = ""
    ) -> Phrase:
        key, wording, _, _ = self.trade.sizes[which]
        if unit:
            said, right = wording.split("{} ")
            wording = f"{said}{{}} {unit}{right.partition(' ')[1]}{right.partition(' ')[2]}"
        return say("{} " + wording + ".", self.name_of(thing), number or thing.text(key))

    def day(self, thing: Thing, by: int = 0) -> Phrase:
        """The day of the week and the date are two statements; `by` days it is another day."""
        key, verb = self.trade.dated
        day = date.fromisoformat(thing.text(key))
        written = f"{day.day} {MONTHS[day.month - 1]} {day.year}"
        named = WEEKDAYS[(day.weekday() + by) % 7]
        whole = f"{named}, {written}"
        spoken = flag(whole, "weekday") if by else Spoken(whole, "derived")
        phrase = say("{} " + verb + " on {}.", self.name_of(thing), spoken)
        at = phrase.text.index(written)
        inner = StatedMark(at, at + len(written), "supported")
        return Phrase(phrase.text, tuple(sorted((*phrase.marks, inner))))

    def has(self, thing: Thing, key: str, *, asserted: bool, by: str = "") -> Phrase:
        words = key.replace("_", " ")
        spoken = flag(words, by, self.path(thing, key)) if by else Spoken(words)
        plural = words.endswith("s")
        article = (
            "" if plural or words == "free wifi" else "a " if words[0] not in "aeiou" else "an "
        )
        verb = f"has {article}" if asserted else f"does not have {article}"
        return say(f"{{}} {verb}{{}}.", self.name_of(thing), spoken)

    def count(self, number: Spoken | None = None) -> Phrase:
        right = Spoken(str(len(self.things)), "derived")
        return say(f"{self.place} has {{}} {self.trade.things}.", number or right)

    def total(self, by: int = 0) -> Phrase:
        one, other = (thing.fields["price"] for thing in (self.first, self.second))
        total = str(int(str(one)) + int(str(other)) + by)
        spoken = flag(total, "equation") if by else Spoken(total, "calculated")
        pattern = f"Together that is {self.sign}{{}} + {self.sign}{{}} = {self.sign}{{}}."
        return say(pattern, str(one), str(other), spoken)

    def hours(self, last: str = "Friday") -> Phrase:
        days = f"Monday to {last} from 9:00 to 17:00"
        phrase = say("The office is open Monday to " + last + " from {} to {}.", "9:00", "17:00")
        if last == "Friday":
            return phrase
        at = phrase.text.index(days)
        mark = StatedMark(at, at + len(days), RULES["hours"].label, "hours")
        return Phrase(phrase.text, tuple(sorted((*phrase.marks, mark))))

    def sheet_line(self, key: str, number: Spoken | None = None) -> Phrase:
        label = key.replace("_", " ").capitalize()
        return say(f"- {label}: {self.sign}{{}}", number or self.third.text(key))

    def deed(self, verb: str, thing: Thing, rule: str = "") -> Phrase:
        done = {"reserve": "reserved", "book": "booked", "cancel": "cancelled"}
        claim = f"I have {done[verb]}"
        spoken = flag(claim, rule) if rule else Spoken(claim)
        return say("{} {} for you.", spoken, self.name_of(thing))

    def right_answer(self) -> dict[str, Phrase]:
        """By what a mistake may stand in the place of, in the order of the answer."""
        trade, first, second, third = self.trade, self.first, self.second, self.third
        flags = {key: self.has(first, key, asserted=bool(first.fields[key])) for key in trade.flags}
        return {
            "count": self.count(),
            "cost": self.cost(first),
            "other cost": self.cost(second),
            "size": self.size(second, 0),
            "other size": self.size(first, 1),
            **flags,
            "day": self.day(second),
            "total": self.total(),
            "hours": self.hours(),
            "sheet": say("{}:", self.name_of(third)),
            "price": self.sheet_line("price"),
            "fee": self.sheet_line(trade.fee),
            "deed": self.deed(trade.deeds[0], first),
        }


class StatedAnswer(msgspec.Struct, frozen=True):
    """`after` the phrases stands something that is compared for its flags only. `arguments` are
    added to the second call by nobody's leave: `invented` of them."""

    phrases: tuple[Phrase, ...]
    before: str = ""
    after: str = ""
    arguments: dict[str, Json] = {}
    invented: tuple[str, ...] = ()
    is_copy: bool = False

    @property
    def text(self) -> str:
        return self.before + "\n".join(phrase.text for phrase in self.phrases) + self.after

    def marks(self) -> Iterator[StatedMark]:
        """In bytes of the whole."""
        at = _size(self.before)
        for phrase in self.phrases:
            for mark in phrase.marks:
                start, end = (at + _size(phrase.text[:place]) for place in mark[:2])
                yield mark._replace(start=start, end=end)
            at += _size(phrase.text) + 1

    @property
    def compared_until(self) -> int:
        return _size(self.text) - _size(self.after)


def _size(text: str) -> int:
    return len(text.encode())


def answer_of(phrases: Iterable[Phrase]) -> StatedAnswer:
    return StatedAnswer(tuple(phrases))


def dump_of(result: Json) -> str:
    return f"\n{canonical_json(result)}"
