"""The mistakes that are planted into right answers about records: one of each kind at a time."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from callmark.records.statements import RULES
from dev.prove.stating import Phrase, Scene, StatedAnswer, answer_of, dump_of, flag, say

FLAGGED, COPIED, INVENTED = "flagged_sample_rate", "copy_ratio_ok_rate", "invented_argument_rate"
F1 = "integration_f1_macro_lax"


class StatedFault(msgspec.Struct, frozen=True):
    """`rule`: that which has to find it; None: by design none does (`what` says why), or it is no
    matter of statements. `own_gate`: that which fails, whatever the tier of the rule is."""

    name: str
    what: str
    rule: str | None
    plant: Callable[[Scene], StatedAnswer]
    own_gate: str | None = None

    @property
    def gate(self) -> str | None:
        """Flags of advisory rules fail none."""
        is_firm = self.rule is not None and RULES[self.rule].tier == "firm"
        return self.own_gate or (FLAGGED if is_firm else None)

    @property
    def is_unseen(self) -> bool:
        return self.rule is None and self.own_gate is None


def _with(scene: Scene, **phrases: Phrase) -> StatedAnswer:
    """The right answer with other phrases in these places; new ones come last."""
    renamed = {name.replace("_", " "): phrase for name, phrase in phrases.items()}
    return answer_of((scene.right_answer() | renamed).values())


def other_value(scene: Scene) -> StatedAnswer:
    known = {thing.fields[key] for thing in scene.things for key in ("price", scene.trade.fee)}
    price = next(
        number
        for number in iter(lambda: scene.rng.randrange(131, 987), None)
        if number not in known
    )
    # With cents: to a whole number, two steps of arithmetic come near by chance, as 3 × 245 + 17.5
    # to 753, and then it is called worked out.
    return _with(scene, cost=scene.cost(scene.first, flag(f"{price}.37", "value")))


def other_record(scene: Scene) -> StatedAnswer:
    wrong = flag(scene.third.text("price"), "record", scene.path(scene.first, "price"))
    return _with(scene, cost=scene.cost(scene.first, wrong))


def other_field(scene: Scene) -> StatedAnswer:
    fee = scene.third.text(scene.trade.fee)
    wrong = flag(fee, "field", scene.path(scene.third, "price"))
    return _with(scene, price=scene.sheet_line("price", wrong))


def negated(scene: Scene) -> StatedAnswer:
    key = scene.rng.choice(scene.trade.flags)
    is_so = bool(scene.first.fields[key])
    wrong = scene.has(scene.first, key, asserted=not is_so, by="polarity")
    return answer_of((scene.right_answer() | {key: wrong}).values())


def unknown(scene: Scene) -> StatedAnswer:
    return _with(
        scene, more=scene.has(scene.first, scene.trade.unknown, asserted=True, by="unknown")
    )


def other_unit(scene: Scene) -> StatedAnswer:
    key, _, unit, _ = scene.trade.sizes[0]
    wrong = flag(scene.second.text(key), "unit", scene.path(scene.second, key))
    return _with(scene, size=scene.size(scene.second, 0, wrong, unit))


def other_currency(scene: Scene) -> StatedAnswer:
    wrong = flag(scene.first.text("price"), "unit", scene.path(scene.first, "price"))
    phrase = scene.cost(scene.first, wrong)
    sign = scene.rng.choice([one for one in "€£$" if one != scene.sign])
    return _with(scene, cost=Phrase(phrase.text.replace(scene.sign, sign), phrase.marks))


def other_weekday(scene: Scene) -> StatedAnswer:
    return _with(scene, day=scene.day(scene.second, scene.rng.randrange(1, 7)))


def other_count(scene: Scene) -> StatedAnswer:
    many = len(scene.things) + scene.rng.choice((-1, 1, 2))
    return _with(scene, count=scene.count(flag(str(many), "count")))


def other_total(scene: Scene) -> StatedAnswer:
    return _with(scene, total=scene.total(scene.rng.choice((-30, -2, 1, 10, 100))))


def other_identifier(scene: Scene) -> StatedAnswer:
    right = scene.name_of(scene.first)
    near = f"{right[:-1]}{(int(right[-1]) + 1) % 10}"  # all right ones are odd
    return _with(scene, cost=scene.cost(scene.first, name=flag(near, "identifier")))


def undone_deed(scene: Scene) -> StatedAnswer:
    return _with(scene, more=scene.deed(scene.trade.deeds[1], scene.second, "deed"))


def other_hours(scene: Scene) -> StatedAnswer:
    return _with(scene, hours=scene.hours(scene.rng.choice(("Saturday", "Sunday"))))


def denied_sentence(scene: Scene) -> StatedAnswer:
    phrase = _deny(scene.cost(scene.second), "It is not true that ")
    return _with(scene, other_cost=phrase)


def denied_answer(scene: Scene) -> StatedAnswer:
    phrases = tuple(map(_deny, scene.right_answer().values()))
    return StatedAnswer(phrases, before="None of this is true: ")


def _deny(phrase: Phrase, before: str = "") -> Phrase:
    marks = tuple(
        mark._replace(
            start=mark.start + len(before),
            end=mark.end + len(before),
            label=RULES["denial"].label,
            rule="denial",
        )
        for mark in phrase.marks
    )
    return Phrase(before + phrase.text, marks)


def dumped(scene: Scene) -> StatedAnswer:
    right = answer_of(scene.right_answer().values())
    return replace(right, after=dump_of(scene.result), is_copy=True)


def invented_argument(scene: Scene) -> StatedAnswer:
    key, value = scene.rng.choice((("until", "2031-08-17"), ("voucher", "VX48213")))
    right = answer_of(scene.right_answer().values())
    return replace(right, arguments={key: value}, invented=(f"/{key}",))


def nonsense(scene: Scene) -> StatedAnswer:
    """Of no word and no number that anybody used."""
    wrong = [flag(number, "baseless") for number in ("74711", "61312", "50886")]
    pattern = "Geese juggled {} umbrellas, {} pumpkins and {} lanterns."
    return answer_of([say(pattern, *wrong), *scene.right_answer().values()])


def field_in_prose(scene: Scene) -> StatedAnswer:
    fee = scene.trade.fee.replace("_", " ")
    name, price = scene.name_of(scene.second), scene.second.text("price")
    return _with(scene, more=say(f"The {fee} of {{}} is {scene.sign}{{}}.", name, price))


def other_rank(scene: Scene) -> StatedAnswer:
    dearest = max(scene.things, key=lambda thing: int(thing.text("price")))
    wrong = flag("cheapest", "rank")
    return _with(scene, more=say("{} is the {} of them.", scene.name_of(dearest), wrong))


def other_state(scene: Scene) -> StatedAnswer:
    one, other = scene.trade.states
    state = other if scene.second.fields["status"] == one else one
    wrong = flag(state, "state")
    return _with(scene, more=say("{} is {}.", scene.name_of(scene.second), wrong))


def unlisted_deed(scene: Scene) -> StatedAnswer:
    return _with(scene, more=say("I have sold {} for you.", scene.name_of(scene.second)))


def other_place(scene: Scene) -> StatedAnswer:
    phrase = scene.count()
    by = len("Kestrel") - len(scene.place)
    marks = tuple(mark._replace(start=mark.start + by, end=mark.end + by) for mark in phrase.marks)
    return _with(scene, count=Phrase(phrase.text.replace(scene.place, "Kestrel"), marks))


STATED: dict[str, StatedFault] = {
    one.name: one
    for one in (
        StatedFault("other_value", "a price that nobody has", "value", other_value),
        StatedFault("other_record", "another record's price", "record", other_record),
        StatedFault("other_field", "the fee in the line of the price", "field", other_field),
        StatedFault("negated", "yes for no, or no for yes", "polarity", negated),
        StatedFault("unknown", "yes where the result has null", "unknown", unknown),
        StatedFault("other_unit", "the right number, another unit", "unit", other_unit),
        StatedFault("other_currency", "another currency sign", "unit", other_currency),
        StatedFault("other_weekday", "another day of the week", "weekday", other_weekday),
        StatedFault("other_count", "more or fewer than are listed", "count", other_count),
        StatedFault("other_total", "a sum that does not add up", "equation", other_total),
        StatedFault(
            "other_identifier",
            "an identifier with another digit",
            "identifier",
            other_identifier,
        ),
        StatedFault("undone_deed", "done, it says; no call did it", "deed", undone_deed),
        StatedFault("other_hours", "open on a day without hours", "hours", other_hours),
        StatedFault(
            "denied_sentence",
            "“It is not true that” before a right sentence",
            "denial",
            denied_sentence,
        ),
        StatedFault(
            "denied_answer",
            "“None of this is true:” before a right answer",
            "denial",
            denied_answer,
            F1,
        ),
        StatedFault("nonsense", "a sentence of nothing before the answer", "baseless", nonsense),
        StatedFault("dumped_results", "the whole result behind the answer", None, dumped, COPIED),
        StatedFault(
            "invented_argument",
            "a day or a voucher in a call that nobody gave",
            None,
            invented_argument,
            INVENTED,
        ),
        StatedFault(
            "field_in_prose",
            "the price is called the fee, in a sentence: only what stands behind a label or in a"
            " column of a table is taken to be that field",
            None,
            field_in_prose,
        ),
        StatedFault("other_rank", "the dearest is called the cheapest", "rank", other_rank),
        StatedFault(
            "other_state", "`vacant` for `taken`, as another record is", "state", other_state
        ),
        StatedFault(
            "unlisted_deed",
            "“I have sold”: a verb that is not on the list of deeds",
            None,
            unlisted_deed,
        ),
        StatedFault(
            "other_place",
            "a name that nobody has: only names that a result gives are looked for",
            None,
            other_place,
        ),
    )
}
