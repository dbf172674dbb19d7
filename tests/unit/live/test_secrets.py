"""Secrets never reach a file, whatever else a tool says."""

import pytest

from callmark.live.cleaning import SECRET, SecretFilter

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


def test_bytes_of_a_picture_stay():
    block = {"type": "image", "data": "ghp_" + TOKEN, "mimeType": "image/png"}
    assert SecretFilter().json(block) == block
