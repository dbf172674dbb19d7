"""Tokens that are personal: mailboxes, UUIDs, IP addresses.

Example addresses are findings like any other. `git@host` and the user of `https://user:pw@host`
are no mailboxes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from callmark.scorers.pii_edges import Span, is_whole_word, joint_after, joint_before

_CASED = "A-Za-z\u00c0-\u024f\u0370-\u04ff"
_LOCAL_REVERSED = re.compile(rf"[{_CASED}0-9_.%+'\-]{{1,64}}")
_DOMAIN = re.compile(
    rf"(?:[{_CASED}0-9]+(?:-+[{_CASED}0-9]+)*\.)+(xn--[A-Za-z0-9-]+|[{_CASED}]{{2,63}})(?![{_CASED}0-9])"
)
_BEFORE_USERINFO = re.compile(r"//[^\s/?#@]*\Z")
_ESCAPED_LETTERS = re.compile(r"[nrtbf]|u[0-9A-Fa-f]{4}")
_FILE_SUFFIXES = frozenset({"png", "jpg", "jpeg", "gif", "svg", "webp", "ico", "css", "js", "pdf"})


def find_emails(text: str) -> Iterator[Span]:
    at = text.find("@")
    while at >= 0:
        local = _LOCAL_REVERSED.match(text[max(0, at - 64) : at][::-1])
        domain = _DOMAIN.match(text, at + 1) if local else None
        if local and domain and domain.group(1).lower() not in _FILE_SUFFIXES:
            start = _mailbox_start(text, at - local.end(), at)
            is_mailbox = start < at and text[start:at] != "git"
            if is_mailbox and not _BEFORE_USERINFO.search(text, max(0, start - 64), start):
                yield start, domain.end()
        at = text.find("@", at + 1)


def _mailbox_start(text: str, start: int, at: int) -> int:
    if start and text[start - 1] == "\\" and (escape := _ESCAPED_LETTERS.match(text, start, at)):
        start = escape.end()
    return at - len(text[start:at].lstrip("._%+'-"))


_UUID_MIDDLE = re.compile(r"-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
_HEX8 = re.compile(r"[0-9A-Fa-f]{8}")


def find_uuids(text: str) -> Iterator[Span]:
    for middle in _UUID_MIDDLE.finditer(text):
        start, end = middle.start() - 8, middle.end()
        if start >= 0 and _HEX8.match(text, start) and is_whole_word(text, start, end):
            yield start, end


_QUAD_TAIL = re.compile(r"\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}")
_QUAD_HEAD = re.compile(r"[0-9]{1,3}\Z")
_OCTETS = re.compile(r"(?:(?:25[0-5]|2[0-4][0-9]|1?[1-9][0-9]|1[0-9]{2}|[0-9])(?:\.|\Z)){4}")
_BEFORE_A_VERSION = re.compile(
    r"(?<![^\W_])(?:v|ver|versions?|release|build|section)[.:=]? *\Z", re.IGNORECASE
)


def find_ipv4(text: str) -> Iterator[Span]:
    for tail in _QUAD_TAIL.finditer(text):
        head = _QUAD_HEAD.search(text, max(0, tail.start() - 3), tail.start())
        if head is None or not _OCTETS.fullmatch(text, head.start(), tail.end()):
            continue
        start, end = head.start(), tail.end()
        before = text[max(0, start - 12) : start]
        if _BEFORE_A_VERSION.search(before):
            continue
        in_path = before.endswith("/") and not before.endswith("//")  # `Chrome/120.0.0.0`
        has_fifth = text[end : end + 1] == "." and text[end + 1 : end + 2].isdigit()
        if in_path or has_fifth or joint_before(text, start) in ("glued", "dot"):
            continue
        if joint_after(text, end) != "glued":
            yield start, end


_V6_CUE = re.compile(r":(?::|[0-9A-Fa-f]{1,4}:)")
_V6_TOKEN = re.compile(r"[0-9A-Fa-f:.]{3,}")
_V6_GROUP = re.compile(r"[0-9A-Fa-f]{1,4}")


def find_ipv6(text: str) -> Iterator[Span]:
    if not _V6_CUE.search(text):
        return
    for token in _V6_TOKEN.finditer(text):
        found = token.group()
        if found.count(":") < 2 or len(found) > 64:
            continue
        start, end = token.span()
        if found.startswith(":") and (found.startswith(":::") or not found.startswith("::")):
            start += 1
        found = text[start:end].rstrip(".")
        if found.endswith(":") and not found.endswith("::"):
            found = found[:-1]
        if _is_ipv6(found) and is_whole_word(text, start, start + len(found)):
            yield start, start + len(found)


def _is_ipv6(found: str) -> bool:
    """Valid, and not what code looks like: `a::b` is a name, `x[1::2]` a slice."""
    head, _, last = found.rpartition(":")
    if "." in last:
        if not _OCTETS.fullmatch(last):
            return False
        found = f"{head}:0:0"
    sides = [side.split(":") if side else [] for side in found.split("::")]
    groups = [group for side in sides for group in side]
    if not all(_V6_GROUP.fullmatch(group) for group in groups):
        return False
    if len(groups) != 8 if len(sides) == 1 else len(sides) > 2 or len(groups) > 7:
        return False
    plausible = any(len(group) >= 3 for group in groups) and any(map(str.isdigit, found))
    return plausible or len(sides) == 1 or found == "::1"
