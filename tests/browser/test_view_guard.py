"""Whom the viewer answers: asked over a real socket, rightly and in every wrong way."""

import json
import socket
import threading
import time
from contextlib import suppress
from http.client import HTTPException

import pytest
from tests.browser.view_world import Client, viewing

from callmark.view.server import MAX_CONNECTIONS, ViewServer

EVERYWHERE = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def test_it_listens_on_this_machine_only(two_runs, tmp_path):
    with viewing(two_runs, tmp_path) as server:
        assert server.server_address[0] == "127.0.0.1"


def test_without_the_token_nothing_is_told(client):
    run = client.runs()["base"]["id"]
    for path in ("/", "/runs", f"/run/{run}", f"/run/{run}/head", "/nothing"):
        for headers in ({}, {"Cookie": f"callmark-{client.port}=x"}, {"Authorization": "Bearer x"}):
            answer = client.ask(path, **headers)
            assert answer.status == 403
            assert "callmark view" in answer.text
            assert "base" not in answer.text
            assert answer.getheader("Set-Cookie") is None
    assert client.ask("/?token=").status == client.ask(f"/?token={client.token}x").status == 403
    assert client.ask(f"/runs?token={client.token}").status == 403


def test_the_token_gives_a_cookie_and_leaves_the_address(client):
    answer = client.ask(f"/?token={client.token}")
    room = answer.getheader("Location")
    assert answer.status == 303
    assert len(room) == 34
    cookie, *flags = answer.getheader("Set-Cookie").split("; ")
    assert {"HttpOnly", "SameSite=Strict", f"Path={room[:-1]}"} == set(flags)
    assert client.token not in cookie
    assert client.ask(room, Cookie=cookie).status == 200
    assert client.ask(f"{room}runs", Cookie=cookie).status == 200
    assert client.ask("/runs", Cookie=f"a=b; {cookie}").status == 200
    assert client.ask("/runs", Cookie=f"{cookie}x").status == 403


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{}", "[::2]:{}", ""],
)
def test_another_name_is_refused_even_with_the_token(client, host):
    """DNS rebinding: a name that leads to this machine does not lead to this viewer."""
    assert client.known("/runs", Host=host.format(client.port)).status == 403
    assert client.ask(f"/?token={client.token}", Host=host.format(client.port)).status == 403


def test_two_names_or_none_are_refused(client):
    own = f"127.0.0.1:{client.port}"
    assert client.known("/runs", Host=[own, "evil.example"]).status == 403
    assert client.known("/runs", NoHost="").status == 403


@pytest.mark.parametrize("host", ["127.0.0.1:{}", "localhost:{}", "LOCALHOST:{}", "[::1]:{}"])
def test_its_own_names_are_answered(client, host):
    assert client.known("/runs", Host=host.format(client.port)).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},  # another port of this machine
    ],
    ids=str,
)
def test_other_sites_are_refused_even_with_the_token(client, headers):
    assert client.known("/runs", **headers).status == 403
    assert client.post({"a": "0" * 16, "b": "0" * 16}, **headers).status == 403


def test_a_request_that_does_something_says_where_it_comes_from(client):
    cookie = client.ask(f"/?token={client.token}").getheader("Set-Cookie").split(";")[0]
    run = client.runs()["base"]["id"]
    body = json.dumps({"a": run, "b": run}).encode()
    given = {"Content_Type": "application/json", "Cookie": cookie}
    assert client.ask("/compare", "POST", body, **given).status == 403
    own = {"Origin": f"http://127.0.0.1:{client.port}", "Sec_Fetch_Site": "same-origin"}
    assert client.ask("/compare", "POST", body, **given, **own).status == 200
    form = {**given, **own, "Content_Type": "application/x-www-form-urlencoded"}
    assert client.ask("/compare", "POST", body, **form).status == 415
    assert client.ask("/compare", "POST", b"x" * 20_000, **given, **own).status == 413
    assert client.ask("/compare", "POST", b'{"a":1}', **given, **own).status == 400


@pytest.mark.parametrize("method", ["HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_other_methods_are_refused(client, method):
    assert client.known("/runs", method=method).status == 405


def test_each_path_has_its_method(client):
    assert client.known("/compare").status == 405
    body = {"method": "POST", "body": b"{}", "Content_Type": "application/json"}
    assert client.known("/runs", **body).status == 405


@pytest.mark.parametrize(
    "path",
    [
        "/../../../../etc/passwd", "/run/../../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd",
        "/run/..%2f..%2fetc%2fpasswd", "/base/results.jsonl", "/base", "/base/", "/run/", "/run/base",
        "/run/0000000000000000", "/run/0000000000000000/head", "/compare/0000000000000000", "/favicon.ico",
        "/run/{}/answers.txt", "/run/{}/../head", "/run/{}/sample", "/run/{}/sample?at=-1", "/run/{}/sample?at=1e3",
        "/run/{}/sample?at=/etc/passwd", "/run/{}/piece", "/run/{}\0", "/file:///etc/passwd",
    ],
)  # fmt: skip
def test_no_path_leads_to_a_file(client, path):
    run = client.runs()["base"]["id"]
    raw = path.format(run).replace("\0", "%00")
    answer = client.known(raw)
    assert answer.status == 404
    assert "root:" not in answer.text


def test_every_answer_carries_its_protection(client):
    run = client.runs()["base"]["id"]
    state = client.compared(run, run)
    paths = [
        "/",
        "/runs",
        f"/run/{run}",
        f"/run/{run}/head",
        f"/run/{run}/index",
        f"/run/{run}/sample?at=0",
    ]
    paths += [f"/compare/{state['id']}", "/nothing"]
    answers = [*map(client.known, paths), client.ask("/"), client.known("/", method="PUT")]
    for answer in answers:
        assert {name: answer.getheader(name) for name in EVERYWHERE} == EVERYWHERE
        policy = answer.getheader("Content-Security-Policy")
        assert policy.startswith("default-src 'none'")
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.getheader("Access-Control-Allow-Origin") is None
        if "script-src" not in policy:
            assert answer.getheader("Content-Type").split(";")[0] in (
                "application/json",
                "text/plain",
            )


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET http://[ HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\r\n\r\n",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n", b"GET /\r\n\r\n", b"X" * 100 + b"\r\n\r\n",
        b"GET /?" + b"a=1&" * 50 + b" HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n",
    ],
    ids=range(7),
)  # fmt: skip
def test_nonsense_is_refused_and_it_goes_on(client, request_bytes, capfd):
    data = request_bytes.replace(b"%d", str(client.port).encode())
    with socket.create_connection(("127.0.0.1", client.port), timeout=10) as connection:
        connection.sendall(data)
        answered = connection.recv(65536)
    assert b" 200 " not in answered
    assert client.known("/runs").status == 200
    assert "Traceback" not in capfd.readouterr().err


def test_what_follows_a_refused_request_is_not_taken_for_another(client):
    """The body of a refused POST holds a second request: nobody answers it."""
    hidden = f"GET /runs HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\nAuthorization: Bearer {client.token}\r\n\r\n"
    outer = (
        f"POST /compare HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\nContent-Length: 99999\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", client.port), timeout=10) as connection:
        connection.sendall((outer + hidden).encode())
        connection.shutdown(socket.SHUT_WR)
        answered = b""
        while piece := connection.recv(65536):
            answered += piece
    assert answered.count(b"HTTP/1.1 ") == 1
    assert b"413" in answered.splitlines()[0]


LENGTHS = {
    "²": 400, "٣": 400, "+5": 400, "-1": 400, "0x5": 400, "1_0": 400, "5, 5": 400, "5.0": 400, "": 400,
    "9" * 5000: 413, "10001": 413, str(2**64): 413,
}  # fmt: skip


def answer_to(client, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", client.port), timeout=10) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        answered = b""
        while piece := connection.recv(65536):
            answered += piece
    return answered


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_f73_a_length_that_is_none_is_refused(client, length, encoding, capfd):
    head = f"POST /compare HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\nContent-Length: "
    data = head.encode() + length.encode(encoding, "replace") + b"\r\n\r\n{}"
    answered = answer_to(client, data)
    assert answered.startswith(b"HTTP/1.1 %d " % LENGTHS[length])
    assert answered.count(b"HTTP/1.1 ") == 1
    assert client.known("/runs").status == 200
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize(
    ("method", "more", "status"),
    [
        ("POST", "Content-Length: 2\r\nContent-Length: 2\r\n", 400),
        ("POST", "Transfer-Encoding: chunked\r\n", 411),
        ("POST", "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n", 411),
        ("POST", "", 411),
        ("GET", "Content-Length: 2\r\n", 400),
        ("GET", "content-length: ²\r\n", 400),
        ("GET", "Transfer-Encoding: chunked\r\n", 400),
    ],
)
def test_f73_a_body_is_said_once_and_with_its_length(client, method, more, status, capfd):
    request = f"{method} /runs HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\n{more}\r\n{{}}"
    answered = answer_to(client, request.encode())
    assert answered.startswith(b"HTTP/1.1 %d " % status)
    assert answered.count(b"HTTP/1.1 ") == 1
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.slow
def test_f73_connections_that_say_nothing_are_bounded(two_runs, tmp_path):
    """Whoever comes when all places are taken is turned away, and gets one when it is free."""
    with viewing(two_runs, tmp_path) as server:
        client = Client(server)
        before = threading.active_count()
        silent = [
            socket.create_connection(("127.0.0.1", client.port), timeout=10) for _ in range(200)
        ]
        for connection in silent:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: ")
        assert silent[-1].recv(1) == b""
        assert threading.active_count() - before <= MAX_CONNECTIONS
        for connection in silent:
            connection.close()
        for _ in range(100):
            with suppress(OSError, HTTPException):
                if client.known("/runs").status == 200:
                    break
            time.sleep(0.1)
        assert client.known("/runs").status == 200


class Faulty:
    """A viewer with a fault in it."""

    def answer(self, asked):
        raise KeyError("a fault")

    def close(self):
        pass


def test_f73_a_fault_of_ours_is_a_500_and_the_server_stays(capfd):
    with ViewServer(Faulty(), 0) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            client = Client(server)
            assert [client.known("/runs").status for _ in range(2)] == [500, 500]
        finally:
            server.shutdown()
            thread.join()
    assert "KeyError: 'a fault'" in capfd.readouterr().err
