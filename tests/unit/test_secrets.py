"""Secrets stand in the environment, never in a file, and never come out again."""

import base64
import html
import json
import re
from urllib.parse import quote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.scripted import Scripted, calling, plug

from callmark.cli import main
from callmark.config import load_config
from callmark.errors import UsageError
from callmark.records.seams import Failure, Reply
from callmark.run.conclude import run
from callmark.run.preview import dry_run
from callmark.runners.http.client import Secrets

SECRETS = {
    "MY_KEY": "sk-0123-marker-a",
    "MY_TOKEN": "tok-marker-b",
    "MY_FIELD": "field-marker-c",
    "MY_HOST": "user:pass-marker-d@models.example.com",
}
MARKER = re.compile("marker-[a-d]")
SETTINGS = """\
runner: scripted
model: the-model
in: dataset.jsonl
out: results.jsonl
report: report.json
max_errors: 1
base_url: http://${MY_HOST}/v1
api_key: ${MY_KEY}
headers:
  X-Auth-Token: Bearer ${MY_TOKEN}
  X-Team: evaluation
extra_body:
  guided: {deep: [1, {"inner": "${MY_FIELD}-${MY_FIELD}"}]}
"""


def script(one):
    if one.turn > 1:
        return Reply(text="It has 17 issues.")
    return Failure("HTTP 500") if one.sample_id == "s1" else calling("web.search", {"q": "x"})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    items = [{"prompt": "How many?", "metadata": {"sample_id": f"s{n}"}} for n in range(3)]
    text = "".join(json.dumps(one) + "\n" for one in [{"__header__": True}, *items])
    (tmp_path / "dataset.jsonl").write_text(text, "utf-8")
    (tmp_path / "callmark.yaml").write_text(SETTINGS, "utf-8")
    return tmp_path


@pytest.fixture
def runner(folder, monkeypatch):
    runner = Scripted(script, suspends=True)
    plug(monkeypatch, folder, runner)
    return runner


def test_a_runner_gets_the_values_of_the_environment_at_every_depth(runner):
    run(load_config(None, {}))
    served = runner.options.served
    assert served.api_key == SECRETS["MY_KEY"]
    assert served.headers == {"X-Auth-Token": "Bearer tok-marker-b", "X-Team": "evaluation"}
    inner = served.extra_body["guided"]["deep"][1]["inner"]
    assert inner == "field-marker-c-field-marker-c"


def test_the_usual_variables_stand_in_where_nothing_is_set(runner, folder, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-usual")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://usual/v1")
    (folder / "callmark.yaml").write_text("in: dataset.jsonl\n", "utf-8")
    run(load_config(None, {"runner": "scripted", "model": "the-model"}))
    assert runner.options.served.api_key == "sk-usual"
    assert runner.options.served.base_url == "http://usual/v1"


def test_no_secret_comes_out_of_a_run(runner, folder, capsys):
    """Results, report, journal, what is printed, and what is asked about beforehand."""
    assert main(["run", "--max-errors", "0"]) == 4  # leaves a journal and a report
    assert (folder / "results.jsonl.journal").is_file()
    assert main(["run", "--restart"]) == 1  # no fixtures
    assert main(["run", "--dry-run"]) == 0
    assert main(["run", "--show-prompt", "s0"]) == 0
    assert main(["doctor", "--runner", "scripted", "--json"]) in (0, 1)
    assert main(["doctor", "--runner", "scripted"]) in (0, 1)
    captured = capsys.readouterr()
    assert not MARKER.search(captured.out + captured.err)
    written = [path for path in folder.rglob("*") if path.is_file()]
    assert {"results.jsonl", "report.json"} <= {path.name for path in written}
    for path in written:
        assert not MARKER.search(path.read_text("utf-8")), path


def test_no_secret_is_in_a_fingerprint(runner, monkeypatch):
    """Another key is not another experiment."""
    before = dry_run(load_config(None, {})).fingerprints
    for name in SECRETS:
        monkeypatch.setenv(name, "rotated")
    assert dry_run(load_config(None, {})).fingerprints == before


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("api_key: sk-marker-a", "callmark.yaml:2: api_key: a key must not stand in a file"),
        ("api_key: Bearer ${MY_KEY} marker-a", "callmark.yaml:2: api_key: a key must not"),
        ("headers: {Authorization: marker-a}", "callmark.yaml:2: headers.Authorization: a secret"),
        ("headers:\n  x-api-key: marker-a", "callmark.yaml:3: headers.x-api-key: a secret"),
        ("headers: {Cookie: marker-a}", "headers.Cookie: a secret must not stand in a file"),
        ("headers: {X-My-Secret: marker-a}", "headers.X-My-Secret: a secret must not"),
        ("base_url: http://me:marker-a@host/v1", "callmark.yaml:2: base_url: a password must not"),
        (
            "api_key: ${NOT_SET}",
            "callmark.yaml:2: api_key: the environment variable NOT_SET is not set",
        ),
        (
            "headers:\n  X-Team: ${NOT_SET}",
            "callmark.yaml:3: headers.X-Team: the environment variable",
        ),
        (
            "extra_body:\n  a:\n    b: [{c: '${NOT_SET}'}]",
            "callmark.yaml:4: extra_body.a.b.c: the environment variable NOT_SET is not set",
        ),
        ("api_key: [marker-a]", "callmark.yaml:2: api_key: must be a string"),
        ("headers: marker-a", "callmark.yaml:2: headers: must be an object"),
        ("headers: {Cookie: [marker-a]}", "callmark.yaml:2: headers"),
        ("extra_body: marker-a", "callmark.yaml:2: extra_body: must be an object"),
    ],
)
def test_a_secret_in_a_file_and_an_unset_variable_are_refused_by_name(
    runner, folder, line, message, capsys
):
    (folder / "callmark.yaml").write_text(f"in: dataset.jsonl\n{line}\n", "utf-8")
    assert main(["run", "--runner", "scripted", "--model", "the-model"]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert not MARKER.search(error)
    assert runner.seen == []
    assert not (folder / "results.jsonl").exists()


def test_what_is_no_secret_may_stand_in_a_file(runner, folder):
    (folder / "callmark.yaml").write_text(
        "in: dataset.jsonl\nrunner: scripted\nmodel: the-model\nheaders: {X-Team: a, User-Agent: b}\n"
        "base_url: http://host:8000/v1\nextra_body: {top_k: 3, chat_template_kwargs: {think: false}}\n",
        "utf-8",
    )
    run(load_config(None, {}))
    assert runner.options.served.extra_body["chat_template_kwargs"] == {"think": False}


def test_without_a_file_the_setting_itself_is_named(runner):
    with pytest.raises(UsageError, match=r"^--headers\.X-Key: a secret must not stand in a file"):
        run({"runner": "scripted", "in": "dataset.jsonl", "headers": {"X-Key": "literal"}})


# What a server may make of them

KEY = "sk-A1b2+C3d4/E5f6=G7h8+/"
WAYS = {
    "as it is": lambda key: key,
    "JSON": lambda key: json.dumps(key)[1:-1],
    "JSON of PHP": lambda key: json.dumps(key)[1:-1].replace("/", "\\/"),
    "JSON in JSON": lambda key: json.dumps(json.dumps(key)),
    "escaped": lambda key: "".join(f"\\u{ord(one):04x}" for one in key),
    "ESCAPED": lambda key: "".join(f"\\u{ord(one):04X}" for one in key),
    "escaped in part": lambda key: re.sub(r"\W", lambda one: f"\\u{ord(one[0]):04x}", key),
    "escaped for Python": lambda key: re.sub(r"\W", lambda one: f"\\x{ord(one[0]):02x}", key),
    "in a URL": lambda key: quote(key, safe=""),
    "in a url": lambda key: re.sub(r"\W", lambda one: f"%{ord(one[0]):02x}", key),
    "in a URL in a URL": lambda key: quote(quote(key, safe=""), safe=""),
    "in HTML": lambda key: html.escape(key),
    "in HTML by number": lambda key: re.sub(r"\W", lambda one: f"&#{ord(one[0])};", key),
    "in HTML by hex": lambda key: re.sub(r"\W", lambda one: f"&#X{ord(one[0]):X};", key),
    "hex": lambda key: key.encode().hex(),
}


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=20)
@given(key=st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=8, max_size=40))
@example(key=KEY)
@example(key="&&&&0000%%%%")
@example(key='\\\\\\\\////""""\'')
def test_f12_a_secret_is_found_in_every_spelling(way, key):
    cleaned = Secrets([key]).clean(f"before {WAYS[way](key)} after")
    between = cleaned.removeprefix("before ").removesuffix(" after")
    assert between.replace('"', "").replace("\\", "") == "***"


@settings(max_examples=50)
@given(
    st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=8, max_size=40),
    st.binary(max_size=9),
    st.binary(max_size=9),
    st.sampled_from([base64.b64encode, base64.urlsafe_b64encode]),
)
def test_f12_a_secret_is_found_in_the_base64_of_something_longer(key, before, after, encode):
    whole = encode(before + key.encode() + after).decode()
    cleaned = Secrets([key]).clean(f"Basic {whole}")
    assert "***" in cleaned
    # What is left holds no three bytes of it in a row.
    left = [part for part in cleaned.removeprefix("Basic ").split("***") if part]
    assert sum(map(len, left)) <= (len(before) + len(after)) * 4 / 3 + 8


def test_f12_secrets_leave_every_corner_of_a_json_value():
    secrets = Secrets([KEY, "12345678901"])
    value = {"a": [KEY, {KEY: f"x{KEY}y"}], "n": 12345678901, "b": [None, True, 1, 2.5]}
    cleaned = {"a": ["***", {"***": "x***y"}], "n": "***", "b": [None, True, 1, 2.5]}
    assert secrets.clean_json(value) == cleaned


@given(st.text(max_size=200))
def test_a_text_without_a_secret_stays_as_it_is(text):
    assert Secrets([KEY]).clean(text) == text


def test_f12_no_repr_shows_a_secret():
    assert KEY not in repr(Secrets([KEY]))
