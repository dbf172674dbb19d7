"""What a cheap look leaves out: the scan behind it would have found nothing."""

from hypothesis import given
from hypothesis import strategies as st

from callmark.calls.formats import FORMATS
from callmark.calls.ledger import _MAY_HOLD_CALL, PLAIN_WORDS, TurnText, read_turn
from callmark.calls.unparsed import find_unparsed
from callmark.grounding.binding import Binder
from callmark.grounding.dates import find_moments
from callmark.grounding.deeds import find_deeds
from callmark.grounding.evidence import Served
from callmark.grounding.match import Said
from callmark.grounding.naming import NAMES, TITLED, GivenNames, KnownWords
from callmark.grounding.polarity import PolarFields
from callmark.grounding.quantifiers import AMOUNT_WORDS, Amounts
from callmark.grounding.ranking import Ranks, Tallies
from callmark.grounding.record_tree import RecordIndex, RecordTree
from callmark.grounding.siblings import SiblingNames
from callmark.grounding.spans import Outline
from callmark.grounding.values import _MAY_BE_MOMENT
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
        ranks = Ranks(tree, binder.all_mentions, [])
        assert list(ranks.wrong_in(outline, binder, lambda _: None)) == []
        assert list(Tallies(tree).wrong_in(outline)) == []
        if not any(" " in name for one in tree.records for name in one.names):
            assert SiblingNames(tree, outline.words).mentions(text, []) == []
