"""Ways to spoil a file whatever it holds: its bytes and its lines."""

import random

from tests.fuzz.odd_values import ODD_BYTES


def flip_bits(rng: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randint(1, 4) if data else 0):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def change_bytes(rng: random.Random, data: bytes) -> bytes:
    at = rng.randint(0, len(data))
    return data[:at] + rng.randbytes(rng.randint(1, 4)) + data[at + rng.randint(0, 4) :]


def insert_odd_bytes(rng: random.Random, data: bytes) -> bytes:
    at = rng.choice((0, len(data), rng.randint(0, len(data))))
    return data[:at] + rng.choice(ODD_BYTES) + data[at:]


def cut_out(rng: random.Random, data: bytes) -> bytes:
    at = rng.randint(0, len(data))
    return data[:at] + data[at + rng.randint(1, 60) :]


def truncate(rng: random.Random, data: bytes) -> bytes:
    return data[: rng.randint(0, len(data))]


def repeat_part(rng: random.Random, data: bytes) -> bytes:
    at = rng.randint(0, len(data))
    return data[:at] + data[at : at + rng.randint(1, 300)] + data[at:]


def empty(rng: random.Random, data: bytes) -> bytes:
    return rng.choice((b"", b"\n", b" \t\r\n", b"\xef\xbb\xbf", b"\x00", b"null\n", b"\n\n{}\n"))


def other_line_ends(rng: random.Random, data: bytes) -> bytes:
    return data.replace(b"\n", rng.choice((b"\r\n", b"\r", b"\n\n", b"\n \n", b" \n", b"")))


def other_encoding(rng: random.Random, data: bytes) -> bytes:
    text = data.decode("utf-8", "replace")
    return text.encode(
        rng.choice(("utf-16", "utf-16-le", "utf-32", "utf-8-sig", "cp1252")), "replace"
    )


BYTES = (
    flip_bits,
    change_bytes,
    insert_odd_bytes,
    cut_out,
    truncate,
    repeat_part,
    empty,
    other_line_ends,
    other_encoding,
)


def repeat_line(rng: random.Random, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True) or [b""]
    lines.insert(rng.randint(0, len(lines)), rng.choice(lines))
    return b"".join(lines)


def drop_line(rng: random.Random, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True) or [b""]
    lines.pop(rng.randrange(len(lines)))
    return b"".join(lines)


def shuffle_lines(rng: random.Random, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    rng.shuffle(lines)
    return b"".join(lines)


def join_lines(rng: random.Random, data: bytes) -> bytes:
    at = [place for place, byte in enumerate(data) if byte == 10] or [0]
    place = rng.choice(at)
    return data[:place] + rng.choice((b"", b" ", b",")) + data[place + 1 :]


LINES = (repeat_line, drop_line, shuffle_lines, join_lines)
