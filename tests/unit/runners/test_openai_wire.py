"""One response over a real socket, in every shape that HTTP allows and some that it does not."""

import asyncio
import gzip
import zlib
from base64 import b64encode

import pytest
from tests.endpoints import Answer, Server, TunnelProxy, self_signed
from tests.hostile_answers import FRAMING

from callmark.errors import UsageError
from callmark.runners.http import client as http_transport
from callmark.runners.http.client import Transport, endpoint_of
from callmark.runners.http.detours import INFLATED_AT_ONCE, MOST_MEMBERS, inflate, why
from callmark.runners.http.trouble import NO_HTTP, NOT_INFLATED, TOO_LARGE, Lost, Response
from callmark.runners.options import ServedOptions

BODY = b'{"choices": []}'
ZIPPED = gzip.compress(BODY, mtime=0)


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)


def transport_to(url, timeout=5.0, keep_alive=True):
    return Transport(
        endpoint_of(ServedOptions(base_url=url)), timeout=timeout, keep_alive=keep_alive
    )


def exchange(transport, times=1):
    async def talk():
        try:
            return [await transport.post(b'{"n": 1}') for _ in range(times)]
        finally:
            await transport.close()
            await asyncio.sleep(0)

    return asyncio.run(talk())


def raw(head: bytes, body: bytes = b"") -> Answer:
    return Answer(raw=head.replace(b"\n", b"\r\n") + body)


WHOLE = {
    "length": raw(b"HTTP/1.1 200 OK\nContent-Length: 15\n\n", BODY),
    "until the end": raw(b"HTTP/1.1 200 OK\nConnection: close\n\n", BODY),
    "old": raw(b"HTTP/1.0 200 OK\n\n", BODY),
    "chunked": raw(b"HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n", b"5\r\n" + BODY[:5] + b"\r\nA;x=y\r\n" + BODY[5:] + b"\r\n0\r\n\r\n"),
    "with trailers": raw(b"HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n", b"f\r\n" + BODY + b"\r\n0\r\nX-T: 1\r\n\r\n"),
    "after a 100": raw(b"HTTP/1.1 100 Continue\n\nHTTP/1.1 200 OK\nContent-Length: 15\n\n", BODY),
    "no reason": raw(b"HTTP/1.1 200\ncontent-length:15\n\n", BODY),
    "zipped": Answer(body=ZIPPED, headers={"Content-Encoding": "gzip"}),
}  # fmt: skip


@pytest.mark.parametrize("shape", WHOLE)
def test_every_shape_of_a_response_is_read_whole(shape):
    with Server(lambda _: WHOLE[shape]) as server:
        [response] = exchange(transport_to(server.url))
    assert isinstance(response, Response), response
    assert (response.status, response.body) == (200, BODY)


GOOD = Answer(body=BODY)
BROKEN = {
    "nothing": Answer(body=BODY, keep=0),
    "cut in the first line": Answer(body=BODY, keep=7),
    "cut in the headers": Answer(body=BODY, keep=30),
    "cut in the body": Answer(body=BODY, keep=len(GOOD.data()) - 3),
    "cut in a chunk": raw(b"HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n", b"f\r\n{"),
    "cut after a chunk": raw(b"HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n", b"1\r\n{\r\n"),
    "no chunk": raw(b"HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n", b"zz\r\n{\r\n"),
    "no HTTP": Answer(raw=b"SSH-2.0-OpenSSH_9.6\r\n\r\n"),
    "binary": Answer(raw=bytes(range(256)) * 3),
    "no status": raw(b"HTTP/1.1 OK\n\n"),
    "no length": raw(b"HTTP/1.1 200 OK\nContent-Length: many\n\n", BODY),
    "negative length": raw(b"HTTP/1.1 200 OK\nContent-Length: -1\n\n", BODY),
    "not zipped": Answer(body=BODY, headers={"Content-Encoding": "gzip"}),
}  # fmt: skip


@pytest.mark.parametrize("shape", BROKEN)
def test_a_broken_response_is_lost_and_says_why(shape):
    with Server(lambda _: BROKEN[shape]) as server:
        [outcome] = exchange(transport_to(server.url))
    assert isinstance(outcome, Lost), outcome
    assert outcome.reason
    assert not outcome.unreachable
    assert not outcome.timed_out


@pytest.mark.parametrize("slow", [Answer(before=9.0), Answer(body=BODY, between=0.05)])
def test_silence_and_a_slow_drip_end_at_the_time_limit(slow):
    with Server(lambda _: slow) as server:
        [outcome] = exchange(transport_to(server.url, timeout=0.2))
    assert outcome == Lost("no answer within 0.2 s (request_timeout)", timed_out=True)


def test_nobody_there_is_unreachable():
    with Server(lambda _: GOOD) as server:
        url = server.url
    [outcome] = exchange(transport_to(url))
    assert isinstance(outcome, Lost)
    assert outcome.unreachable
    assert "refused" in outcome.reason.lower() or "Connect call failed" in outcome.reason


def test_connections_are_kept():
    with Server(lambda _: GOOD) as server:
        assert all(isinstance(one, Response) for one in exchange(transport_to(server.url), 5))
        assert server.connections == 1


def test_a_connection_that_is_to_be_closed_is_not_used_again():
    closing = Answer(body=BODY, headers={"Connection": "close"})
    with Server(lambda _: closing) as server:
        assert all(isinstance(one, Response) for one in exchange(transport_to(server.url), 3))
        assert server.connections == 3


def test_what_comes_after_an_answer_is_not_the_next_one():
    """An answer that nobody asked for, a moment after the right one, on a connection that is
    kept: whoever comes next must not take it for his."""
    wrong = Answer(body=b"wrong").data()

    def later():
        yield b""
        yield wrong

    twice = Answer(raw=GOOD.data(), then=later(), ends="silent")
    answers = [twice, GOOD]

    async def talk(transport):
        first = await transport.post(b"{}")
        await asyncio.sleep(0.1)
        second = await transport.post(b"{}")
        await transport.close()
        return first, second

    with Server(lambda _: answers.pop(0)) as server:
        first, second = asyncio.run(talk(transport_to(server.url)))
        assert server.connections == 2
    assert (first.body, second.body) == (BODY, BODY)


def test_without_keep_alive_each_request_has_its_own():
    with Server(lambda _: GOOD) as server:
        exchange(transport_to(server.url, keep_alive=False), 3)
        assert server.connections == 3
        assert {request.headers["connection"] for request in server.requests} == {"close"}


def test_a_kept_connection_that_the_server_closed_is_not_used():
    """After a pause that is longer than connections are kept for, a new one is made."""

    async def talk(transport):
        first = await transport.post(b"{}")
        await asyncio.sleep(0.05)
        second = await transport.post(b"{}")
        await transport.close()
        return first, second

    closing = Answer(raw=GOOD.data())  # promises to stay, and goes
    with Server(lambda _: closing) as server:
        first, second = asyncio.run(talk(transport_to(server.url)))
    assert isinstance(first, Response)
    assert isinstance(second, Response)


def test_the_request_is_what_was_to_be_sent():
    with Server(lambda _: GOOD) as server:
        exchange(transport_to(server.url))
        [request] = server.requests
    assert (request.method, request.path, request.body) == (
        "POST",
        "/v1/chat/completions",
        {"n": 1},
    )
    assert request.headers["content-type"] == "application/json"
    assert request.headers["host"] == f"127.0.0.1:{server.port}"


def test_a_proxy_of_the_environment_is_used(monkeypatch):
    with Server(lambda _: GOOD) as proxy:
        monkeypatch.setenv("http_proxy", f"http://user:word@127.0.0.1:{proxy.port}")
        [response] = exchange(transport_to("http://example.invalid/v1"))
        [request] = proxy.requests
    assert isinstance(response, Response)
    assert request.path == "http://example.invalid/v1/chat/completions"
    assert request.headers["proxy-authorization"].startswith("Basic ")


def test_no_proxy_is_heeded(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with Server(lambda _: GOOD) as server:
        [response] = exchange(transport_to(server.url))
    assert isinstance(response, Response)


def test_tls_is_spoken_only_to_who_can_show_who_he_is(tmp_path):
    with Server(lambda _: GOOD, certificate=self_signed(tmp_path)) as server:
        [unknown] = exchange(transport_to(server.url))
        assert server.requests == []
    assert isinstance(unknown, Lost)
    assert unknown.unreachable
    assert unknown.reason.startswith("TLS: ")


def test_tls_through_a_proxy_is_spoken_with_the_server(tmp_path, monkeypatch):
    """The proxy is told the host and its own password, and nothing else."""
    made = self_signed(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(made))
    with TunnelProxy() as proxy, Server(lambda _: GOOD, certificate=made) as server:
        monkeypatch.setenv("https_proxy", f"http://user:w%40rd@127.0.0.1:{proxy.port}")
        found = exchange(transport_to(server.url), 3)
        assert [one.body for one in found] == [BODY] * 3
        assert server.connections == 1
        [request] = server.requests[:1]
    assert request.path == "/v1/chat/completions"
    assert "proxy-authorization" not in request.headers
    [head] = proxy.heads
    assert head.startswith(f"CONNECT 127.0.0.1:{server.port} HTTP/1.1\r\n")
    assert f"Proxy-Authorization: Basic {b64encode(b'user:w@rd').decode()}\r\n" in head
    assert "chat" not in head


REFUSING = {
    b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n": "status 407",
    b"HTTP/1.1 502 Bad Gateway\r\n\r\nno": "status 502",
    b"SSH-2.0-OpenSSH_9.6\r\n": "does not speak HTTP",
    b"HTTP/1.1 200 OK\r\n\r\nno TLS": "does not speak HTTP",
    b"HTTP/2.0": "does not speak HTTP",
    b"": "cut the connection",
}


@pytest.mark.parametrize("answer", REFUSING)
def test_a_proxy_that_opens_no_way_makes_the_server_unreachable(answer, monkeypatch):
    with TunnelProxy(answer) as proxy:
        monkeypatch.setenv("https_proxy", f"127.0.0.1:{proxy.port}")
        [outcome] = exchange(transport_to("https://example.invalid/v1"))
    assert isinstance(outcome, Lost)
    assert outcome.unreachable
    assert outcome.reason.startswith("the proxy ")


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1", "http://", "http://h:port", "ftp://h"])
def test_a_proxy_of_another_kind_is_refused_without_its_password(proxy, monkeypatch):
    monkeypatch.setenv("http_proxy", proxy.replace("://", "://user:secret-word@"))
    with pytest.raises(UsageError, match="no_proxy") as refused:
        transport_to("http://example.invalid/v1")
    assert "secret-word" not in str(refused.value)


@pytest.mark.parametrize("host", ["a..b", "x" * 70, ".local"])
def test_a_host_that_cannot_be_one_is_unreachable(host):
    [outcome] = exchange(transport_to(f"http://{host}/v1"))
    assert isinstance(outcome, Lost)
    assert outcome.unreachable


@pytest.mark.parametrize("name", ["X Y", "X:Y", "X\r\nY", "", "Content-Length", "Größe"])
def test_f12_no_header_can_become_another(name):
    with pytest.raises(UsageError, match="--headers"):
        endpoint_of(ServedOptions(base_url="http://h/v1", headers={name: "1"}))


def test_what_is_given_as_a_header_takes_the_place_of_ours():
    given = {"host": "elsewhere", "user-agent": "mine", "accept-encoding": "gzip"}
    with Server(lambda _: GOOD) as server:
        endpoint = endpoint_of(ServedOptions(base_url=server.url, headers=given))
        exchange(Transport(endpoint, timeout=5.0, keep_alive=True))
        [request] = server.requests
    assert {name: request.headers[name] for name in given} == given


def test_addresses_are_escaped_where_they_have_to_be():
    with Server(lambda _: GOOD) as server:
        exchange(transport_to(f"{server.url}/a b/ü%20c?x=1&y=é&z=%2F"))
        [request] = server.requests
    assert request.path == "/v1/a%20b/%C3%BC%20c/chat/completions?x=1&y=%C3%A9&z=%2F"


def test_a_redirect_is_not_followed():
    with Server(lambda _: GOOD) as other:
        there = Answer(307, headers={"Location": f"{other.url}/chat/completions"})
        with Server(lambda _: there) as server:
            [response] = exchange(transport_to(server.url))
        assert response.status == 307
        assert other.connections == 0


AT_ONCE = [
    name
    for name, (answer, is_right) in FRAMING.items()
    if is_right is False and answer.ends == "silent" and answer.raw and "open" not in name
]


@pytest.mark.parametrize("name", AT_ONCE)
def test_f9_f10_wrong_framing_is_an_error_at_once(name):
    """The server holds the connection open: who waits for more waits for the time limit."""
    with Server(lambda _: FRAMING[name][0]) as server:
        [outcome] = exchange(transport_to(server.url, timeout=60.0))
    assert outcome in (NO_HTTP, TOO_LARGE)


def test_f11_many_large_bodies_are_read_one_after_the_other(monkeypatch):
    monkeypatch.setattr(http_transport, "LARGE", 1000)
    size = 300_000
    transport = None

    def answer(_):
        return Answer(body=b" " * size, headers={"Connection": "close"})

    async def talk():
        nonlocal transport
        transport = transport_to(server.url)
        found = await asyncio.gather(*(transport.post(b"{}") for _ in range(8)))
        await transport.close()
        return found

    with Server(answer) as server:
        assert [len(one.body) for one in asyncio.run(talk())] == [size] * 8


def test_a_connection_is_kept_after_a_large_body():
    large = Answer(body=b" " * (http_transport.LARGE * 3))
    with Server(lambda _: large) as server:
        found = exchange(transport_to(server.url), 3)
        assert [len(one.body) for one in found] == [http_transport.LARGE * 3] * 3
        assert server.connections == 1


def test_a_trial_that_is_given_up_gives_up_its_connection():
    """Whoever comes next does not get the answer that nobody waited for."""
    answers = [Answer(body=b"late", before=0.2), GOOD]

    async def talk(transport):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await transport.post(b"{}")
        second = await transport.post(b"{}")
        await transport.close()
        return second

    with Server(lambda _: answers.pop(0)) as server:
        assert asyncio.run(talk(transport_to(server.url))).body == BODY
        assert server.connections == 2


STEP = INFLATED_AT_ONCE


@pytest.mark.parametrize("size", [0, 1, STEP - 1, STEP, STEP + 1, 3 * STEP])
@pytest.mark.parametrize("level", [0, 6])
def test_f11_what_was_compressed_comes_back_whole(size, level):
    body = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    assert inflate(gzip.compress(body, level), "gzip") == body
    assert inflate(zlib.compress(body, level), "deflate") == body
    assert inflate(gzip.compress(body) * 3, "GZIP") == body * 3
    assert inflate(body, "identity") == body


def test_f11_what_cannot_be_undone_is_lost():
    packed = gzip.compress(b"x" * 3 * STEP)
    for cut in (1, 9, len(packed) // 2, len(packed) - 1):
        assert inflate(packed[:cut], "gzip") == NOT_INFLATED
    assert inflate(gzip.compress(b"") * (MOST_MEMBERS + 1), "gzip") == NOT_INFLATED
    assert inflate(packed, "br") == NOT_INFLATED
    assert inflate(packed, "gzip, gzip") == NOT_INFLATED


@pytest.mark.parametrize("size", [99, 100, 101, 5000])
def test_f11_a_body_has_a_bound_whatever_its_framing(monkeypatch, size):
    monkeypatch.setattr(http_transport, "MOST_BYTES", 100)
    monkeypatch.setattr(http_transport, "LARGE", 10)
    body = b"x" * size
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    ways = [
        Answer(body=body),
        Answer(raw=b"HTTP/1.1 200 OK\r\n\r\n" + body),
        Answer(raw=chunked + b"%x\r\n%b\r\n0\r\n\r\n" % (size, body)),
        Answer(body=gzip.compress(body), headers={"Content-Encoding": "gzip"}),
    ]
    for way in ways:
        with Server(lambda _, way=way: way) as server:
            [outcome] = exchange(transport_to(server.url))
        if size <= 100:
            assert outcome.body == body
        else:
            assert outcome == TOO_LARGE


@pytest.mark.parametrize("name", ["chunked twice", "two equal lengths"])
def test_f10_a_connection_that_spoke_no_http_is_not_used_again(name):
    spoilt = Answer(raw=FRAMING[name][0].data(), ends="silent")
    answers = [spoilt, GOOD]
    with Server(lambda _: answers.pop(0)) as server:
        first, second = exchange(transport_to(server.url), 2)
        assert server.connections == 2
    assert first == NO_HTTP
    assert second.body == BODY


def test_f12_a_connection_that_fails_does_not_tell_the_address():
    told = "Can not write request body for http://h/v1?key=secret-in-a-query"
    [failed, unknown] = [OSError(32, told), OSError(told)]
    assert why(failed) == "Broken pipe"
    assert why(unknown) == "OSError"
