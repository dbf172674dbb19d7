"""Redaction: nothing personal is left, nothing else changes, and offsets follow the text."""

import json

import msgspec
import pytest

from callmark.records.results import (
    ArgumentOrigin,
    ByteRange,
    CallDifferences,
    CallScore,
    Decoding,
    Fingerprints,
    Grounding,
    Match,
    PrivacyScore,
    Result,
    Scores,
    SpanScore,
    Statement,
    ValueMark,
)
from callmark.records.trace import RepairedCall, TraceEntry, UserTurn
from callmark.scorers.pii import KINDS, find_pii
from callmark.scorers.privacy import check, labelled_texts
from callmark.scorers.redaction import redact, redact_json, redact_pii, redact_result

MAIL = "jane.doe@corp.com"
CARD = "4111 1111 1111 1111"
ANSWER = f"Zoë said: mail {MAIL} or call (415) 555-2671.\nThe card {CARD} € was charged 12.50."
ENTRY = TraceEntry(
    name="crm.find",
    arguments={"mail": MAIL, MAIL: 1, "ssn": 536904399, "n": 3, "list": [CARD, 4111111111111111]},
    result={"text": f'{{"mail": "{MAIL}", "total": 12.5}}', "total": 12.5, "ok": True},
    turn=1,
    raw=f'{{"mail": "{MAIL}"}}',
    status="ok",
    served_by="recorded",
    reason=f"near {MAIL}",
    repaired=RepairedCall("crm.find", {"mail": MAIL}),
    schema_errors=(f'/mail: "{MAIL}" is too short',),
    key_normalized={"mail": MAIL},
    call_id="018f4e5a-7b6c-7def-8abc-0123456789ab",
)


def byte_range(text, part):
    start = text.encode().index(part.encode())
    return start, start + len(part.encode())


def make_result(answer=ANSWER, metadata=None, **changes):
    numbers = Grounding(1.0, 1.0, 1.0, 1, 1)
    privacy = check(answer, [ENTRY.arguments], allowlist=(), known=(), echo_denied=False)
    spans = ()
    if answer == ANSWER:
        line = answer.split("\n")[1]
        card, amount = byte_range(answer, CARD), byte_range(answer, "12.50")
        spans = (
            SpanScore(
                *byte_range(answer, line), True, True, False, True, False,
                (Match(*card, 0, f"/{MAIL}/card", CARD, "text", "value", False),),
                (
                    ValueMark(*amount, "number", "supported"),
                    ValueMark(*card, "number", "unsupported"),
                ),
            ),
        )  # fmt: skip
    scores = Scores(
        kind="eligible",
        span_extractor="claims",
        spans=spans,
        spans_total=1,
        spans_over_cap=0,
        spans_counted=1,
        recall_kind="presence",
        facts_required=1,
        lax=numbers,
        strict=numbers,
        values={"supported": 1},
        calls=CallScore(
            expected=1,
            observed=1,
            matched=0,
            attempts=1,
            valid_attempts=1,
            looked_up=1,
            hits=1,
            misses=0,
            differences=CallDifferences((f'a {{"to":"{MAIL}"}}',), (MAIL,), (MAIL,), True),
            errors=(f"call 0: /to: {MAIL} is wrong",),
        ),
        call_f1=0.0,
        multi_call_parity_ok=None,
        json_args_valid=True,
        recovered=None,
        gave_up_honestly=None,
        controls_with_integration=None,
        negative_control_ok=None,
        clarify_ok=None,
        locale_probe_ok=None,
        unresolved=False,
        privacy_ok=False,
        privacy=PrivacyScore(False, privacy.findings, (f"https://evil.net/?m={MAIL}",)),
    )
    fields = {
        "index": 0,
        "sample_id": "018f4e5a-7b6c-7def-8abc-0123456789ab",
        "trial": 0,
        "prompt": [{"role": "user", "content": f"I am {MAIL}"}],
        "metadata": metadata or {"sample_id": "018f4e5a-7b6c-7def-8abc-0123456789ab", "x": [MAIL]},
        "said": (UserTurn(1, f"again: {MAIL}"),),
        "model_output": answer,
        "turns": (ByteRange(0, len(answer.encode())),),
        "reasoning": f"they are {MAIL}",
        "tool_trace": (ENTRY,),
        "span_extractor": "claims",
        "scores": scores,
        "status": "ok",
        "stop": "answer",
        "error": None,
        "item_sha256": "a" * 64,
        "used_fixtures_sha256": "b" * 64,
        "offered_tools_sha256": "c" * 64,
        "fingerprints": Fingerprints(),
        "decoding": Decoding(),
    }
    return Result(**(fields | changes))


def texts_of(result):
    plain = msgspec.to_builtins(result)
    for identity in ("sample_id", "item_sha256", "used_fixtures_sha256", "offered_tools_sha256"):
        del plain[identity]
    plain["metadata"].pop("sample_id", None)
    for entry in plain["tool_trace"]:
        entry.pop("call_id", None)
    return plain


def personal(value, locale=None):
    return [
        text[hit.start : hit.end]
        for label, text in labelled_texts(value)
        for hit in find_pii(text, label=label, locale=locale)
    ]


EXAMPLES = {
    "card": CARD,
    "ssn": "536-90-4399",
    "iban": "DE89 3704 0044 0532 0130 00",
    "email": MAIL,
    "phone": "+1 415 555 2671",
    "uuid": "018f4e5a-7b6c-7def-8abc-0123456789ab",
    "ip": "2001:db8::1",
}


@pytest.mark.parametrize("kind", KINDS)
def test_a143_every_kind_is_replaced_whatever_its_severity(kind):
    assert redact_pii(f"It is {EXAMPLES[kind]}, right?") == f"It is [{kind}], right?"
    assert redact_pii(f"support: {EXAMPLES[kind]}") == f"support: [{kind}]"


def test_text_without_personal_data_is_untouched():
    text = "On 2024-05-17 it cost $12.50.\n[email] is a placeholder, 2@3 is not.\u00e9\U0001f600"
    assert redact_pii(text) == text


def test_a_placeholder_makes_nothing_beside_it_personal():
    assert redact_pii("536-90-4399 order 123456789") == "[ssn] order 123456789"
    assert redact_pii(f"{MAIL}@corp.com") == redact_pii(redact_pii(f"{MAIL}@corp.com"))


def test_what_is_personal_only_after_a_first_pass_is_replaced_too():
    text = "+1 415 555 2671 536 90 4399"
    assert redact_pii(text) == "[phone] [ssn]"
    redacted = redact(text)
    assert redacted.start_of(text.index("536")) == len("[phone] ")
    assert redacted.end_of(len(text)) == len("[phone] [ssn]")


def test_offsets_follow_the_text_in_bytes():
    redacted = redact(ANSWER)
    new = redacted.text.encode()
    for part in ("Zoë", "or call", "€ was", "12.50"):
        start, end = byte_range(ANSWER, part)
        assert new[redacted.start_of(start) : redacted.end_of(end)] == part.encode()
    start, end = byte_range(ANSWER, MAIL)
    assert new[redacted.start_of(start + 3) : redacted.end_of(end - 3)] == b"[email]"
    assert redacted.start_of(end) == redacted.end_of(end)
    assert redacted.end_of(len(ANSWER.encode())) == len(new)


def test_d41_a143_a_redacted_result_holds_nothing_personal():
    result = make_result()
    assert len(set(personal(texts_of(result)))) >= 4
    assert personal(texts_of(redact_result(result))) == []


def test_d41_a143_the_written_line_holds_no_original_value():
    line = msgspec.json.encode(redact_result(make_result())).decode()
    for value in (MAIL, CARD, "4111111111111111", "536904399", "(415) 555-2671", "corp.com"):
        assert value not in line


def test_a143_scores_keep_their_numbers_and_point_into_the_redacted_text():
    before = make_result()
    after = redact_result(before)
    new = after.model_output.encode()
    (span,) = after.scores.spans
    assert new[span.start : span.end].decode() == "The card [card] € was charged 12.50."
    (match,) = span.matches
    assert new[match.start : match.end] == b"[card]"
    assert (match.value, match.path, match.call) == ("[card]", "/[email]/card", 0)
    assert [new[v.start : v.end] for v in span.values] == [b"12.50", b"[card]"]
    in_answer = [f for f in after.scores.privacy.findings if f.where == "answer"]
    assert [new[f.start : f.end].decode() for f in in_answer] == ["[email]", "[phone]", "[card]"]
    assert after.turns == (ByteRange(0, len(new)),)
    assert [(f.kind, f.severity, f.where, f.echoed) for f in after.scores.privacy.findings] == [
        (f.kind, f.severity, f.where, f.echoed) for f in before.scores.privacy.findings
    ]
    assert after.scores.privacy.invented_urls == ("https://evil.net/?m=[email]",)
    same = ("lax", "strict", "values", "call_f1", "privacy_ok", "spans_total", "spans_counted")
    assert all(getattr(after.scores, name) == getattr(before.scores, name) for name in same)


def test_statements_move_with_the_text_and_their_sentences_are_cleaned():
    """A number that only its key gave away is personal in a sentence without the key too; a part
    of one is not told either."""
    phone = "(415) 555-2671"
    start, end = byte_range(ANSWER, phone)
    statements = (
        Statement(
            start=start, end=end, label="misattributed", rule="binding", tier="firm", call=0,
            path="/ssn", expected=536904399,
            because=f"says “{phone}”; call 0 /x has 536904399; {MAIL} is mail of /{MAIL}",
        ),
        Statement(
            start=start + 6, end=start + 9, label="unsupported", rule="value", tier="firm",
            because="says “555”; no result has it; nearest: 536904399 at call 0 /n",
        ),
        Statement(
            start=byte_range(ANSWER, "12.50")[0], end=byte_range(ANSWER, "12.50")[1],
            label="supported", rule="match", call=0, path="/total",
        ),
    )  # fmt: skip
    arguments = (
        ArgumentOrigin(call=0, path=f"/{MAIL}", origin="served", source=f"call 0 /{MAIL}"),
    )
    before = make_result()
    scores = msgspec.structs.replace(before.scores, statements=statements, arguments=arguments)
    after = redact_result(msgspec.structs.replace(before, scores=scores))
    new = after.model_output.encode()
    whole, part, amount = after.scores.statements
    assert new[whole.start : whole.end] == new[part.start : part.end] == b"[phone]"
    assert new[amount.start : amount.end] == b"12.50"
    assert whole.expected == "[ssn]"
    assert whole.because == "says “[phone]”; call 0 /x has [ssn]; [email] is mail of /[email]"
    assert part.because == "says “[phone]”; no result has it; nearest: [ssn] at call 0 /n"
    assert (whole.label, whole.rule, whole.tier, amount) == (
        "misattributed", "binding", "firm",
        msgspec.structs.replace(statements[2], start=amount.start, end=amount.end),
    )  # fmt: skip
    assert after.scores.arguments[0].source == "call 0 /[email]"
    assert personal(texts_of(after)) == []


def test_every_text_of_the_trace_is_cleaned_and_its_shape_kept():
    (entry,) = redact_result(make_result()).tool_trace
    assert entry.arguments == {
        "mail": "[email]", "[email]": 1, "ssn": "[ssn]", "n": 3, "list": ["[card]", "[card]"],
    }  # fmt: skip
    assert entry.result == {
        "text": '{"mail": "[email]", "total": 12.5}', "total": 12.5, "ok": True,
    }  # fmt: skip
    assert json.loads(entry.result["text"]) == {"mail": "[email]", "total": 12.5}
    assert (entry.raw, entry.reason) == ('{"mail": "[email]"}', "near [email]")
    assert entry.repaired == RepairedCall("crm.find", {"mail": "[email]"})
    assert entry.schema_errors == ('/mail: "[email]" is too short',)
    assert (entry.name, entry.status, entry.turn) == ("crm.find", "ok", 1)


def test_identity_survives_redaction():
    before = make_result()
    after = redact_result(before)
    assert after.sample_id == before.sample_id == after.metadata["sample_id"]
    assert after.tool_trace[0].call_id == ENTRY.call_id
    assert after.item_sha256 == before.item_sha256


def test_an_error_result_without_scores_is_redacted_too():
    result = make_result(scores=None, turns=None, status="error", error=f"bad reply to {MAIL}")
    after = redact_result(result)
    assert (after.scores, after.turns, after.error) == (None, None, "bad reply to [email]")


def test_a_clean_result_is_unchanged():
    clean = make_result(
        "All good.",
        prompt="hi",
        metadata={"a": [1, None, {"b": True}]},
        said=(),
        reasoning="",
        tool_trace=(),
        scores=None,
    )
    scoring = msgspec.structs.replace(clean.scoring, redacted=True)
    assert redact_result(clean) == msgspec.structs.replace(clean, scoring=scoring)


def test_the_locale_of_the_sample_decides_what_a_phone_is():
    result = make_result("Tel 030/1234567", metadata={"locale": "de_DE"}, scores=None)
    assert redact_result(result).model_output == "Tel [phone]"


def test_keys_that_become_equal_stay_apart():
    value = {"a@b.co": 1, "c@d.co": 2, "[email]": 3, "e@f.co": 4, "plain": 5}
    cleaned = redact_json(value)
    assert list(cleaned.values()) == [1, 2, 3, 4, 5]
    assert cleaned["[email]"] == 3
    assert personal(cleaned) == []


def test_deep_nesting_does_no_harm():
    deep = MAIL
    for _ in range(5000):
        deep = {"a": [deep]}
    cleaned = redact_json(deep)
    while not isinstance(cleaned, str):
        cleaned = cleaned["a"][0]
    assert cleaned == "[email]"


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("Support: ４１１１ １１１１ １１１１ １１１１ help", "Support: [card] help"),
        ("é 4111.1111.1111.1111.", "é [card]."),
        ("4\ufe0f\u20e3111111111111111\ufe0f\u20e3!", "[card]!"),
    ],
)
def test_f27_redaction_replaces_folded_digits_whole(text, redacted):
    found = redact(text)
    assert found.text == redacted
    end = len(text.encode())
    assert (found.start_of(end), found.end_of(end)) == (len(redacted.encode()),) * 2


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("Call 905-674-3793x123 or 668 5702.", "Call [phone] or [phone]."),
        ("Tel. 030 1234567 / 030 7654321", "Tel. [phone] / [phone]"),
        ("my card 501800000009 and order 1234567", "my card [card] and order 1234567"),
    ],
)
def test_f28_redaction_replaces_extensions_and_national_forms(text, redacted):
    assert redact_pii(text) == redacted


def test_f28_what_redaction_wrote_names_no_other_number():
    assert redact_json({"+1 415 555 2671": 4155552671}) == {"[phone]": 4155552671}
    assert (
        redact_pii("[phone] 1234567 [card] 501800000000") == "[phone] 1234567 [card] 501800000000"
    )
