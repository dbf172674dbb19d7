"""What a cheap look leaves out: the scan behind it would have found nothing."""

import re

from hypothesis import given
from hypothesis import strategies as st

from callmark.calls.formats import FORMATS
from callmark.calls.ledger import _MAY_HOLD_CALL, PLAIN_WORDS, TurnText, read_turn
from callmark.calls.unparsed import find_unparsed
from callmark.grounding.binding import _COMPARING as _SET_AGAINST
from callmark.grounding.binding import _THAN, Binder
from callmark.grounding.claims import _DESIGNATED, is_designated
from callmark.grounding.comparing import _COMPARING, _WAY, WINDOW
from callmark.grounding.dates import find_moments, may_go_on_with
from callmark.grounding.deeds import find_deeds
from callmark.grounding.denials import (
    _BACKWARD,
    _FORWARD,
    _NEAR_BY,
    _all_in,
    _beginnings_in,
    around,
)
from callmark.grounding.evidence import Served
from callmark.grounding.match import Said, _words_and_digits
from callmark.grounding.naming import _CAPITAL, NAMES, TITLED, GivenNames, KnownWords
from callmark.grounding.polar_keys import root
from callmark.grounding.polarity import PolarFields
from callmark.grounding.quantifiers import AMOUNT_WORDS, Amounts
from callmark.grounding.ranking import Ranks
from callmark.grounding.record_fields import find_all_kin, find_first_and_all_kin, find_kin
from callmark.grounding.record_tree import RecordIndex, RecordSubject, RecordTree
from callmark.grounding.siblings import SiblingNames
from callmark.grounding.spans import _BREAK, _END, _PROPOSED, Outline
from callmark.grounding.states import _STATES, _match_state
from callmark.grounding.tallies import Tallies
from callmark.grounding.text import (
    ByteOffsets,
    blank_signs,
    char_offsets,
    fold,
    letters_in,
    place_words,
    tokens_in,
    tokens_of,
    words_in,
)
from callmark.grounding.values import (
    _DOMAIN,
    _EMAIL,
    _HTTP,
    _MAY_BE_MOMENT,
    _REST,
    _compile,
    find_values,
)
from callmark.scorers.integration import ToldWords
from callmark.scorers.pii import find_pii
from callmark.scorers.privacy import _may_be_personal
from callmark.scorers.statements import _has_lists, _may_say_yes_or_no, _may_tell_deeds

PIECES = st.sampled_from(
    "search city q call tool action name input args Berlin May 12 7 2024 10:30 230,940 1.2.3.4 1234567"
    " 555-0100 a@b.co I've we have been cancelled booked set complete storniert gebucht enviado"
    " réservée mis à jour envoyé weather not n't 12月 3h ' \" : = ( ) { } [ ] < > - . , \n".split(
        " "
    )
)
TEXTS = st.lists(PIECES | st.text(max_size=4), max_size=14).flatmap(
    lambda pieces: st.sampled_from(["", " "]).map(lambda between: between.join(pieces))
)
TOOLS = {"search": {"properties": {"q": {}, "city": {}}}, "weather": {}}


@given(TEXTS)
def test_a_line_of_plain_words_is_said_as_it_is(text):
    if PLAIN_WORDS.fullmatch(text) and not any(row.hint in text for row in FORMATS):
        turn = read_turn(text, offered=TOOLS, schema_of=lambda name: TOOLS.get(name, {}))
        assert turn == TurnText(text.strip(), "", (), ())


@given(TEXTS, st.booleans())
def test_without_a_sign_there_is_no_call_of_an_unknown_format(text, named):
    if not _MAY_HOLD_CALL.search(text):
        offers = TOOLS.__contains__
        assert find_unparsed(text, offers, lambda name: TOOLS.get(name, {}), named=named) == []


@given(TEXTS, st.sampled_from([None, "en_US", "de_DE", "ja_JP"]))
def test_without_one_two_or_four_digits_there_is_no_moment(text, locale):
    if not _MAY_BE_MOMENT.search(text):
        assert find_moments(text, locale) == []


@given(TEXTS, st.sampled_from(["", "ssn", "card"]))
def test_what_looks_harmless_holds_nothing_personal(text, label):
    if not _may_be_personal(text):
        assert find_pii(text, label=label) == ()
        assert find_pii(text, label=label, locale="de_DE") == ()


@given(TEXTS)
def test_without_its_words_no_deed_is_told(text):
    outline = Outline(text)
    if not _may_tell_deeds(outline):
        assert list(find_deeds(outline, (), lambda _: None, lambda word, span: False)) == []


KEYS = st.sampled_from("name title status fee late_fees has_wifi open price notes results".split())
LEAVES = st.sampled_from(
    [
        None,
        True,
        False,
        0,
        3,
        12.5,
        "yes",
        "No",
        "not included",
        "Anna Berg",
        "Hotel Miradouro",
        "pending",
    ]
)
RESULTS = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
SAID = st.lists(
    st.sampled_from(
        "the a no any some without fees fee late there is are open not wifi Anna Bert Berg Dr. Hotel"
        " Azul Miradouro cheapest best two of three 3 12.5 pending yes . , : - \n".split(" ")
    ),
    max_size=14,
).map(" ".join)


def indexed(result, text):
    index = RecordIndex(RecordTree([Served(0, None, result, {}, False, ())]))
    outline = Outline(text)
    return index, outline, Binder(outline, index, [])


@given(RESULTS, SAID)
def test_where_no_field_says_yes_or_no_nothing_is_said_of_one(result, text):
    index, outline, binder = indexed(result, text)
    if not any(map(_may_say_yes_or_no, index.tree.fields)):
        assert list(PolarFields(index.tree).said_in(outline, binder)) == []


@given(RESULTS, SAID)
def test_without_a_word_for_none_or_some_there_is_no_amount(result, text):
    index, outline, binder = indexed(result, text)
    if AMOUNT_WORDS.isdisjoint(outline.words):
        assert list(Amounts(index.tree).said_in(outline, binder)) == []


@given(RESULTS, SAID)
def test_without_two_capitals_or_a_title_nobody_is_misnamed(result, text):
    index, outline, _ = indexed(result, text)
    if not (NAMES.search(text) or TITLED.search(text)):
        names = GivenNames(index.tree, KnownWords(index, Said([], None)))
        assert list(names.misnamed_in(outline)) == []


@given(RESULTS, SAID)
def test_where_nothing_is_listed_nothing_is_ranked_counted_or_told_apart(result, text):
    index, outline, binder = indexed(result, text)
    tree = index.tree
    if not _has_lists(tree):
        ranks = Ranks(index, binder.all_mentions, [])
        assert list(ranks.wrong_in(outline, binder, lambda _: None)) == []
        assert list(Tallies(tree).wrong_in(outline)) == []
        if not any(" " in name for one in tree.records for name in one.names):
            assert SiblingNames(tree, outline.words).mentions(text, []) == []


WORDS_AFTER_DAYS = (
    "It May mai März Aprıl Sept. sept de of mayo und bis the flight October décembre no Uhr"
    " dezember Jan. am"
).split()
TOLD = st.lists(st.sampled_from("to Bergen the old_town 12 é , .".split()), max_size=6).map(
    " ".join
)
COMPARED = (
    "it costs is 12 more than 9 $5 cheaper over under plus élevée que up from MORE THAN in excess of"
    " ahead down the flight . \n und mehr als über au-dessus d'ici"
).split(" ")
COMPARING_WORDS = st.lists(st.sampled_from((*COMPARED, "x" * 70)), max_size=40).map(" ".join)


@given(COMPARING_WORDS)
def test_comparisons_stand_around_their_words(text: str):
    outline = Outline(text)
    near = around(outline, outline.places_of(outline.words & _COMPARING), WINDOW)
    looked = [one.span() for span in near for one in _WAY.finditer(outline.text, *span)]
    assert looked == [one.span() for one in _WAY.finditer(outline.text)]


DENIALS = (
    "none of this is true|all of these figures are wrong|everything here is false|the above is untrue"
    "|what i said is made up|please ignore the above|don't believe everything|disregard what follows"
    "|i made all of this up|i've invented everything|I'm kidding|just joking|scratch that|April fools"
    "|the exact opposite is true|Das Folgende ist falsch|Nichts davon stimmt|alles hier ist erfunden"
    "|dies ist unwahr|Todo lo siguiente es falso|No es cierto lo siguiente|Nada de eso es verdad"
    "|esto es mentira|¡inocente, inocente|Rien de tout cela n'est vrai|ce qui suit est faux|c'est faux"
    "|poisson d'avril|that|it is|solo|wall|all|of|_it|x’s|é|.|:|\n|,|false|wrong"
).split("|")
DENYING_TEXTS = st.lists(st.sampled_from(DENIALS), max_size=8).flatmap(
    lambda parts: st.sampled_from([" ", " . ", ".\n"]).map(lambda between: between.join(parts))
)


@given(DENYING_TEXTS, st.sampled_from([_FORWARD, _NEAR_BY, _BACKWARD]))
def test_what_takes_back_begins_with_one_of_its_words(text: str, pattern: re.Pattern[str]):
    outline = Outline(text)
    part = (0, len(outline.text))
    looked = [one.span() for one in _all_in(pattern, text, part, _beginnings_in(outline))]
    assert looked == [one.span() for one in _all_in(pattern, text, part, None)]


DESIGNATING = (
    "size row no. nr. NO. jan_1 january may Flight foo.row case. item # \t #5 12 (step **gate unit é"
    " größe . , - ' _row row_ \u00a0 x9 seat# lane#\u00a0 of the"
).split(" ")


@given(
    st.lists(st.sampled_from(DESIGNATING) | st.sampled_from(["\n", " ", "  "]), max_size=9),
    st.integers(0, 40),
)
def test_a_word_that_designates_stands_right_before_the_number(parts: list[str], start: int):
    for text in ("".join(parts), " ".join(parts)):
        end = min(start, len(text))
        found = _DESIGNATED.search(text, max(0, end - 14), end)
        assert is_designated(text, end) is (found is not None)


COMPARISONS = "more than the als|compared with|vs. **|gegenüber der |más caro que el |plus que|cats"


@given(st.lists(st.sampled_from(COMPARISONS.split("|")), max_size=5).map(" ".join))
def test_what_is_compared_stands_after_a_word_that_compares(text: str):
    found = any(_THAN.search(text, 0, at) for at in range(len(text) + 1))
    assert not (found and _SET_AGAINST.isdisjoint(Outline(text).words))


RESULTS = st.recursive(
    st.integers(0, 2),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from("abc"), inner, min_size=1, max_size=3)
    ),
    max_leaves=14,
)


@given(st.lists(RESULTS, min_size=1, max_size=2), st.data())
def test_kin_are_those_that_hold_each_other(results: list[object], data: st.DataObject):
    served = [Served(at, None, {"r": one}, None, False, ()) for at, one in enumerate(results)]
    tree = RecordTree(served)
    records = data.draw(
        st.lists(st.sampled_from(tree.records), min_size=1, max_size=3, unique=True)
    )
    subject = RecordSubject(tuple(records))
    kin = [one for one in tree.fields if any(record.is_kin(one.record) for record in records)]
    assert find_all_kin(tree.fields, subject) == kin
    assert find_kin(tree.fields, subject) is (kin[0] if kin else None)
    assert find_first_and_all_kin(tree.fields, subject) == (kin[0] if kin else None, kin)


@given(
    st.builds(
        str.__add__,
        st.text("abcdeilmnorstuvxyz", min_size=1, max_size=7),
        st.sampled_from(["", "s", "es", "ed", "ing", "ly", "ies", "ied", "ation", "able", "er"]),
    )
)
def test_stems_begin_as_their_words_do(word: str):
    stemmed = root(word)
    begins = stemmed[:2] == word[:2] or stemmed == word[:1]
    assert begins or word.endswith("ying")


@given(st.integers(1, 31), st.sampled_from(WORDS_AFTER_DAYS), st.sampled_from(["", " 2024", " 5."]))
def test_what_goes_on_with_a_day_is_a_month(day: int, word: str, rest: str):
    values = find_values(f"{day}. {word}{rest}")
    is_day = bool(values) and values[0].kind == "moment" and values[0].start == 0
    assert may_go_on_with(f"{word}{rest}") or not is_day


@given(
    st.lists(st.tuples(TOLD, st.integers(0, 2)), max_size=4), TOLD, st.sampled_from([None, 0, 1, 2])
)
def test_a_text_that_stands_there_needs_no_index(
    told: list[tuple[str, int]], text: str, turn: int | None
):
    quick, whole = ToldWords(), ToldWords()
    for one, at in told:
        quick.add(one, at)
        whole.add(one, at)
    tokens = tokens_of(text)
    assert quick.holds(tokens, turn) is whole._hold(tokens, turn)


@given(st.text(st.sampled_from("aé€😀\ud800 "), max_size=12), st.sets(st.integers(0, 40)))
def test_offsets_of_many_places_are_those_of_each(text: str, offsets: set[int]):
    data = text.encode("utf-8", "surrogatepass")
    assert char_offsets(text, offsets) == {
        one: one if text.isascii() else len(data[:one].decode("utf-8", "ignore")) for one in offsets
    }


@given(st.text(st.sampled_from("aé€😀\ud800 "), max_size=80))
def test_each_place_has_its_bytes(text: str):
    to_bytes = ByteOffsets(text)
    for at in range(len(text) + 1):
        assert to_bytes(at) == len(text[:at].encode("utf-8", "surrogatepass"))


# Signs, marks, and letters that are no ASCII in ways of their own.
@given(st.text("aB _1-.’–•\u00a0²é\u0301\u0345Ⓐ\u212aİßﬁ世\n", max_size=20))
def test_words_without_a_pattern_are_those_of_the_pattern(text: str):
    plain = blank_signs(text)
    if plain is not None:
        assert len(plain) == len(text)
        for folded in (text.lower(), text.casefold(), fold(text)):
            assert tokens_in(plain) == re.findall(r"\w+", folded)
            assert words_in(plain) == re.findall(r"[^\W_]+", folded)
            assert letters_in(plain) == re.findall(r"[^\W\d_]+", folded)


@given(st.text("ab _É1’", max_size=20))
def test_words_are_placed_where_they_stand(text: str):
    placed = place_words(text)
    found = list(re.finditer(r"[^\W_]+", text))
    ends = map(placed.end_of, range(len(placed.words)))
    assert [one.span() for one in found] == list(zip(placed.starts, ends, strict=True))
    assert [fold(one[0]) for one in found] == placed.words


@given(st.text("ab12 #_-.é世", max_size=30))
def test_words_before_digits_are_those_of_one_pattern(text: str):
    whole = r"(?<![^\W\d_])(?:[^\W\d_]+ ){0,2}[^\W\d_]+[ #]{1,2}\d[\w-]*"
    assert list(_words_and_digits(text)) == re.findall(whole, text)


def test_long_words_before_digits_are_not_cut():
    for size in (26, 27, 38, 39, 40, 78, 79, 80, 81, 200):
        text = f"{'a' * size} {'b' * size} {'c' * size} 12"
        assert list(_words_and_digits(text)) == [text]


OFFERED = st.lists(
    st.sampled_from(
        "Would you like I'll i will CAN let me the if We could to proceed in order please bitte"
        " soll ich por favor möchten sie _would would_ ſhould . ? \n x’".split(" ")
    ),
    max_size=12,
).map(" ".join)


@given(OFFERED)
def test_offers_begin_with_their_words(text: str):
    outline = Outline(text)
    for sentence in outline.sentences:
        is_offer = _PROPOSED.search(outline.text, *sentence) is not None
        assert outline._proposes(_PROPOSED, *sentence) is is_offer


STATED = st.lists(
    st.sampled_from(
        "in transit IN-TRANSIT in_transit Aller retour one way cancelled Cancelled, pending review"
        " under x on hold en cours d'examen refuſed éCHOUÉ no response".split(" ")
    ),
    max_size=8,
).map(" ".join)


@given(STATED)
def test_states_are_those_of_one_pattern(text: str):
    either = "|".join(
        re.escape(name).replace(r"\ ", r"[\s_-]") for name in sorted(_STATES, key=len, reverse=True)
    )
    whole = re.compile(rf"(?<!\w)(?:{either})(?!\w)", re.IGNORECASE)
    for place in range(len(text)):
        found, wanted = _match_state(text, place), whole.match(text, place)
        assert (found and found.span()) == (wanted and wanted.span())


@given(st.text('a .!?…。！*_"”\n', max_size=16))
def test_ends_of_sentences_are_those_of_the_plain_pattern(text: str):
    plain = r"(?<![.!?…])[.!?…]++[*_]*+(?=\s|$)|[。！？]++(?![\"'”’»›)\]}`」』）】〉》])[*_]*+"
    assert [one.span() for one in _END.finditer(text)] == [
        one.span() for one in re.finditer(plain, text)
    ]


@given(st.text("Aab É ’@/.-ß1_", max_size=16))
def test_names_are_those_of_the_plain_pattern(text: str):
    plain = rf"(?<![\w/@.-]){_CAPITAL}(?:[ ]{_CAPITAL}){{1,3}}(?![\w@/-])"
    assert [one.span() for one in NAMES.finditer(text)] == [
        one.span() for one in re.finditer(plain, text)
    ]


BROKEN = st.lists(
    st.sampled_from([*", ; ( ) - – 1 x but However and or the It i İt SHE ſhe".split(), " ", "\n"]),
    max_size=12,
).map("".join)


@given(BROKEN)
def test_clauses_break_where_the_plain_pattern_does(text: str):
    plain = re.compile(
        r";|\s[-–—]\s|[()]|,?\s+\b(?:but|however|although|though|whereas|while|except)\b"
        r"|,\s+(?=(?:and\s+)?(?:there|it|they|which|who|the|this|these|you|we|i|he|she)\b"
        r"(?!\s+(?:and|or)\b))",
        re.IGNORECASE,
    )
    assert [one.span() for one in _BREAK.finditer(text)] == [
        one.span() for one in plain.finditer(text)
    ]


TOKENS = st.lists(
    st.sampled_from(
        [*"a é 1 23 _ - . ' \" ` # “ ” ² $ & \\ : / @".split(), "http://x.co", "a.com", "x@y.de"]
    ),
    max_size=10,
).map("".join)


@given(TOKENS, st.tuples(st.booleans(), st.booleans(), st.booleans()))
def test_no_token_begins_inside_a_word_but_those_that_may(
    text: str, signs: tuple[bool, bool, bool]
):
    at, scheme, domain = signs
    plain = (_HTTP if scheme or domain else "") + (_EMAIL if at else "")
    plain += (_DOMAIN if domain else "") + _REST
    token, _ = _compile(True, at, scheme, domain, True)
    assert [(one.span(), one.lastgroup) for one in token.finditer(text)] == [
        (one.span(), one.lastgroup) for one in re.finditer(plain, text)
    ]
