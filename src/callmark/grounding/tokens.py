"""The one regular expression that finds the tokens of a text that may be checkable values."""

from __future__ import annotations

import re
from functools import lru_cache

from callmark.grounding.numbers import SPACES
from callmark.grounding.text import UNSPACED, joining_marks

_SEP = rf"[.,'’٫٬{SPACES}]"
ANY_SEPARATOR = re.compile(rf"{_SEP}|[ ]")
_TLD = "com|org|net|io|dev|edu|gov|ai|app|info"
_IN_URL = r"[^\s<>\"“”`|]"
_OPEN_CLOSE = (
    ("“", "”"), ("„", "“”"), ("«", "»"), ("‹", "›"), ("「", "」"), ("『", "』"),
    ("‘", "’"),
)  # fmt: skip
_QUOTES = "|".join(rf"{o}[^{o}{c}\n]{{2,300}}[{c}]" for o, c in _OPEN_CLOSE)
# Inside a JSON string the marks are escaped, and pair with each other only.
_QUOTES += r'|\\"[^"\n]{2,300}?\\"|(?<!\\)"(?:[^"\\\n]|\\.){2,300}"'
_HTTP = rf"(?P<url>(?i:https?|ftp)://{_IN_URL}+|(?<![\w@.])(?i:www)\.{_IN_URL}+)|"
_EMAIL = r"(?P<email>(?<![\w.+@-])[\w.+-]{1,64}@(?:[\w-]+\.)+[^\W\d_]{2,})|"
_DOMAIN = (
    rf"(?P<domain>(?<![\w.@/-])(?:[a-zA-Z0-9][a-zA-Z0-9-]*\.)+(?i:{_TLD})(?![\w@-])(?!\.\w)"
    rf"(?::\d+)?(?:/{_IN_URL}*)?)|"
)
_REST = (
    r"(?P<code>(?<!`)`[^`\n]{1,300}`(?!`))"
    r'|(?P<key>(?<![\w\\])"[^"\n]{1,80}"\s?:)'
    rf"|(?P<quote>(?<!\w)(?:{_QUOTES})|(?<!\w)'[^'\n]{{2,200}}'(?!\w))"
    r"|(?P<hash>(?<![\w&])\#\w[\w-]*)"
    r"|(?P<word>(?<!\w)(?<!\w-)(?:_+[^\W_]\w*|[^\W\d_]+(?:[\d_]\w*|(?:-[^\W\d_]+)*-(?=\w*\d)\w+))"
    r"(?:(?<=\d)\.\w*\d\w*|-\w*\d\w*)*)"
    rf"|(?P<number>(?<!\w)(?:(?<!\.)\.(?=\d))?\d+(?:{_SEP}\d+|[ ]\d{{3}}(?!\d))*)"
    r"(?P<exponent>[eE][+-]?\d+(?!\w))?(?P<tail>[^\W\d_]*[²³]?)(?P<more>\w*)"
)
_DOMAIN_SIGN = re.compile(rf"[wW]{{3}}|\.(?i:{_TLD})")


@lru_cache(maxsize=32)
def _compile(
    plain: bool, at: bool, scheme: bool, domain: bool, apostrophe: bool
) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """The token pattern with only the alternatives that the text can need, and the characters
    one of which stands in every token: between them whole words are skipped."""
    token = (_HTTP if scheme or domain else "") + (_EMAIL if at else "")
    token += (_DOMAIN if domain else "") + _REST
    if not plain:
        # `1,234円` is a number beside a word: scripts without blanks join nothing.
        token = token.replace(r"(?<!\w)", rf"(?<![^\W{UNSPACED}])(?<![{joining_marks()}])")
        token = token.replace(r"[^\W\d_]", rf"(?:[^\W\d_{UNSPACED}]|[{joining_marks()}])")
        token = token.replace(r"(?P<more>\w*)", rf"(?P<more>[^\W{UNSPACED}]*)")
    hot = '[\\d_#`"“„«‹「『‘' + ("@" if at else "") + ("/" if scheme else "")
    hot += ("." if domain else "") + ("'" if apostrophe else "") + "]"
    return re.compile(token), re.compile(hot)


def patterns_for(text: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """(token, hot) for one text."""
    domain = "." in text and _DOMAIN_SIGN.search(text) is not None
    return _compile(text.isascii(), "@" in text, "://" in text, domain, "'" in text)
