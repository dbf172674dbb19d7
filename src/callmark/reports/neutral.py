"""Model output is hostile text: nothing of it may steer a terminal or reorder what is read."""

from __future__ import annotations

# Left alone: \t and \n (layout), U+200C and U+200D (Persian and emoji need them to be read right).
_STEERING: tuple[tuple[int, int], ...] = (
    (0x00, 0x08),
    (0x0B, 0x1F),  # carriage return and escape among them
    (0x7F, 0x9F),  # delete, and the one-byte forms of escape sequences
    (0xAD, 0xAD),  # soft hyphen: invisible
    (0x061C, 0x061C),  # bidi: Arabic letter mark
    (0x180E, 0x180E),
    (0x200B, 0x200B),  # zero width space
    (0x200E, 0x200F),  # bidi marks
    (0x2028, 0x202E),  # line separators, bidi embeddings and overrides
    (0x2060, 0x206F),  # invisible operators, bidi isolates
    (0xFEFF, 0xFEFF),  # zero width no-break space
    (0xFFF9, 0xFFFB),  # interlinear annotation
    (0xE0000, 0xE007F),  # tags: whole hidden sentences can be written in them
)


def _visible(code: int) -> str:
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


_TABLE = {code: _visible(code) for low, high in _STEERING for code in range(low, high + 1)}
_TABLE |= dict.fromkeys(range(0xD800, 0xE000), "\ufffd")


def neutralise(text: str) -> str:
    """The same text with every character that steers a terminal written out (`\\x1b`)."""
    return text.translate(_TABLE)


def one_line(text: str, limit: int | None = None) -> str:
    """Neutralised, line breaks and tabs written out, and cut to `limit` characters."""
    shown = neutralise(text).replace("\n", "\\n").replace("\t", "\\t")
    if limit is not None and len(shown) > limit:
        return shown[: max(0, limit - 1)] + "…"
    return shown
