"""What a cheap look leaves out: the scan behind it would have found nothing."""

from hypothesis import given
from hypothesis import strategies as st

from callmark.calls.formats import FORMATS
from callmark.calls.ledger import _MAY_HOLD_CALL, PLAIN_WORDS, TurnText, read_turn
from callmark.calls.unparsed import find_unparsed
from callmark.grounding.dates import find_moments
from callmark.grounding.deeds import find_deeds
from callmark.grounding.spans import Outline
from callmark.grounding.values import _MAY_BE_MOMENT
from callmark.scorers.pii import find_pii
from callmark.scorers.privacy import _may_be_personal
from callmark.scorers.statements import _may_tell_deeds

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
