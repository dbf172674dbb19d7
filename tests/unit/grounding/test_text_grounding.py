"""Grounding in text leaves: whole leaves, lines, sentences, runs; boundaries in many scripts."""

import unicodedata

import pytest
from tests.unit.grounding.asking import lax, paths, strict

FOX = "the quick brown fox jumps over the lazy dog near our old river bank"


@pytest.mark.parametrize(
    ("span", "leaf"),
    [
        ("The capital is Paris", "Paris"),
        ("the capital is PARIS!", "Paris"),
        ("Paris", "Paris"),
        ("(Paris)", "Paris"),
        ("Paris-based", "Paris"),
        ("It is rope   precision here", "Rope Precision"),
        ("It is rope\u00a0precision", "rope precision"),
        ("Paris is nice", "Paris is nice."),
        ("He said hello, world and left", "Hello, world!"),
        ("We like New York City", "New\n  York\tCity"),
        ("Die STRASSE ist lang", "Straße"),
        ("Die Straße ist lang", "STRASSE"),
        ("Un cafe\u0301 noir", "café"),
        ("Un café noir", "cafe\u0301"),
        ("the key is foo-bar", "foo"),
        ("abc", "abc"),
        ("日本の首都は東京都です", "東京都"),
        ("これは東京タワーの話", "東京タワー"),
        ("เมืองหลวงคือกรุงเทพมหานคร", "กรุงเทพ"),
        ("राजधानी दिल्ली है", "दिल्ली"),
        ("العاصمة هي القاهرة.", "القاهرة"),
        ("Столица — Москва", "МОСКВА"),
        ("η Αθήνα είναι", "ΑΘΉΝΑ"),
        ("İstanbul güzel", "İstanbul"),
    ],
)
def test_a_whole_leaf_grounds_at_token_boundaries(span, leaf):
    assert lax(span, {"x": leaf})
    assert lax(unicodedata.normalize("NFD", span), {"x": leaf})


@pytest.mark.parametrize(
    ("span", "leaf"),
    [
        ("a comparison", "Paris"),
        ("Parisian life", "Paris"),
        ("foo_bar", "foo"),
        ("abc1", "abc"),
        ("1abc", "abc"),
        ("दिल्ली", "दिल"),
        ("القاهرة", "قاهرة"),
        ("cafés", "café"),
        ("cafe", "café"),
        ("naïveté", "naïve"),
        ("something else", "Paris"),
        ("", "Paris"),
        ("Paris", "Paris is nice"),
    ],
)
def test_a_leaf_is_not_found_inside_a_word_or_in_part(span, leaf):
    assert not lax(span, {"x": leaf})


@pytest.mark.parametrize(
    ("span", "leaf"),
    [
        ("a cat", "a"), ("it is ok", "ok"), ("look", "ok"), ("everything", "thing"), ("the cat", "the"),
        ("this is it", "this is"), ("and then", "and"), ("nicht und", "und"), ("das ist nicht gut", "das ist"),
        ("los perros", "los"), ("les chats sont", "les"), ("para el perro", "para el"), ("dans une ville", "dans une"),
        ("anything", ""), ("anything at all", "   "), ("anything at all", "\n\t"), ("it -- was", "--"), ("...", "..."),
        ("[]", "[]"), ("東京 is", "東"), ("I, a", "I a"),
    ],
)  # fmt: skip
def test_short_empty_and_stop_word_leaves_ground_nothing(span, leaf):
    assert not lax(span, {"x": leaf})


def test_d16_a_value_inside_another_word_or_number_is_no_match():
    for span in ("13", "30", "2023", "300", "3.5", "x3", "0.3", "1,003"):
        assert not lax(f"there are {span} of them", {"count": 3}), span
    assert not lax("a cat", {"x": "a"})
    assert not lax("look here", {"x": "ok"})
    assert not lax("everything", {"x": "thing"})
    assert lax("there are 3 of them", {"count": 3})


def test_d17_booleans_and_null_ground_nothing():
    for leaf in (True, False, None):
        for word in (
            "true",
            "True",
            "false",
            "False",
            "null",
            "None",
            "none",
            "1",
            "0",
            "yes",
            "no",
        ):
            assert not lax(f"it is {word} that", {"ok": leaf}), (leaf, word)


def test_d18_lists_and_objects_are_walked_to_their_leaves():
    result = {
        "ok": True,
        "hits": [{"title": "Rope basics", "snippet": "RoPE rotates pairs of features", "n": [7]}],
    }
    assert lax("It says RoPE rotates pairs of features", result)
    assert strict("It says RoPE rotates pairs of features", result)
    assert paths("see Rope basics", result) == [(0, "/hits/0/title")]
    assert paths("it is 7", result) == [(0, "/hits/0/n/0")]
    for empty in ([], {}, [[]], [{}]):
        for span in ("[]", "{}", "it is [] there", "anything"):
            assert not lax(span, {"hits": empty}), (span, empty)


def test_d20_the_same_key_in_two_results_is_two_pieces_of_evidence():
    results = {"summary": "green apples"}, {"summary": "yellow pears"}
    assert paths("these are green apples", *results) == [(0, "/summary")]
    assert paths("these are yellow pears", *results) == [(1, "/summary")]


def test_d23_a_white_space_value_grounds_nothing():
    for leaf in (" ", "", "\t\n", "\u00a0", "\u200b", "\u3000", "\ufeff"):
        for span in ("anything", "a b", "", " ", "5"):
            assert not lax(span, {"summary": leaf}), (leaf, span)
            assert not strict(span, {"summary": leaf})


def test_d29_unicode_forms_and_cases_are_one():
    assert lax("le cafe\u0301 noir", {"x": "café"})
    assert lax("die STRASSE", {"x": "Straße"})
    assert lax("ﬁnal answer", {"x": "final answer"}) in (
        True,
        False,
    )  # NFC keeps ligatures, casefold opens them
    assert not lax("9007199254740992", {"x": 9007199254740993})
    assert not lax("9007199254740993", {"x": 9007199254740992})


def test_d30_words_are_not_rewritten_and_every_list_element_is_evidence():
    assert not lax("this is supported", {"x": "enabled"})
    assert not lax("this is enableed", {"x": "supported"})
    results = {"results": ["alpha one", "beta two", "gamma three", "delta four", 55]}
    assert lax("see delta four", results)
    assert lax("see 55", results)


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        ("It says second line here", True),
        ("It says SECOND   line here.", True),
        ("First line of the file", True),
        ("third one", True),
        ("second line", False),
        ("line here third", False),
    ],
)
def test_a_line_of_a_longer_leaf_grounds(span, expected):
    content = (
        "First line of the file\r\n  second line here\n\nthird one\nand a last one that is longer"
    )
    assert lax(span, {"content": content}) is expected


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        ("We know it was built early", True),
        ("the tower is tall", True),
        ("is it old", True),
        ("the tower is", False),
        ("was built", False),
    ],
)
def test_a_sentence_of_a_longer_leaf_grounds(span, expected):
    assert (
        lax(span, {"text": "The tower is tall. It was built early! Is it old? Nobody can say."})
        is expected
    )


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        ("we saw quick brown fox jumps over there", True),
        ("quick, brown fox jumps over", True),
        ("QUICK brown fox JUMPS over", True),
        ("we saw quick brown fox jumps", False),
        ("brown fox jumps over", False),
        ("quick brown red fox jumps over", False),
        ("uick brown fox jumps ove", False),
        ("near our old river bank", True),
        ("bank river old our near", False),
    ],
)
def test_a_run_of_five_tokens_of_a_longer_leaf_grounds(span, expected):
    if span == "quick, brown fox jumps over":
        assert lax(span, {"text": "a quick, brown fox jumps over the dog"})
    else:
        assert lax(span, {"text": FOX}) is expected


def test_an_unsupported_value_blocks_lines_sentences_and_runs_but_not_whole_leaves():
    line = {"content": "Revenue grew strongly there\nCosts fell a little"}
    assert lax("Revenue grew strongly there", line)
    assert not lax("Revenue grew strongly there by 55", line)
    assert lax("Revenue grew strongly there by 55", line, said=["by 55"])
    sentence = {"text": "Revenue grew strongly there. Costs fell."}
    assert not lax("Revenue grew strongly there by 55", sentence)
    assert not lax("quick brown fox jumps over 55 dogs", {"text": FOX})
    assert lax("quick brown fox jumps over my dogs", {"text": FOX})
    assert lax("Revenue grew strongly there by 55", {"summary": "Revenue grew strongly there"})
    mixed = {"content": "Revenue grew strongly there\nCosts fell by 55 points"}
    assert lax("Revenue grew strongly there by 55", mixed)


def test_a30_a_quoted_snippet_of_a_hit_is_grounded():
    result = {
        "ok": True,
        "hits": [
            {
                "title": "RoPE precision notes",
                "snippet": "RoPE loses precision at long context in bf16.",
                "url": "https://example.com/rope",
            }
        ],
    }
    assert lax("RoPE loses precision at long context in bf16", result)
    assert strict("RoPE loses precision at long context in bf16", result)
    assert lax("as RoPE precision notes put it", result)
    assert lax("see https://example.com/rope", result)
    assert not lax("RoPE gains precision at short context in fp32", result)


def test_a31_one_line_of_a_file_is_grounded():
    result = {
        "ok": True,
        "content": "# Title\n\nInstall with make setup first.\nRun make test after it.\n",
    }
    assert lax("Install with make setup first", result)
    assert strict("Run make test after it", result)
    assert not lax("Install with make", result)


@pytest.mark.parametrize(
    ("span", "leaf", "expected"),
    [
        ("Order HAT 023 is here", "HAT023", True),
        ("Order HAT-023 is here", "HAT023", True),
        ("Order hat_023 is here", "HAT-023", True),
        ("Order HAT023 is here", "HAT 023", True),
        ("Order HAT 023 is here", "HAT-023", True),
        ("Order #HAT023 is here", "HAT-023", True),
        ("Order HAT 024 is here", "HAT023", False),
        ("Order HAT 0234 is here", "HAT023", False),
        ("Order HAT 02 is here", "HAT023", False),
        ("Order XHAT023 is here", "HAT023", False),
        ("Order CHAT 023 is here", "HAT023", False),
        ("Order HAT023B is here", "HAT023", False),
        ("Order HAT023 is here", "HAT023B", False),
        ("Use snake_case_name here", "snake_case_name", True),
        ("Use snake_case here", "snake_case_name", False),
        ("Flight LH 1234 leaves", "LH1234", True),
        ("Commit a1b2c3d is good", "a1b2c3d", True),
        ("Commit a1b2c3e is good", "a1b2c3d", False),
    ],
)
def test_identifiers_match_whatever_joins_their_groups(span, leaf, expected):
    assert lax(span, {"id": leaf}) is expected


def test_identifiers_inside_a_text_leaf_are_evidence():
    assert lax("It is ORD-7781", {"text": "Your order ORD7781 has been shipped today"})
    assert not lax("It is ORD-7782", {"text": "Your order ORD7781 has been shipped today"})


def test_leaf_numbers_are_not_read_out_of_words():
    assert not lax("there are 42", {"file": "file42"})
    assert not lax("there are 42", {"file": "data_42.csv"})
    assert not lax("version 3", {"x": "v3"})


def test_only_a_long_run_of_digits_stands_for_its_identifier():
    """People quote `certificate_7504069` as 7504069; 406 of `gate_406` may be anything."""
    assert lax("the number is 7504069", {"id": "certificate_7504069"})
    assert not lax("the number is 504069", {"id": "certificate_7504069"})
    assert not lax("the number is 406", {"id": "gate_406"})


def test_a_text_match_does_not_lose_the_sign_of_its_number():
    assert not lax("it had -3 apples", {"x": "3 apples"})
    assert lax("it had 3 apples", {"x": "3 apples"})
