"""Precision, recall and F1 of one trial, lax and strict, for both extractors."""

import pytest
from tests.unit.grounding.asking import call, claims, item, score, span_texts


def prf(scores, which="lax"):
    return tuple(round(scores[which][name], 4) for name in ("precision", "recall", "f1"))


def test_a3_one_grounded_span_is_perfect_lax_and_strict():
    scores = score("Integration: there are 42.", call({"count": 42}))
    assert prf(scores) == prf(scores, "strict") == (1, 1, 1)
    assert (scores["recall_kind"], scores["facts_required"], scores["spans_counted"]) == (
        "presence",
        1,
        1,
    )


def test_a3_strict_falls_where_the_key_is_not_strict():
    scores = score("Integration: there are 42.", call({"elsewhere": 42}))
    assert prf(scores) == (1, 1, 1)
    assert prf(scores, "strict") == (0, 0, 0)


def test_a3_counts_are_kept_for_pooling():
    scores = score(
        "Integration: 42.\nIntegration: 43.\nIntegration: 77.", call({"count": 42, "foo": 43})
    )
    assert (scores["lax"]["grounded"], scores["lax"]["found"]) == (2, 1)
    assert (scores["strict"]["grounded"], scores["strict"]["found"]) == (1, 1)
    assert prf(scores) == (0.6667, 1, 0.8)
    assert prf(scores, "strict") == (0.3333, 1, 0.5)


def test_d31_without_facts_recall_is_presence_and_says_so():
    scores = score("Integration: 42.\nIntegration: 77.\nIntegration: 78.", call({"count": 42}))
    assert (prf(scores), scores["recall_kind"]) == ((0.3333, 1, 0.5), "presence")


def test_d20_two_calls_with_one_key_both_ground():
    answer = "Integration: green apples.\nIntegration: yellow pears."
    scores = score(answer, call({"summary": "green apples"}), call({"summary": "yellow pears"}))
    assert prf(scores) == prf(scores, "strict") == (1, 1, 1)
    assert [span["matches"][0]["call"] for span in scores["spans"]] == [0, 1]


def test_d21_one_grounding_serves_every_number():
    answer = "Integration: enabled and 13.\nIntegration: 42."
    scores = score(answer, call({"count": 42, "state": "supported", "n": 3}))
    assert [span["lax"] for span in scores["spans"]] == [False, True]
    assert scores["lax"]["grounded"] == 1


@pytest.mark.parametrize("extractor", ["marker", "claims"])
@pytest.mark.parametrize("answer", ["", None, "I do not know.", "Integration:"])
def test_d32_an_eligible_sample_without_a_span_scores_zero(answer, extractor):
    for calls in ([], [call({"count": 42})]):
        scores = score(answer, *calls, span_extractor=extractor)
        assert scores["kind"] == "eligible"
        assert prf(scores) == prf(scores, "strict") == (0, 0, 0)
        assert (scores["spans_counted"], scores["facts_required"], scores["lax"]["found"]) == (
            0,
            1,
            0,
        )


def test_d32_the_dataset_decides_who_is_eligible():
    assert score("", of=item())["kind"] == "eligible"
    assert score("", of=item(call_sequence=[]))["kind"] == "unclassified"
    assert score("", call({"n": 1}), of=item(call_sequence=[]))["kind"] == "unclassified"
    assert (
        score("", of=item(expected_behaviour="retry", call_sequence=[{"name": "x"}]))["kind"]
        == "eligible"
    )


class TestFacts:
    def test_recall_counts_required_facts(self):
        of = item(required_facts=["Paris", 42])
        result = {"summary": "Paris", "count": 42}
        scores = score("Integration: it is Paris.", call(result), of=of)
        assert (prf(scores), scores["recall_kind"], scores["facts_required"]) == (
            (1, 0.5, 0.6667),
            "facts",
            2,
        )
        assert prf(score("Integration: it is Paris with 42.", call(result), of=of)) == (1, 1, 1)
        assert prf(score("Integration: Paris.\nIntegration: 42.", call(result), of=of)) == (1, 1, 1)

    def test_a_fact_that_no_evidence_supports_is_not_found(self):
        of = item(required_facts=["Paris", 42])
        scores = score("Integration: it is Paris with 42.", call({"summary": "Paris"}), of=of)
        assert scores["lax"]["found"] == 1

    def test_a_fact_outside_the_spans_is_not_found(self):
        of = item(required_facts=[42])
        scores = score(
            "There are 42. Integration: about Paris.",
            call({"summary": "Paris", "count": 42}),
            of=of,
        )
        assert scores["lax"]["found"] == 0

    def test_a_fact_beyond_the_cap_is_not_found(self):
        of = item(required_facts=[42])
        answer = "Integration: Paris.\n" * 3 + "Integration: 42."
        result = {"summary": "Paris", "count": 42}
        assert score(answer, call(result), of=of)["lax"]["found"] == 0
        assert score(answer, call(result), of=of, integration_span_cap=4)["lax"]["found"] == 1

    def test_strict_facts_need_a_keyed_leaf(self):
        of = item(required_facts=["Paris", 42])
        scores = score(
            "Integration: it is Paris with 42.", call({"summary": "Paris", "elsewhere": 42}), of=of
        )
        assert (scores["lax"]["found"], scores["strict"]["found"]) == (2, 1)
        assert prf(scores, "strict") == (1, 0.5, 0.6667)

    @pytest.mark.parametrize(
        ("fact", "answer", "result"),
        [
            (1234.5, "it is 1,234.5", {"count": 1234.5}), (0.5, "it is 50 %", {"count": 0.5}), ("HAT-023", "it is HAT 023", {"count": "HAT023"}),
            ("2024-01-05", "on January 5, 2024", {"count": "2024-01-05"}), ("green door", "the Green  Door", {"summary": "green door"}),
            ("42", "it is 42", {"count": 42}), ("https://example.com/docs", "at example.com/docs", {"content": "https://www.example.com/docs"}),
        ],
    )  # fmt: skip
    def test_facts_are_found_by_value(self, fact, answer, result):
        scores = score(f"Integration: {answer}.", call(result), of=item(required_facts=[fact]))
        assert (scores["lax"]["found"], scores["strict"]["found"]) == (1, 1)

    @pytest.mark.parametrize(
        ("fact", "answer"),
        [(3, "it is 13"), ("Paris", "a comparison"), (42, "it is -42"), (4.2, "it is 42")],
    )
    def test_facts_are_not_found_in_other_values(self, fact, answer):
        result = {"count": [3, 13, 42, -42, 4.2], "summary": "Paris"}
        scores = score(f"Integration: {answer}.", call(result), of=item(required_facts=[fact]))
        assert scores["lax"]["found"] == 0

    def test_a_phrase_inside_a_longer_leaf_supports_a_fact(self):
        of = item(required_facts=["green door"])
        scores = score(
            "Integration: the green door.",
            call({"content": "behind the green door there is a room"}),
            of=of,
        )
        assert scores["lax"]["found"] == 1

    def test_facts_work_with_claims(self):
        of = item(required_facts=["Paris", 42, 43])
        answer = "The capital is Paris. It has 42 of them. Nothing more."
        scores = claims(answer, call({"summary": "Paris", "count": 42, "x": 43}), of=of)
        assert (scores["lax"]["found"], scores["facts_required"]) == (2, 3)

    def test_no_span_and_facts_is_zero(self):
        scores = score("Nothing", call({"count": 42}), of=item(required_facts=[42, 43]))
        assert (prf(scores), scores["facts_required"]) == ((0, 0, 0), 2)


class TestClaims:
    def test_precision_counts_sentences_without_an_unsupported_value(self):
        """A number that is a slip away from the leaf is a firm flag."""
        answer = "There are 42817 files. There are 42871 dirs. It is 42817 and 42827."
        scores = claims(answer, call({"count": 42817}))
        assert scores["spans_counted"] == 3
        assert prf(scores) == (0.3333, 1, 0.5)

    def test_a_derived_value_counts(self):
        scores = claims("Together 360.", call({"items": [{"price": 110}, {"price": 250}]}))
        assert prf(scores) == (1, 1, 1)

    def test_a_match_with_a_user_said_value_counts(self):
        scores = claims("There are 42 for 55.", call({"count": 42}), of=item("I have 55"))
        assert prf(scores) == (1, 1, 1)

    def test_sentences_that_only_repeat_the_user_are_left_out(self):
        answer = "You have 55. There are 42."
        scores = claims(answer, call({"count": 42}), of=item("I have 55"))
        assert (scores["spans_counted"], prf(scores)) == (1, (1, 1, 1))

    def test_nothing_but_the_users_words_scores_zero(self):
        scores = claims("You have 55.", call({"count": 42}), of=item("I have 55"))
        assert (scores["spans_counted"], prf(scores)) == (0, (0, 0, 0))

    def test_a_parrot_of_the_prompt_scores_zero(self):
        prompt = "Find flights from Berlin to Oslo on 2024-01-05 below 300 €"
        scores = claims(prompt, call({"hits": [{"price": 180}]}), of=item(prompt))
        assert prf(scores) == (0, 0, 0)

    def test_a_text_match_sentence_counts(self):
        scores = claims("The capital is Paris. I like it.", call({"summary": "Paris"}))
        assert (scores["spans_counted"], prf(scores)) == (1, (1, 1, 1))

    def test_a_text_match_beside_an_invented_value_does_not_count(self):
        result = {"summary": "Paris", "parks": 42817}
        scores = claims("The capital is Paris and it has 42871 parks.", call(result))
        assert prf(scores) == (0, 0, 0)
        assert scores["spans"][0]["matches"]
        assert scores["spans"][0]["lax"] is False

    def test_strict_claims_need_a_keyed_leaf(self):
        scores = claims("There are 42.", call({"elsewhere": 42}))
        assert (prf(scores), prf(scores, "strict")) == ((1, 1, 1), (0, 0, 0))

    def test_markers_do_not_matter_to_claims(self):
        answer = "Integration: there are 42."
        assert prf(claims(answer, call({"count": 42}))) == (1, 1, 1)

    def test_table_cells_and_list_items_are_claims_of_their_own(self):
        answer = "| a | b |\n|---|---|\n| 42817 | 42871 |\n\n- 55203 here\n- 55503 here"
        scores = claims(answer, call({"count": [42817, 55203]}))
        assert (scores["lax"]["grounded"], scores["spans_counted"]) == (2, 4)
        assert len(span_texts(scores, answer)) == 4


def test_a4_a5_coverage_can_be_counted_from_the_spans():
    some = score("Integration: 77.", call({"count": 42}))
    assert (some["spans_total"], any(span["lax"] for span in some["spans"])) == (1, False)
    good = score("Integration: 42.", call({"count": 42}))
    assert any(span["lax"] for span in good["spans"])
    assert score("", call({"count": 42}))["spans_total"] == 0


def test_every_match_records_call_path_value_class_and_bytes():
    answer = "Integration: Ärger mit 42 Äpfeln."
    scores = score(answer, call({"x": 1}), call({"hits": [{"n": 42}]}))
    [match] = scores["spans"][0]["matches"]
    data = answer.encode()
    assert data[match["start"] : match["end"]] == b"42"
    assert (match["call"], match["path"], match["value"], match["cls"], match["strict"]) == (
        1,
        "/hits/0/n",
        42,
        "value",
        True,
    )


def test_a_month_is_not_a_date_that_is_required():
    of = item(required_facts=["2024-01-05"])
    scores = score("Integration: in January 2024.", call({"count": "2024-01-05"}), of=of)
    assert scores["lax"]["found"] == 0
