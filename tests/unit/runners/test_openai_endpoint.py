"""Addresses, keys, and what is never shown of them."""

import pytest

from callmark.errors import UsageError
from callmark.runners.http.client import endpoint_of
from callmark.runners.options import ServedOptions

KEY = "sk-marker-0123456789"


@pytest.mark.parametrize(
    ("given", "chat", "models"),
    [
        ("http://h/v1", "http://h/v1/chat/completions", "http://h/v1/models"),
        ("http://h:8000/v1/", "http://h:8000/v1/chat/completions", "http://h:8000/v1/models"),
        ("http://h/v1/chat/completions", "http://h/v1/chat/completions", "http://h/v1/models"),
        ("https://h", "https://h/chat/completions", "https://h/models"),
        (
            " https://h/v1?api-version=2 ",
            "https://h/v1/chat/completions?api-version=2",
            "https://h/v1/models?api-version=2",
        ),
        ("http://[::1]:8/v1", "http://[::1]:8/v1/chat/completions", "http://[::1]:8/v1/models"),
    ],
)
def test_the_places_below_a_base_url(given, chat, models):
    endpoint = endpoint_of(ServedOptions(base_url=given))
    assert (endpoint.url, endpoint.models_url) == (chat, models)


@pytest.mark.parametrize("given", [None, "", "  "])
def test_no_endpoint_is_said_in_one_sentence(given):
    with pytest.raises(UsageError, match=r"--base-url: where is the server.*OPENAI_BASE_URL"):
        endpoint_of(ServedOptions(base_url=given))


@pytest.mark.parametrize(
    "given", ["h/v1", "ftp://h/v1", "http://", "http://h:port/v1", "http://u:secretpw@:1/v1", "//h"]
)
def test_what_is_no_address_is_refused_and_not_repeated(given):
    with pytest.raises(UsageError, match="--base-url: must be http") as error:
        endpoint_of(ServedOptions(base_url=given))
    assert "secretpw" not in str(error.value)


def test_a_key_becomes_a_bearer_token():
    endpoint = endpoint_of(ServedOptions(base_url="http://h", api_key=KEY))
    assert endpoint.headers["Authorization"] == f"Bearer {KEY}"
    assert endpoint.has_key
    assert not endpoint_of(ServedOptions(base_url="http://h")).has_key


def test_credentials_in_the_address_are_sent_and_not_shown():
    endpoint = endpoint_of(ServedOptions(base_url="http://me:p%40ssword1@h:1/v1", api_key=KEY))
    assert endpoint.headers["Authorization"] == "Basic bWU6cEBzc3dvcmQx"
    assert endpoint.base == "http://h:1/v1"
    assert "ssword" not in endpoint.url + endpoint.models_url + repr(endpoint)
    assert endpoint.secrets.clean("p@ssword1 bWU6cEBzc3dvcmQx p%40ssword1") == "*** *** ***"


def test_headers_of_the_config_win():
    endpoint = endpoint_of(
        ServedOptions(
            base_url="http://h", api_key=KEY, headers={"authorization": "Token t", "X-A": "b"}
        )
    )
    assert endpoint.headers["authorization"] == "Token t"
    assert "Authorization" not in endpoint.headers
    assert endpoint.headers["X-A"] == "b"


def test_a_line_end_in_a_key_is_refused_without_showing_it():
    with pytest.raises(UsageError, match="line end") as error:
        endpoint_of(ServedOptions(base_url="http://h", api_key=KEY + "\nX-Evil: 1"))
    assert KEY not in str(error.value)


def test_no_record_shows_a_secret():
    served = ServedOptions(
        base_url=f"http://u:{KEY}@h", api_key=KEY, headers={"X": KEY}, secrets=(KEY,)
    )
    assert KEY not in repr(served)
    assert KEY not in repr(endpoint_of(served))


def test_f12_what_lets_us_in_is_secret_wherever_it_stands(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://me:proxy-word-1@127.0.0.1:1")
    given = "http://h/v1?api-version=2024-06-01-preview&subscription-key=query%2Bsecret"
    secrets = endpoint_of(
        ServedOptions(base_url=given, api_key=KEY, secrets=("from-the-env",))
    ).secrets
    for secret in (KEY, "from-the-env", "proxy-word-1", "query%2Bsecret", "query+secret"):
        assert secrets.clean(f"<{secret}>") == "<***>"
    assert secrets.clean("2024-06-01-preview") == "2024-06-01-preview"


def test_a_word_that_is_no_secret_stays_in_the_text():
    secrets = endpoint_of(ServedOptions(base_url="http://h", api_key="EMPTY")).secrets
    assert not secrets
    assert secrets.clean("the set is EMPTY") == "the set is EMPTY"
