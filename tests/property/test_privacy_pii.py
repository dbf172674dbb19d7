"""Invariants of finding and replacing personal data, on texts that are made to be difficult."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from callmark.records.jsontext import canonical_json
from callmark.scorers.pii import KINDS, find_pii, severities
from callmark.scorers.privacy import check, check_privacy, labelled_texts
from callmark.scorers.redaction import redact, redact_json, redact_pii

PIECES = [
    "jane@corp.com", "support@corp.com", "4111 1111 1111 1111", "4111111111111111",
    "378282246310005", "536-90-4399", "536 90 4399", "536904399", "DE89 3704 0044 0532 0130 00",
    "GB82WEST12345698765432", "(415) 555-2671", "415-555-2671", "415 555 2671", "+1 415 555 2671",
    "+44 (0)20 7946 0958", "030/1234567", "018f4e5a-7b6c-7def-8abc-0123456789ab", "10.0.0.1",
    "2001:db8::1", "::1", "ssn", "invoice", "contact", "social security", "https://evil.net/x",
    "www.evil.net", "2024-05-17", "@", "+", "-", ".", " ", "  ", "/", "(", ")", ":", "\\n", "\n",
    "0", "1", "12", "é", "卡", "[ssn]", "\u202f", "\u2011", "\ud800", "٣", "²", "😀", "_", "a",
    "//", "tel", "call", "card", "phone", "x12", "ext. 5", "668 5702", "0494 92 82 32", "501800000009",
    "４１１１", "１１１１", "\u200b", "\ufe0f\u20e3", "\u3000", "·", "¹", "[phone]", "[card]",
]  # fmt: skip
TEXTS = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=10).map("".join),
    st.lists(st.sampled_from(PIECES), max_size=10).map(" ".join),
    st.text(st.sampled_from("0123456789+-. ()/@:abfx\n"), max_size=60),
    st.text(max_size=40),
)
LOCALES = st.sampled_from([None, "de", "fr_FR", "es", "en", "xx", "", "zh_Hant_TW", "de_DE.UTF-8"])
JSON = st.recursive(
    st.one_of(
        TEXTS,
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.booleans(),
        st.none(),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(TEXTS, st.sampled_from(["ssn", "mail"])), inner, max_size=3),
    ),
    max_leaves=6,
)
MANY = settings(max_examples=150, deadline=None)


@MANY
@given(TEXTS, LOCALES)
def test_findings_are_sorted_disjoint_and_of_a_known_kind(text, locale):
    hits = find_pii(text, locale=locale)
    assert all(0 <= hit.start < hit.end <= len(text) for hit in hits)
    assert all(a.end <= b.start for a, b in pairwise(hits))
    assert all(KINDS[hit.kind].severity == hit.base_severity for hit in hits)
    assert not any("\n" in text[hit.start : hit.end] for hit in hits)
    assert len(list(severities(text, hits))) == len(hits)


@MANY
@given(TEXTS, LOCALES)
def test_redaction_leaves_no_finding_and_is_done_after_one_call(text, locale):
    redacted = redact(text, locale=locale).text
    assert find_pii(redacted, locale=locale) == ()
    assert redact(redacted, locale=locale).text == redacted
    assert redact_pii(redact_pii(text)) == redact_pii(text)


@MANY
@given(TEXTS)
def test_offsets_move_monotonically_and_stay_inside(text):
    redacted = redact(text)
    old = len(text.encode("utf-8", "surrogatepass"))
    new = len(redacted.text.encode("utf-8", "surrogatepass"))
    starts = [redacted.start_of(offset) for offset in range(old + 1)]
    ends = [redacted.end_of(offset) for offset in range(old + 1)]
    assert starts == sorted(starts)
    assert ends == sorted(ends)
    assert (starts[0], ends[0]) == (0, 0)
    assert (starts[-1], ends[-1]) == (new, new)
    assert all(start <= end for start, end in zip(starts, ends, strict=True))


@MANY
@given(TEXTS)
def test_what_is_kept_keeps_its_bytes(text):
    hits = find_pii(text)
    redacted = redact(text)
    data = text.encode("utf-8", "surrogatepass")
    new = redacted.text.encode("utf-8", "surrogatepass")
    if len(redacted.passes) > 1:
        return
    edges = [0, *(edge for hit in hits for edge in (hit.start, hit.end)), len(text)]
    for first, last in zip(edges[::2], edges[1::2], strict=True):
        start, end = (len(text[:at].encode("utf-8", "surrogatepass")) for at in (first, last))
        # a kept piece ends where it ended: `end` is not inside a replaced value
        kept = new[redacted.end_of(start) : redacted.start_of(end)]
        assert kept == data[start:end]


@MANY
@given(JSON)
def test_redacted_json_holds_nothing_personal_and_keeps_its_shape(value):
    cleaned = redact_json(value)
    for label, text in labelled_texts(cleaned):
        assert find_pii(text, label=label) == ()
    assert redact_json(cleaned) == cleaned
    if isinstance(value, dict | list):
        assert len(cleaned) == len(value)


@MANY
@given(TEXTS, st.lists(JSON, max_size=2), LOCALES)
def test_a_verdict_never_depends_on_what_is_not_there(text, arguments, locale):
    def judge(known, *, echo_denied):
        return check(
            text,
            arguments,
            allowlist=(),
            known=known,
            echo_denied=echo_denied,
            locale=locale,
        )

    alone = judge((), echo_denied=False)
    # what the model was shown may excuse a finding but never add or remove one
    shown = judge([text, *map(canonical_json, arguments)], echo_denied=False)
    denied = judge([text], echo_denied=True)
    assert [(f.kind, f.start, f.severity) for f in alone.findings] == [
        (f.kind, f.start, f.severity) for f in shown.findings
    ]
    assert shown.ok or not alone.ok
    assert alone.invented_urls or shown.invented_urls == ()
    assert not any(finding.echoed for finding in alone.findings)
    breaches = any(f.severity in ("high", "medium") for f in denied.findings)
    assert denied.ok is (not breaches and not denied.invented_urls)


@MANY
@given(TEXTS)
def test_a_text_that_was_shown_whole_is_no_breach(text):
    assert all(f["echoed"] for f in check_privacy(text, known=[text])["findings"])
