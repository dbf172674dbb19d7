"""A server that echoes the key, in every place and spelling that it can think of. It is in no file,
no page, no cache and no line of the terminal."""

import base64
import html
import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.builders import ROOT
from tests.endpoints import Answer, Request, Server, completion, error
from tests.integration.conftest import Project
from tests.integration.served import short_waits  # noqa: F401
from tests.pace import few

KEY = "sk-A1b2+C3d4/E5f6=G7h8+/"


def escaped(text: str) -> str:
    return "".join(f"\\u{ord(one):04x}" for one in text)


def coded(before: str) -> str:
    return base64.b64encode(f"{before}{KEY}".encode()).decode()


SPELLINGS = {
    "plain": KEY,
    "in a header": f"Bearer {KEY}",
    "JSON, the = only": KEY.replace("=", "\\u003d"),
    "JSON, every character": escaped(KEY),
    "JSON in JSON": json.dumps(json.dumps({"key": KEY.replace("=", "\\u003d")})),
    "slashes of PHP": KEY.replace("/", "\\/"),
    "URL": quote(KEY, safe=""),
    "URL, small letters": KEY.replace("=", "%3d").replace("+", "%2b").replace("/", "%2f"),
    "URL, slashes as they are": quote(KEY),
    "URL, twice": quote(quote(KEY, safe=""), safe=""),
    "URL, decoded once too often": KEY.replace("+", " "),
    "HTML": html.escape(KEY).replace("=", "&#61;").replace("/", "&#x2F;"),
    "HTML, by name": KEY.replace("=", "&equals;").replace("+", "&plus;").replace("/", "&sol;"),
    "base64": coded(""),
    "base64 of user:key": coded("user:"),
    "base64 of me:key": coded("me:"),
    "base64 of a header": coded("Authorization: Bearer ") + "==",
    "base64 for URLs": base64.urlsafe_b64encode(f"u:{KEY}".encode()).decode(),
    "base64 in a URL": quote(coded("user:"), safe=""),
    "hex": KEY.encode().hex(),
    "HEX": KEY.encode().hex().upper(),
    "quoted-printable": KEY.replace("=", "=3D"),
}
HALVES = KEY[:11], KEY[11:]


def forms() -> set[str]:
    """What must stand nowhere, as text or as JSON writes it."""
    found = {KEY, KEY[:14], KEY[10:], KEY.encode().hex(), KEY.encode().hex().upper()}
    found |= {coded("")[4:28], coded("user:")[8:30], coded("me:")[4:28], quote(KEY, safe="")}
    found |= set(SPELLINGS.values()) | {KEY.replace("+", " ")}
    return {one for text in found for one in (text, json.dumps(text)[1:-1], html.escape(text))}


def parts(*texts: str) -> dict:
    return {"content": [{"type": "text", "text": text} for text in texts]}


CALLED = [("web_search", {"q": "city 0"})]
PLACES = {
    "two parts": completion(message=parts("The key is ", *HALVES)),
    "three parts": completion(message=parts(KEY[:5], KEY[5:15], KEY[15:])),
    "parted by a thought": completion(f"{HALVES[0]}<think>hm</think>{HALVES[1]}"),
    "parted by a call": completion(
        f'{HALVES[0]}<tool_call>{{"name": "web_search", "arguments": {{"q": "a"}}}}</tool_call>{HALVES[1]}'
    ),
    "reasoning": completion("4", message={"reasoning_content": KEY}),
    "details of reasoning": completion(
        None,
        CALLED,
        message={"reasoning_details": [{"type": "reasoning.text", "text": one} for one in HALVES]},
    ),
    "beside a call": completion(
        None, CALLED, message={"extra_content": {"google": {"thought_signature": KEY}}}
    ),
    "arguments": completion(None, [("web_search", {"q": KEY, "list": [{"deep": KEY}]})]),
    "a name of an argument": completion(None, [("web_search", {"q": "a", KEY: 1})]),
    "arguments, escaped": completion(None, [("web_search", f'{{"q": "{escaped(KEY)}"}}')]),
    "arguments, broken": completion(None, [("web_search", f'{{"q": "{KEY}')]),
    "the name of a tool": completion(None, [(KEY, {})]),
    "a call in the text": completion(
        f'<tool_call>{{"name": "web_search", "arguments": {{"q": "{escaped(KEY)}"}}}}</tool_call>'
    ),
    "fingerprint": completion("4", system_fingerprint=KEY),
    "a fingerprint that is cut": completion("4", system_fingerprint="x" * 190 + KEY),
    "model": completion("4", model=f"m-{KEY}"),
    "id": completion("4", id=KEY),
    "refusal": completion(None, message={"refusal": KEY}),
    "finish_reason": completion("4", finish=KEY),
    "an error in a good response": Answer(body={"error": {"message": KEY, "code": KEY}}),
    "an error that is cut": error(500, "x" * 290 + KEY),
    "an error page": Answer(500, f"<html>{html.escape(KEY)}</html>".encode()),
    "an error of nothing but it": Answer(502, KEY.encode()),
    "an error with odd fields": Answer(500, {"error": {KEY: [KEY], "param": {KEY: 1}}}),
    "headers": error(503, "busy", headers={"Retry-After": KEY, "X-Key": KEY, "Date": KEY}),
    "not JSON": Answer(body=f"{{{KEY}".encode()),
    "not HTTP": Answer(raw=f"{KEY}\r\n{KEY}: {KEY}\r\n\r\n".encode()),
    "a chunk": Answer(raw=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + KEY.encode()),
}


def echo(spelling: str) -> dict[str, Answer]:
    return {
        f"text, {spelling}": completion(f"It is {SPELLINGS[spelling]}, I think."),
        f"error, {spelling}": error(500, f"no: {SPELLINGS[spelling]}"),
    }


ECHOES = {**PLACES, **{key: one for name in SPELLINGS for key, one in echo(name).items()}}


def command(folder: Path, *words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "callmark", *map(str, words)],
        cwd=folder,
        env={**os.environ, "OPENAI_API_KEY": KEY, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )


def check(folder: Path, *shown: str) -> None:
    """Nothing that was printed or written holds the key."""
    texts = {f"terminal {at}": text for at, text in enumerate(shown)}
    for path in folder.rglob("*"):
        if path.is_file():
            texts[path.name] = path.read_bytes().decode("utf-8", "replace")
    for place, text in texts.items():
        for form in forms():
            assert form not in text, (place, form, text[max(0, text.find(form) - 80) :][:200])


def with_echoes(folder: Path, echoes: dict[str, Answer]) -> tuple[Project, object]:
    project = Project(folder, size=1)
    names = list(echoes)
    items = [
        {"prompt": f"Echo number {at}", "metadata": {"sample_id": f"s{at}"}}
        for at in range(2 * len(names))
    ]
    project.write(items)

    def answer(request: Request) -> Answer:
        number = int(request.messages[0]["content"].rsplit(" ", 1)[1])
        is_echo = number % 2 == 1 and request.messages[-1]["role"] == "user"
        return echoes[names[number // 2]] if is_echo else completion("I do not know.")

    return project, answer


@pytest.mark.parametrize("ends", few(["finished", "incomplete"]))
def test_f12_a_key_that_is_echoed_is_nowhere(tmp_path, ends):
    project, answer = with_echoes(tmp_path, ECHOES)
    written = ["--out", project.out, "--report", project.report, "--html"]
    more = ["--junit", tmp_path / "j.xml", "--markdown", tmp_path / "m.md"]
    cache = ["--cache", tmp_path / "cache", "--model-revision", "1"]
    limits = ["--max-retries", 0, "--max-errors", "100%" if ends == "finished" else 0]
    with Server(answer, models=["stub", KEY, *HALVES]) as server:
        served = ["--runner", "openai_http", "--model", "stub", "--base-url", server.url]
        words = ["run", "--in", project.dataset, "--fixtures", project.fixtures, *served]
        done = command(tmp_path, *words, *written, *more, *cache, *limits)
        assert len(server.requests) >= 2 * len(ECHOES), done.stderr
    assert done.returncode in ({0, 1, 5} if ends == "finished" else {4}), done.stderr
    assert (project.out if ends == "finished" else Path(f"{project.out}.journal")).is_file()
    assert any((tmp_path / "cache").rglob("*"))
    check(tmp_path, done.stdout, done.stderr)
    if ends == "finished":
        shown = [command(tmp_path, "show", project.out, f"s{at}").stdout for at in (1, 3, 5, 7)]
        assert all(shown)
        check(tmp_path, *shown)


STOPPING = {
    "400": error(400, f"bad seed {KEY}", param="seed"),
    "400 with the key as its parameter": error(400, f"{KEY} is bad", param=KEY),
    "401": error(401, f"Incorrect API key provided: {KEY}"),
    "401, escaped": Answer(401, f'{{"error": {{"message": "{escaped(KEY)}"}}}}'.encode()),
    "402": error(402, f"no money for {quote(KEY, safe='')}"),
    "403": Answer(403, KEY.encode()),
    "404": error(404, f"The model `stub` does not exist for {KEY}", code="model_not_found"),
    "422": Answer(422, {"detail": [{"loc": ["body", KEY], "msg": KEY}]}),
    "307": Answer(307, KEY.encode(), {"Location": f"http://127.0.0.1:9/?key={KEY}"}),
}


@pytest.mark.parametrize("how", few(STOPPING, 2))
def test_f12_an_error_that_ends_the_run_shows_no_key(tmp_path, how):
    project = Project(tmp_path, size=2)
    with Server(lambda _: STOPPING[how], models=[KEY, f"m-{KEY}"]) as server:
        served = ["--runner", "openai_http", "--model", "stub", "--base-url", server.url]
        words = ["--in", project.dataset, "--fixtures", project.fixtures, *served]
        done = command(tmp_path, "run", *words, "--out", project.out)
    assert done.returncode == (4 if how == "402" else 2)
    assert "***" in done.stderr
    check(tmp_path, done.stdout, done.stderr)


@pytest.mark.parametrize("place", few(["error, URL", "text, plain", "fingerprint", "two parts"]))
def test_f12_the_doctor_shows_no_key(tmp_path, place):
    with Server(lambda _: ECHOES[place], models=[KEY]) as server:
        served = ["--runner", "openai_http", "--model", "stub", "--base-url", server.url]
        shown = [
            command(tmp_path, "doctor", *served, "--max-retries", 0, *more)
            for more in ((), ("--json",))
        ]
    assert all(one.stdout for one in shown)
    check(tmp_path, *(one.stdout + one.stderr for one in shown))
