"""Answers of a server that is broken, careless or malicious, by name. Each has to end as one lost
trial, or as the right answer where what it says can be read without doubt."""

from __future__ import annotations

import gzip
import json
import time
import zlib
from collections.abc import Callable, Iterator
from itertools import repeat

from tests.endpoints import Answer, completion

RIGHT = "There live 1000 people there."
GOOD = json.dumps(completion(RIGHT).body).encode()
SIZE = len(GOOD)
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def raw(head: bytes, body: bytes = b"", **how: object) -> Answer:
    return Answer(raw=head.replace(b"\n", b"\r\n") + body, **how)


def ok(*headers: str, body: bytes = GOOD, **how: object) -> Answer:
    head = "\r\n".join(["HTTP/1.1 200 OK", *headers, "", ""]).encode("latin-1")
    return Answer(raw=head + body, **how)


def chunk(size: str, data: bytes, end: bytes = b"\r\n") -> bytes:
    return size.encode() + b"\r\n" + data + end


def chunks(*parts: bytes, **how: object) -> Answer:
    return Answer(raw=CHUNKED + b"".join(parts), **how)


class Again:
    """What is asked for anew by everybody who wants it."""

    def __init__(self, make: Callable[[], Iterator[bytes]]) -> None:
        self._make = make

    def __iter__(self) -> Iterator[bytes]:
        return self._make()


def endless(piece: bytes) -> Again:
    return Again(lambda: repeat(piece))


def bomb(megabytes: int) -> bytes:
    """A gzip body that is a thousandth of what it holds."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(bytes(16 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    head = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
    return head + block * (megabytes // 16) + b"\x03\x00" + bytes(8)


def in_chunks(megabytes: int) -> Iterator[bytes]:
    data = bomb(megabytes)
    yield from (chunk(f"{len(data):x}", data), b"0\r\n\r\n")


def encoded(name: str, body: object) -> Answer:
    return Answer(body=body, headers={"Content-Encoding": name})


def deflated(data: bytes, bits: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, bits)
    return packer.compress(data) + packer.flush()


def late(*parts: bytes, **how: object) -> Answer:
    """The head first, and after a moment what makes it wrong."""

    def after() -> Iterator[bytes]:
        for part in parts:
            time.sleep(0.03)
            yield part

    return Answer(raw=CHUNKED, then=Again(after), **how)


LAST = b"0\r\n\r\n"
WHOLE = chunk(f"{SIZE:x}", GOOD)
# Name: the answer, and whether it is right (True), lost (False), or may be either (None: what the
# RFC leaves open, and the two parsers of the library see differently).
FRAMING: dict[str, tuple[Answer, bool | None]] = {
    "chunk of -6": (chunks(chunk("-6", GOOD), LAST, ends="silent"), False),
    "chunk of +5": (chunks(chunk(f"+{SIZE:x}", GOOD), LAST, ends="silent"), False),
    "chunk of 0x": (chunks(chunk(f"0x{SIZE:x}", GOOD), LAST, ends="silent"), False),
    "chunk of 1_0": (chunks(chunk("1_0", GOOD), LAST, ends="silent"), False),
    "chunk of nothing": (chunks(chunk("", GOOD), LAST, ends="silent"), False),
    "chunk of g": (chunks(chunk("g", GOOD), LAST, ends="silent"), False),
    "chunk of 17 digits": (chunks(chunk("f" * 17, GOOD), LAST, ends="silent"), False),
    "chunk of 5000 digits": (chunks(chunk("f" * 5000, GOOD), LAST, ends="silent"), False),
    "chunk without an end": (chunks(chunk(f"{SIZE:x}", GOOD, b""), LAST, ends="silent"), False),
    "chunk with a wrong end": (chunks(chunk(f"{SIZE:x}", GOOD, b"XX"), LAST, ends="silent"), False),
    "chunk with half an end": (chunks(chunk(f"{SIZE:x}", GOOD, b"\rX"), LAST, ends="silent"), False),
    "late chunk of -6": (late(chunk("-6", GOOD), LAST, ends="silent"), False),
    "late chunk without an end": (late(chunk(f"{SIZE:x}", GOOD, b""), LAST, ends="silent"), False),
    "late chunk of 5000 digits": (late(chunk("f" * 5000, GOOD), ends="silent"), False),
    "late nonsense": (late(WHOLE, b"nonsense\r\n", ends="silent"), False),
    "late and right": (late(WHOLE[:9], WHOLE[9:], b"0\r", b"\n\r\n"), True),
    "chunk too short": (chunks(chunk(f"{SIZE - 3:x}", GOOD), LAST, ends="silent"), False),
    "chunk too long": (chunks(chunk(f"{SIZE + 3:x}", GOOD), LAST), False),
    "chunk size and a blank": (chunks(chunk(f"{SIZE:x} ", GOOD), LAST), None),
    "chunk size after a blank": (chunks(chunk(f" {SIZE:x}", GOOD), LAST), None),
    "chunk with bare LF": (chunks(f"{SIZE:x}\n".encode() + GOOD + b"\n", b"0\n\n"), None),
    "chunk with an extension": (chunks(chunk(f"{SIZE:X};a=b", GOOD), LAST), True),
    "chunk with an endless extension": (chunks(f"{SIZE:x};".encode(), then=endless(b"a" * 9999)), False),
    "chunks without a last": (chunks(WHOLE), False),
    "chunks without a last, open": (chunks(WHOLE, ends="silent"), False),
    "chunks of one byte": (chunks(*(chunk("1", GOOD[at : at + 1]) for at in range(SIZE)), LAST), True),
    "chunks without end": (chunks(then=endless(chunk("ffff", b" " * 0xFFFF))), False),
    "trailers": (chunks(WHOLE, b"0\r\nX-A: 1\r\n\r\n"), True),
    "trailers without end": (chunks(WHOLE, b"0\r\n", then=endless(b"X-A: 1\r\n")), False),
    "trailer that is none": (chunks(WHOLE, b"0\r\nnot a header\r\n\r\n"), None),
    "two lengths": (ok(f"Content-Length: {SIZE}", f"Content-Length: {SIZE + 1}", ends="silent"), False),
    "two equal lengths": (ok(f"Content-Length: {SIZE}", f"Content-Length: {SIZE}"), None),
    "lengths in a list": (ok(f"Content-Length: {SIZE}, {SIZE}", ends="silent"), None),
    "length and chunks": (ok("Content-Length: 5", "Transfer-Encoding: chunked", body=WHOLE + LAST), False),
    "xchunked": (ok("Transfer-Encoding: xchunked", body=WHOLE + LAST, ends="silent"), False),
    "chunked, identity": (ok("Transfer-Encoding: chunked, identity", body=WHOLE + LAST, ends="silent"), False),
    "chunked twice": (ok("Transfer-Encoding: chunked", "Transfer-Encoding: chunked", body=WHOLE + LAST, ends="silent"), False),
    "identity": (ok("Transfer-Encoding: identity", ends="silent"), False),
    "length of -1": (ok("Content-Length: -1", ends="silent"), False),
    "length with a plus": (ok(f"Content-Length: +{SIZE}", ends="silent"), False),
    "length in hex": (ok(f"Content-Length: 0x{SIZE:x}", ends="silent"), False),
    "length with an underscore": (ok("Content-Length: 1_0", ends="silent"), False),
    "length of no digit": (ok("Content-Length: many", ends="silent"), False),
    "length of nothing": (ok("Content-Length:", ends="silent"), False),
    "length of 5000 digits": (ok("Content-Length: " + "9" * 5000, ends="silent"), False),
    "length of 2**64": (ok(f"Content-Length: {2**64}", ends="silent"), False),
    "length of a terabyte": (ok(f"Content-Length: {10**12}", ends="silent"), False),
    "length of other digits": (Answer(raw="HTTP/1.1 200 OK\r\nContent-Length: ١٢\r\n\r\n".encode() + GOOD, ends="silent"), False),
    "length and a decimal point": (ok(f"Content-Length: {SIZE}.0", ends="silent"), False),
    "length before a blank": (ok(f"Content-Length : {SIZE}"), None),
    "length too short": (ok(f"Content-Length: {SIZE - 5}", ends="silent"), False),
    "length too long": (ok(f"Content-Length: {SIZE + 5}"), False),
    "length too long, open": (ok(f"Content-Length: {SIZE + 5}", ends="silent"), False),
    "no length, open": (ok(ends="silent"), False),
    "no length": (ok("Connection: close"), True),
    "bare LF": (Answer(raw=f"HTTP/1.1 200 OK\nContent-Length: {SIZE}\n\n".encode() + GOOD), None),
    "bare CR": (Answer(raw=f"HTTP/1.1 200 OK\rContent-Length: {SIZE}\r\r".encode() + GOOD, ends="silent"), False),
    "folded header": (ok("X-A: 1", " 2", f"Content-Length: {SIZE}"), None),
    "header without a colon": (ok("X-A", f"Content-Length: {SIZE}", ends="silent"), None),
    "header without a name": (ok(": x", f"Content-Length: {SIZE}", ends="silent"), None),
    "header with a zero byte": (ok("X-A: a\0b", f"Content-Length: {SIZE}", ends="silent"), None),
    "header of bytes": (ok("X-A: \xff\xfe", f"Content-Length: {SIZE}"), None),
    "header of 1 MB": (ok("X-A: " + "a" * (1 << 20), f"Content-Length: {SIZE}"), False),
    "name of 1 MB": (ok("X" * (1 << 20) + ": a", f"Content-Length: {SIZE}"), False),
    "header without end": (raw(b"HTTP/1.1 200 OK\nX-A: ", then=endless(b"a" * 9999)), False),
    "headers without end": (raw(b"HTTP/1.1 200 OK\n", then=endless(b"X-A: 1\r\n" * 999)), False),
    "reason without end": (raw(b"HTTP/1.1 200 ", then=endless(b"a" * 9999)), False),
    "a hundred 100s": (Answer(raw=b"HTTP/1.1 100 Continue\r\n\r\n" * 100 + Answer(body=GOOD).data()), True),
    "100s without end": (raw(b"", then=endless(b"HTTP/1.1 100 Continue\r\n\r\n" * 99)), False),
    "103 first": (raw(b"HTTP/1.1 103 Early Hints\nLink: x\n\n", Answer(body=GOOD).data()), True),
    "101": (raw(b"HTTP/1.1 101 Switching Protocols\nUpgrade: websocket\nConnection: Upgrade\n\n", ends="silent"), False),
    "101 to h2c": (raw(b"HTTP/1.1 101 X\nUpgrade: h2c\nConnection: Upgrade\n\n", GOOD, ends="silent"), False),
    "status of two digits": (raw(b"HTTP/1.1 20 OK\n\n", GOOD, ends="silent"), False),
    "status of four digits": (raw(b"HTTP/1.1 2000 OK\n\n", GOOD, ends="silent"), False),
    "status of 000": (raw(b"HTTP/1.1 000 X\nContent-Length: 0\n\n"), False),
    "status of 999": (raw(b"HTTP/1.1 999 X\nContent-Length: 0\n\n"), False),
    "status with a sign": (raw(b"HTTP/1.1 +200 OK\n\n", GOOD, ends="silent"), False),
    "no status": (raw(b"HTTP/1.1\n\n", GOOD, ends="silent"), False),
    "HTTP/0.9": (Answer(raw=GOOD), False),
    "HTTP/1.0": (raw(b"HTTP/1.0 200 OK\n\n", GOOD), True),
    "HTTP/2": (raw(b"HTTP/2 200\n\n", GOOD, ends="silent"), False),
    "HTTP/3.7": (raw(b"HTTP/3.7 200 OK\n\n", GOOD, ends="silent"), False),
    "HTTP/2 frames": (Answer(raw=b"\0\0\x12\x04\0\0\0\0\0" + bytes(18), ends="silent"), False),
    "another protocol": (Answer(raw=b"SSH-2.0-OpenSSH_9.6\r\n", ends="silent"), False),
    "binary": (Answer(raw=bytes(range(256)) * 8, ends="silent"), False),
    "ICY": (raw(b"ICY 200 OK\n\n", GOOD, ends="silent"), False),
    "blank lines first": (Answer(raw=b"\r\n\r\n" + Answer(body=GOOD).data()), None),
    "blank lines without end": (Answer(raw=b"", then=endless(b"\r\n" * 999)), False),
    "two answers": (Answer(raw=Answer(body=GOOD).data() * 2), None),
    "an answer and rubbish": (Answer(raw=Answer(body=GOOD).data() + b"rubbish" * 99), None),
    "closed at once": (Answer(raw=b""), False),
    "reset at once": (Answer(raw=b"", ends="reset"), False),
    "reset in the head": (raw(b"HTTP/1.1 200 OK\nContent-", ends="reset"), False),
    "reset in the body": (ok(f"Content-Length: {SIZE}", body=GOOD[:50], ends="reset"), False),
    "silence": (Answer(raw=b"", ends="silent"), False),
    "a slow drip": (Answer(body=GOOD, between=0.2), False),
    "a slow drip of chunks": (Answer(raw=CHUNKED + WHOLE + LAST, between=0.2), False),
    "a body without end": (ok(body=b"", then=endless(b" " * 65536)), False),
    "a body of 1 GB": (ok(f"Content-Length: {1 << 30}", body=b"", then=endless(b" " * 65536)), False),
    "a body of 65 MB": (Answer(body=lambda: GOOD + b" " * (65 << 20)), False),
    "a body with 30 MB of blanks": (Answer(body=lambda: GOOD + b" " * (30 << 20)), True),
}  # fmt: skip
ENCODINGS: dict[str, tuple[Answer, bool | None]] = {
    "gzip": (encoded("gzip", gzip.compress(GOOD)), True),
    "x-gzip": (encoded("x-gzip", gzip.compress(GOOD)), None),
    "gzip in two members": (encoded("gzip", gzip.compress(GOOD[:50]) + gzip.compress(GOOD[50:])), None),
    "deflate": (encoded("deflate", deflated(GOOD, 15)), True),
    "deflate, raw": (encoded("deflate", deflated(GOOD, -15)), None),
    "a bomb of 4 GB": (encoded("gzip", lambda: bomb(4096)), False),
    "a bomb of 4 GB in chunks": (ok("Transfer-Encoding: chunked", "Content-Encoding: gzip", body=b"", then=Again(lambda: in_chunks(4096))), False),
    "a bomb in a bomb": (encoded("gzip, gzip", lambda: gzip.compress(bomb(1024))), False),
    "a bomb of 63 MB": (encoded("gzip", lambda: gzip.compress(b" " * (60 << 20) + GOOD, 1)), True),
    "empty blocks without end": (ok("Content-Encoding: deflate", body=b"\x78\x9c", then=endless(b"\0\0\0\xff\xff" * 9999)), False),
    "empty members": (encoded("gzip", gzip.compress(b"") * 5000), False),
    "gzip that is none": (encoded("gzip", GOOD), False),
    "gzip cut off": (encoded("gzip", gzip.compress(GOOD)[:-20]), False),
    "gzip with a wrong sum": (encoded("gzip", gzip.compress(GOOD)[:-8] + bytes(8)), False),
    "gzip of nothing": (encoded("gzip", b""), False),
    "brotli": (encoded("br", bytes(range(50))), False),
    "zstd": (encoded("zstd", b"\x28\xb5\x2f\xfd" + bytes(40)), False),
    "compress": (encoded("compress", b"\x1f\x9d" + bytes(40)), False),
    "unknown encoding": (encoded("rot13", GOOD), None),
    "identity encoding": (encoded("identity", GOOD), True),
    "encoding of nonsense": (encoded("gz\xffip", GOOD), None),
    "gzip twice": (encoded("gzip, gzip", gzip.compress(gzip.compress(GOOD))), False),
}  # fmt: skip


def body_of(text: str | bytes) -> Answer:
    return Answer(body=text if isinstance(text, bytes) else text.encode())


def large(*parts: tuple[str, int]) -> Answer:
    """Each text so many times; made when it is asked for."""
    return Answer(body=lambda: "".join(text * times for text, times in parts).encode())


def said(message: object, **fields: object) -> Answer:
    return Answer(body={"choices": [{"message": message, "finish_reason": "stop"}], **fields})


def around(piece: str, place: str = "x") -> Answer:
    """The right answer with one more field, whose value is this text."""
    return body_of(GOOD.decode()[:-1] + f', "{place}": {piece}' + "}")


DEEP = "[" * 100_000 + "]" * 100_000
LONG = "9" * 5000
JSON: dict[str, tuple[Answer, bool | None]] = {
    "nothing": (body_of(b""), False),
    "null": (body_of("null"), False),
    "a number": (body_of("1"), False),
    "a string": (body_of('"x"'), False),
    "a list": (body_of("[]"), False),
    "an empty object": (body_of("{}"), False),
    "NaN": (body_of("NaN"), False),
    "NaN in usage": (around("NaN", "usage"), None),
    "Infinity in usage": (around("-Infinity", "usage"), None),
    "1e999 in usage": (around("1e999", "usage"), None),
    "5000 digits in usage": (around(LONG, "usage"), None),
    "5000 digits beside it": (around(LONG), None),
    "5000 digits in the error": (body_of('{"error": {"code": ' + LONG + "}}"), False),
    "5000 digits as a code": (body_of('{"error": {"code": "' + LONG + '"}}'), False),
    "5000 digits in arguments": (said({"tool_calls": [{"function": {"name": "web_search", "arguments": '{"q": ' + LONG + "}"}}]}), None),
    "4000 digits as arguments": (body_of('{"choices": [{"message": {"tool_calls": [{"function": {"name": "web_search", "arguments": {"q": ' + "9" * 4000 + "}}}]}}]}"), None),
    "deep": (body_of(DEEP), False),
    "deep, never closed": (body_of("[" * 1_000_000), False),
    "deep objects": (body_of('{"a":' * 100_000 + "1" + "}" * 100_000), False),
    "deep content": (body_of('{"choices": [{"message": {"content": ' + DEEP + "}}]}"), False),
    "deep usage": (around(DEEP, "usage"), None),
    "deep beside it": (around(DEEP), None),
    "deep arguments": (said({"tool_calls": [{"function": {"name": "web_search", "arguments": DEEP}}]}), None),
    "deep details": (body_of('{"choices": [{"message": {"content": "x", "reasoning_details": ' + "[" * 900 + "]" * 900 + "}}]}"), None),
    "deep extra content": (body_of('{"choices": [{"message": {"content": "x", "tool_calls": [{"function": {"name": "web_search", "arguments": "{}"}, "extra_content": ' + "[" * 300 + "]" * 300 + "}]}}]}"), None),
    "deep error": (body_of('{"error": ' + "[" * 800 + "]" * 800 + "}"), False),
    "duplicate keys": (body_of('{"choices": [], ' + GOOD.decode()[1:]), True),
    "invalid UTF-8": (body_of(GOOD.replace(b"people", b"peo\xffple")), False),
    "UTF-16": (body_of(GOOD.decode().encode("utf-16")), False),
    "latin-1": (Answer(body=GOOD.replace(b"people", b"\xe9\xe8"), headers={"Content-Type": "application/json; charset=latin-1"}), False),
    "a byte order mark": (body_of(b"\xef\xbb\xbf" + GOOD), None),
    "a zero byte": (body_of(GOOD + b"\0"), False),
    "lone surrogates": (body_of(b'{"choices": [{"message": {"content": "a\\ud800b\\udfff"}}]}'), None),
    "surrogates in arguments": (body_of(rb'{"choices": [{"message": {"tool_calls": [{"function": {"name": "web_search", "arguments": "{\"q\": \"\\ud800\"}"}}]}}]}'), None),
    "surrogates as a name": (body_of(b'{"choices": [{"message": {"tool_calls": [{"function": {"name": "\\ud800", "arguments": "{}"}}]}}]}'), None),
    "cut off": (body_of(GOOD[:-30]), False),
    "two values": (body_of(GOOD + GOOD), False),
    "single quotes": (body_of(GOOD.replace(b'"', b"'")), False),
    "a comment": (body_of(b"/* x */" + GOOD), False),
    "HTML": (Answer(body=b"<html>" + GOOD, headers={"Content-Type": "text/html"}), False),
    "XML": (body_of("<?xml version='1.0'?><a/>"), False),
    "a stream": (Answer(body=b"data: " + GOOD + b"\n\n", headers={"Content-Type": "text/event-stream"}), False),
    "no choices": (body_of('{"choices": []}'), False),
    "choices of null": (body_of('{"choices": null}'), False),
    "choices of a number": (body_of('{"choices": 7}'), False),
    "a choice of null": (body_of('{"choices": [null]}'), False),
    "a choice of a list": (body_of('{"choices": [[]]}'), False),
    "an empty choice": (body_of('{"choices": [{}]}'), False),
    "a message of null": (said(None), False),
    "a message of text": (said("x"), False),
    "content of a number": (said({"content": 7}), False),
    "content of true": (said({"content": True}), False),
    "content of an object": (said({"content": {"text": "x"}}), False),
    "content of odd parts": (said({"content": [None, 7, [], {}, {"type": 7}, {"type": "text", "text": 7}, {"type": "thinking", "thinking": 7}, {"type": "text", "text": RIGHT}]}), True),
    "calls of text": (said({"tool_calls": "x"}), False),
    "calls of an object": (said({"tool_calls": {"a": 1}}), False),
    "calls of odd things": (said({"tool_calls": [None, 7, [], {}, {"function": 7}, {"function": {"name": 7}}, {"function": {"name": [], "arguments": []}}]}), None),
    "a name of 1 MB": (said({"tool_calls": [{"function": {"name": "x" * (1 << 20), "arguments": "{}"}}]}), None),
    "10,000 calls": (said({"tool_calls": [{"function": {"name": "web_search", "arguments": "{}"}}] * 10_000}), None),
    "function_call of text": (said({"function_call": "x"}), False),
    "function_call of odd things": (said({"function_call": {"name": [], "arguments": 7}}), None),
    "reasoning of a number": (said({"content": RIGHT, "reasoning_content": 7}), True),
    "details of odd things": (said({"content": RIGHT, "reasoning_details": [7, None, {"text": 7}]}), True),
    "finish of a number": (body_of('{"choices": [{"message": {"content": "x"}, "finish_reason": 7}]}'), False),
    "finish of an error": (body_of('{"choices": [{"message": {"content": "x"}, "finish_reason": "error"}]}'), False),
    "usage of text": (said({"content": RIGHT}, usage="x"), True),
    "usage below zero": (said({"content": RIGHT}, usage={"prompt_tokens": -5}), True),
    "usage of 10**30": (said({"content": RIGHT}, usage={"prompt_tokens": 10**30}), None),
    "model of a list": (said({"content": RIGHT}, model=["x"]), True),
    "model of 1 MB": (said({"content": RIGHT}, model="m" * (1 << 20)), True),
    "fingerprint of a number": (said({"content": RIGHT}, system_fingerprint=7), True),
    "an error of text": (body_of('{"error": "x"}'), False),
    "an error of a list": (body_of('{"error": [1, {"a": 2}]}'), False),
    "an error of odd things": (body_of('{"error": {"message": 7, "code": [], "param": {}, "metadata": 7, "detail": [{"loc": 5, "msg": []}]}}'), False),
    "an error of 30 MB": (large(('{"error": "', 1), ("tools ", 5 << 20), ('"}', 1)), False),
    "an error of true": (body_of('{"error": true}'), False),
    "a text of 30 MB": (large(('{"choices": [{"message": {"content": "', 1), ("x", 30 << 20), ('"}}]}', 1)), False),
    "a text of 30 MB with an emoji": (large(('{"choices": [{"message": {"content": "🙂', 1), ("x", 30 << 20), ('"}}]}', 1)), False),
    "60 MB of small objects": (large(('{"usage": [', 1), ("{},", 20 << 20), ("{}]}", 1)), False),
    "60 MB of numbers": (large(('{"choices": [{"message": {"content": [', 1), ("1,", 30 << 20), ("1]}}]}", 1)), False),
    "60 MB of choices": (large(('{"choices": [', 1), ("{},", 20 << 20), ("{}]}", 1)), False),
    "60 MB of brackets": (large(("[", 60 << 20)), False),
    "20 MB of fields that nobody reads": (large((GOOD.decode()[:-1] + ', "logprobs": [', 1), ("1,", 10 << 20), ("1]}", 1)), None),
    "4 MB of lists": (body_of('{"choices": [{"message": {"content": "x", "reasoning_details": [' + "[]," * 1_300_000 + "[]]}}]}"), None),
}  # fmt: skip


def told(status: int, body: object, **headers: str) -> Answer:
    return Answer(status, body, {name.replace("_", "-"): value for name, value in headers.items()})


ERRORS: dict[str, tuple[Answer, bool | None]] = {
    **{f"{code} of nothing": (told(code, b""), False) for code in (404, 408, 409, 413, 418, 422, 425, 429, 451, 500, 501, 502, 503, 504, 511, 529, 599)},
    **{f"{code}": (told(code, GOOD, Location="http://127.0.0.1:9/v1"), False) for code in (300, 301, 302, 303, 307, 308)},
    "204": (Answer(raw=b"HTTP/1.1 204 No Content\r\n\r\n"), False),
    "205": (told(205, b""), False),
    "206": (told(206, GOOD, Content_Range="bytes 0-5/100"), None),
    "304": (Answer(raw=b"HTTP/1.1 304 Not Modified\r\n\r\n"), False),
    "422 with a number as its place": (told(422, {"detail": [{"loc": 5, "msg": "x"}]}), False),
    "422 with an object as its place": (told(422, {"detail": [{"loc": {"a": 1}, "msg": 7}]}), False),
    "422 with a list of nothing": (told(422, {"detail": [None]}), False),
    "422 with a deep detail": (told(422, b'{"detail": ' + b"[" * 5000 + b"]" * 5000 + b"}"), False),
    "400 with a code of 5000 digits": (told(400, b'{"error": {"code": ' + LONG.encode() + b"}}"), False),
    "400 of a list of lists": (told(400, [[[[]]]]), False),
    "400 of a number": (told(400, b"7"), False),
    "400 of a zero byte": (told(400, b"\0"), False),
    "400 of bytes": (told(400, bytes(range(256))), False),
    "400 of surrogates": (told(400, b'{"error": {"message": "\\ud800"}}'), False),
    "400 with a huge number": (told(400, b'{"error": {"message": 1' + b"0" * 300 + b"}}"), False),
    "413 with 30 MB": (told(413, lambda: b"a" * (30 << 20)), False),
    "500 with a bomb": (Answer(500, lambda: bomb(1024), {"Content-Encoding": "gzip"}), False),
    "500 that steers a terminal": (told(500, b"\x1b[2J\x1b]0;x\x07"), False),
    "500 with words without end": (told(500, b"model tool " * 90_000), False),
    "429 until the end of time": (told(429, b"", Retry_After="9" * 400), False),
    "429 until a date": (told(429, b"", Retry_After="Fri, 31 Dec 9999 23:59:60 GMT"), False),
    "503 until nonsense": (told(503, b"", Retry_After="\x00nan"), False),
}  # fmt: skip

HOSTILE = {**FRAMING, **ENCODINGS, **JSON, **ERRORS}
