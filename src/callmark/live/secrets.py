"""Secrets: how each kind looks, and texts without them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from callmark.live.surrogates import with_changes
from callmark.records.jsontext import Json

SECRET = "[secret]"  # noqa: S105
SHORTEST = 4  # a shorter value of the environment would be found in half of all words

_NAMES = (
    r"(?:password|passwd|secret|api[_-]?key|(?:access|refresh|auth)[_-]?token|client[_-]?secret"
    r"|private[_-]?key)"
)
# The group is the secret, where there is one; else the whole match.
_FORMS = tuple(
    re.compile(form)
    for form in (
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
        r"(?i:\bbearer)\s+([A-Za-z0-9._~+/=-]{8,})",
        r"(?i:\bbasic)\s+([A-Za-z0-9+/]{12,}={0,2})(?![A-Za-z0-9])",
        r"\b(?:sk|pk|rk)[-_](?:[A-Za-z0-9]{1,20}[-_]){0,4}[A-Za-z0-9]{16,}\b",
        r"\bgh[opsru]_[A-Za-z0-9]{20,}\b",
        r"\bgithub_pat_[A-Za-z0-9_]{20,}\b",
        r"\bglpat-[A-Za-z0-9_-]{16,}",
        r"\bhf_[A-Za-z0-9]{20,}\b",
        r"\bnpm_[A-Za-z0-9]{30,}\b",
        r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
        r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
        r"\bAIza[A-Za-z0-9_-]{30,}",
        r"\beyJ[A-Za-z0-9_-]{8,2000}\.[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]*",
        r"\b[a-z][a-z0-9+.-]{0,20}://[^\s/:@]{0,64}:([^\s/@]{1,128})@",
        rf"(?i:{_NAMES})\\?[\"']?\s*[:=]\s*\\?[\"']?([^\s\"',;&}}\\]{{4,}})",
    )
)
_KEY = re.compile(rf"(?:\w*[_-])?(?:{_NAMES}|authorization)", re.IGNORECASE)


class SecretFilter:
    """`known`: values that are secret because somebody said so, such as those of `--env`."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._known = sorted({value for value in known if len(value) >= SHORTEST}, reverse=True)
        self.removed = 0

    def text(self, text: str, label: str = "") -> str:
        """The text without secrets. `label` is the key that it stands under."""
        # By its key, whatever it looks like: a password has no form of its own.
        if text and text != SECRET and _KEY.fullmatch(label):
            self.removed += 1
            return SECRET
        for value in self._known:
            if value in text:
                self.removed += text.count(value)
                text = text.replace(value, SECRET)
        for form in _FORMS:
            text = form.sub(self._replaced, text)
        return text

    def json(self, value: Json) -> Json:
        return with_changes(value, self.text, lambda number, _: number)

    def _replaced(self, match: re.Match[str]) -> str:
        whole: str = match[0]
        secret = match[1] if match.re.groups else whole
        if secret == SECRET:
            return whole
        self.removed += 1
        return whole.replace(secret, SECRET)
