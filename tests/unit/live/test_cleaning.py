"""Secrets never reach a file, whatever else a tool says; personal data become other data of the same
shape, the same everywhere."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callmark.live.cleaning import SECRET, SecretFilter, Surrogates
from callmark.scorers.pii import find_pii

VALUES = {
    "email": "ada.lovelace@acme.com",
    "phone": "+1 212-736-5000",
    "card": "4111 1111 1111 1111",
    "iban": "DE89 3704 0044 0532 0130 00",
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
    "ip": "93.184.216.34",
}


def replaced(value, **options):
    surrogates = Surrogates(**options)
    surrogates.learn(value)
    return surrogates.json(value)


@pytest.mark.parametrize(("kind", "value"), VALUES.items())
def test_a_surrogate_is_another_value_of_the_same_kind(kind, value):
    text = replaced(f"see {value}.")
    surrogate = text.removeprefix("see ").removesuffix(".")
    assert surrogate != value
    assert [(hit.kind, hit.end) for hit in find_pii(surrogate)] == [(kind, len(surrogate))]
    if kind not in ("email", "ip"):
        assert re.sub(r"[0-9a-zA-Z]", "x", surrogate) == re.sub(r"[0-9a-zA-Z]", "x", value)


def test_letters_of_an_account_become_letters():
    surrogate = replaced("see GB82 WEST 1234 5698 7654 32.")
    assert re.fullmatch(r"see GB\d\d [A-Z]{4} \d{4} \d{4} \d{4} \d\d\.", surrogate)
    assert "WEST 1234" not in surrogate
    assert [hit.kind for hit in find_pii(surrogate)] == ["iban"]


def test_an_address_of_the_newer_kind_becomes_one_that_nobody_has():
    surrogate = replaced("see 2606:4700:4700::1111 there")
    assert re.fullmatch(r"see 2001:db8:[0-9a-f]+:[0-9a-f]+::[0-9a-f]+ there", surrogate)


def test_one_value_has_one_surrogate_in_prompt_key_and_result():
    prompt = f"Who is {VALUES['email']}?"
    key, result = {"email": VALUES["email"].upper()}, {"text": json.dumps(VALUES)}
    surrogates = Surrogates()
    for value in (prompt, key, result):
        surrogates.learn(value)
    said = surrogates.json(prompt).removeprefix("Who is ").removesuffix("?")
    assert surrogates.json(key)["email"].casefold() == said
    assert json.loads(surrogates.json(result)["text"])["email"] == said


def test_every_spelling_of_a_number_has_the_same_digits():
    text = replaced("4111 1111 1111 1111 and 4111-1111-1111-1111 and 4111111111111111")
    numbers = {re.sub(r"\D", "", part) for part in text.split(" and ")}
    assert len(numbers) == 1
    assert numbers != {"4111111111111111"}


def test_a_value_that_only_its_label_gives_away_is_replaced_everywhere():
    surrogates = Surrogates()
    value = {"ssn": "536904399", "note": "his number is 536904399", "id": 536904399}
    surrogates.learn(value)
    cleaned = surrogates.json(value)
    assert "536904399" not in json.dumps(cleaned)
    assert cleaned["note"] == f"his number is {cleaned['ssn']}"
    assert str(cleaned["id"]) == cleaned["ssn"]


def test_surrogates_of_an_earlier_recording_stay():
    first = Surrogates()
    first.learn(VALUES)
    once = first.json(VALUES)
    assert replaced(once, made=first.made) == once


def test_a_key_makes_other_surrogates():
    assert replaced(VALUES, key="mine") != replaced(VALUES)
    assert replaced(VALUES, key="mine") == replaced(VALUES, key="mine")


def test_this_machine_is_nobody():
    text = "serving at 127.0.0.1 and ::1"
    assert replaced(text) == text


def test_bytes_of_a_picture_stay():
    block = {"type": "image", "data": VALUES["email"], "mimeType": "image/png"}
    assert replaced(block) == block


ADDRESSES = st.from_regex(r"[a-z]{2,8}(\.[a-z]{2,8})?@[a-z]{3,8}\.(com|de)", fullmatch=True)


@pytest.mark.slow
@given(st.lists(ADDRESSES, min_size=1, max_size=8, unique=True), st.randoms(use_true_random=False))
def test_different_values_stay_different_and_order_does_not_matter(addresses, random):
    shuffled = random.sample(addresses, len(addresses))
    one, other = Surrogates(), Surrogates()
    for address in addresses:
        one.learn(address)
    for address in shuffled:
        other.learn(address)
    assert [one.json(address) for address in addresses] == [
        other.json(address) for address in addresses
    ]
    assert len({one.json(address) for address in addresses}) == len(addresses)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | st.text('ab {}[]":,', max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("xyz", max_size=3), inner),
    max_leaves=8,
)


@given(JSON)
def test_a_value_without_personal_data_stays_as_it_is(value):
    assert replaced(value) == value


def test_f27_every_spelling_of_a_digit_has_the_same_surrogate():
    spelt = "４１１１ １１１１ １１１１ １１１１", "④①①① ①①①① ①①①① ①①①①", "4111 1111 1111 1111"
    made = {replaced(value) for value in spelt}
    assert len(made) == 1
    assert made.isdisjoint(spelt)
    assert all(find_pii(value)[0].kind == "card" for value in made)


def test_f28_a_phone_keeps_its_extension_and_its_shape():
    made = replaced({"phone": "668 5702", "note": "call (905)674-3793x123"})
    assert re.sub("[0-9]", "0", made["phone"]) == "000 0000"
    assert re.sub("[0-9]", "0", made["note"]) == "call (000)000-0000x000"
    assert made["phone"] != "668 5702"


TOKEN = "a1B2" * 9


@pytest.mark.parametrize(
    "text",
    [
        "sk-proj-" + TOKEN, "ghp_" + TOKEN, "github_pat_" + TOKEN, "glpat-" + TOKEN, "hf_" + TOKEN,
        "xoxb-12345-" + TOKEN, "AKIA" + "A1B2" * 4, "AIza" + TOKEN, "npm_" + TOKEN,
        "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl",
        "-----BEGIN RSA PRIVATE KEY-----\nabc\ndef\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\ncut off",
    ],
)  # fmt: skip
def test_keys_and_tokens_are_removed_by_their_form(text):
    cleaned = SecretFilter().text(f"before {text} after")
    assert cleaned.startswith(f"before {SECRET}")
    assert text[8:] not in cleaned


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        (f"Authorization: Bearer {TOKEN}", f"Authorization: Bearer {SECRET}"),
        ("Authorization: Bearer letmein", f"Authorization: Bearer {SECRET}"),
        ('{"Authorization": "Basic opensesame"}', f'{{"Authorization": "Basic {SECRET}"}}'),
        ("send Basic YWRhOmh1bnRlcjI= along", f"send Basic {SECRET} along"),
        ("a bearer qwErtyuiop", f"a bearer {SECRET}"),
        ("postgres://ada:pa55word@db/x", f"postgres://ada:{SECRET}@db/x"),
        ('{"password": "hunter22"}', f'{{"password": "{SECRET}"}}'),
        (r"{\"password\": \"hunter22\"}", f'{{\\"password\\": \\"{SECRET}\\"}}'),
        ("api_key=abcd1234&page=2", f"api_key={SECRET}&page=2"),
    ],
)
def test_only_the_secret_itself_is_removed(text, cleaned):
    assert SecretFilter().text(text) == cleaned


@pytest.mark.parametrize(
    "text",
    [
        "the bearer of bad news", "page_token: 3f", "basic facts", "https://example.org/a?b=c",
        "sk-learn", "a secret garden", "12:30@noon", "Ensuring Basic Connectivity for MMS",
        "Basic troubleshooting", "Bearer authentication is asked for",
    ],
)  # fmt: skip
def test_ordinary_words_stay(text):
    assert SecretFilter().text(text) == text


def test_values_of_the_environment_are_removed_at_every_depth():
    secrets = SecretFilter(["opensesame", "no"])
    value = {"a": ["x opensesame y", {"opensesame": 1}], "note": "no"}
    assert secrets.json(value) == {"a": [f"x {SECRET} y", {SECRET: 1}], "note": "no"}
    assert secrets.removed == 2


def test_a_key_that_says_secret_hides_its_value():
    value = {"password": "x", "api_key": "", "next_page_token": "abc", "db_password": "y"}
    assert SecretFilter().json(value) == {
        "password": SECRET,
        "api_key": "",
        "next_page_token": "abc",
        "db_password": SECRET,
    }


def test_what_a_key_calls_secret_is_one_wherever_it_stands():
    secrets = SecretFilter()
    call = {"arguments": '{"user": "ada", "password": "hunter2!"}', "secret": "required"}
    secrets.learn(call)
    assert secrets.text("I am ada, my password is hunter2!") == f"I am ada, my password is {SECRET}"
    assert secrets.text("both are required") == "both are required"


def test_bytes_of_a_picture_hold_no_secret():
    block = {"type": "image", "data": "ghp_" + TOKEN, "mimeType": "image/png"}
    assert SecretFilter().json(block) == block
