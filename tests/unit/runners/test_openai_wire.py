"""One response over a real socket, in every shape that HTTP allows and some that it does not. Both
ways to talk to a server are held to the same."""

import asyncio
import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.endpoints import Answer, Server

from callmark.runners.http_endpoint import endpoint_of
from callmark.runners.http_transport import AiohttpTransport, Lost, Response, open_transport
from callmark.runners.http_wire import Wire, _Connection
from callmark.runners.options import Served

BODY = b'{"choices": []}'
ZIPPED = gzip.compress(BODY, mtime=0)


def wire(url, timeout=5.0, keep_alive=True):
    return Wire(endpoint_of(Served(base_url=url)), timeout=timeout, keep_alive=keep_alive)


def by_aiohttp(url, timeout=5.0, keep_alive=True):
    endpoint = endpoint_of(Served(base_url=url))
    return AiohttpTransport(endpoint, timeout=timeout, keep_alive=keep_alive, proxy=None)


@pytest.fixture(params=[wire, by_aiohttp])
def transport_to(request):
    return request.param


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
def test_every_shape_of_a_response_is_read_whole(transport_to, shape):
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
def test_a_broken_response_is_lost_and_says_why(transport_to, shape):
    with Server(lambda _: BROKEN[shape]) as server:
        [outcome] = exchange(transport_to(server.url))
    assert isinstance(outcome, Lost), outcome
    assert outcome.reason
    assert not outcome.unreachable
    assert not outcome.timed_out


@pytest.mark.parametrize("slow", [Answer(before=9.0), Answer(body=BODY, between=0.05)])
def test_silence_and_a_slow_drip_end_at_the_time_limit(transport_to, slow):
    with Server(lambda _: slow) as server:
        [outcome] = exchange(transport_to(server.url, timeout=0.2))
    assert outcome == Lost("no answer within 0.2 s (request_timeout)", timed_out=True)


def test_nobody_there_is_unreachable(transport_to):
    with Server(lambda _: GOOD) as server:
        url = server.url
    [outcome] = exchange(transport_to(url))
    assert isinstance(outcome, Lost)
    assert outcome.unreachable
    assert "refused" in outcome.reason.lower() or "Connect call failed" in outcome.reason


def test_connections_are_kept(transport_to):
    with Server(lambda _: GOOD) as server:
        assert all(isinstance(one, Response) for one in exchange(transport_to(server.url), 5))
        assert server.connections == 1


def test_a_connection_that_is_to_be_closed_is_not_used_again(transport_to):
    closing = Answer(body=BODY, headers={"Connection": "close"})
    with Server(lambda _: closing) as server:
        assert all(isinstance(one, Response) for one in exchange(transport_to(server.url), 3))
        assert server.connections == 3


def test_what_comes_after_an_answer_is_not_the_next_one():
    with Server(lambda _: Answer(raw=GOOD.data() + b"HTTP/1.1 200 OK\r\n\r\n")) as server:
        assert {one.body for one in exchange(wire(server.url), 3)} == {BODY}
        assert server.connections == 3


def test_without_keep_alive_each_request_has_its_own(transport_to):
    with Server(lambda _: GOOD) as server:
        exchange(transport_to(server.url, keep_alive=False), 3)
        assert server.connections == 3
        assert {request.headers["connection"] for request in server.requests} == {"close"}


def test_a_kept_connection_that_the_server_closed_is_not_used(transport_to):
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


def test_the_request_is_what_was_to_be_sent(transport_to):
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


def test_tls_and_proxies_go_through_aiohttp(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)

    def kind(url):
        return type(open_transport(endpoint_of(Served(base_url=url)), timeout=1, keep_alive=True))

    assert kind("https://h/v1") is AiohttpTransport
    assert kind("http://h/v1") is Wire
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    assert kind("http://h/v1") is AiohttpTransport
    monkeypatch.setenv("no_proxy", "h")
    assert kind("http://h/v1") is Wire


def test_a_proxy_of_the_environment_is_used(monkeypatch):
    with Server(lambda _: GOOD) as proxy:
        monkeypatch.setenv("http_proxy", f"http://user:word@127.0.0.1:{proxy.port}")
        endpoint = endpoint_of(Served(base_url="http://example.invalid/v1"))
        [response] = exchange(open_transport(endpoint, timeout=5, keep_alive=True))
        [request] = proxy.requests
    assert isinstance(response, Response)
    assert request.path == "http://example.invalid/v1/chat/completions"
    assert request.headers["proxy-authorization"].startswith("Basic ")


class Nowhere(asyncio.Transport):
    """What a connection writes to when only its reading matters."""

    def write(self, data):
        pass

    def is_closing(self):
        return False

    def abort(self):
        pass


@settings(max_examples=60)
@given(st.sampled_from(sorted(WHOLE.keys() - {"until the end", "old"})), st.data())
def test_however_a_response_is_cut_into_packets_it_is_the_same(shape, data):
    async def talk():
        whole = WHOLE[shape].data()
        cuts = sorted(data.draw(st.sets(st.integers(1, len(whole) - 1), max_size=8)))
        connection = _Connection()
        connection.connection_made(Nowhere())
        answer = asyncio.ensure_future(connection.exchange(b"", 9.0))
        await asyncio.sleep(0)
        for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
            connection.data_received(whole[start:end])
        return await answer

    head, body = asyncio.run(talk())
    assert head.status == 200
    assert body in (BODY, ZIPPED)
