"""Secrets: how each kind looks, and texts without them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from callmark.live.surrogates import labelled_leaves, with_changes
from callmark.records.jsontext import Json

SECRET = "[secret]"  # noqa: S105
SHORTEST = 4  # a shorter value of the environment would be found in half of all words
SHORTEST_LEARNT = 6  # of a value that only its key makes secret

_NAMES = (
    r"(?:password|passwd|secret|api[_-]?key|(?:access|refresh|auth)[_-]?token|client[_-]?secret"
    r"|private[_-]?key)"
)
# `Basic Connectivity` is no credential: one has a digit, or a capital behind a small letter.
_NO_WORD = r"(?=[A-Za-z._~+/-]{0,40}(?:[0-9=]|[a-z][A-Z]))"
# How each kind of secret looks. A form is tried where the folded text has one of its marks: most
# texts have none, and to look for a mark costs next to nothing. The group is the secret, where
# there is one; else the whole match.
_FORMS = {
    mark: re.compile(pattern)
    for marks, pattern in (
        (
            "-----begin",
            r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
        ),
        (
            "authorization",
            r"(?i:\bauthorization)\\?[\"']?\s*[:=]\s*\\?[\"']?(?i:bearer|basic)\s+"
            r"([^\s\"',;}\\]{4,})",
        ),
        (
            "bearer",
            rf"(?i:\bbearer)\s+({_NO_WORD}[A-Za-z0-9._~+/=-]{{8,}}|[A-Za-z0-9._~+/=-]{{20,}})",
        ),
        (
            "basic",
            rf"(?i:\bbasic)\s+({_NO_WORD}[A-Za-z0-9+/]{{12,}}={{0,2}})(?![A-Za-z0-9])",
        ),
        (
            "sk- sk_ pk- pk_ rk- rk_",
            r"\b(?:sk|pk|rk)[-_](?:[A-Za-z0-9]{1,20}[-_]){0,4}[A-Za-z0-9]{16,}\b",
        ),
        ("gho_ ghp_ ghs_ ghr_ ghu_", r"\bgh[opsru]_[A-Za-z0-9]{20,}\b"),
        ("github_pat_", r"\bgithub_pat_[A-Za-z0-9_]{20,}\b"),
        ("glpat-", r"\bglpat-[A-Za-z0-9_-]{16,}"),
        ("hf_", r"\bhf_[A-Za-z0-9]{20,}\b"),
        ("npm_", r"\bnpm_[A-Za-z0-9]{30,}\b"),
        ("xox", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
        ("akia asia", r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
        ("aiza", r"\bAIza[A-Za-z0-9_-]{30,}"),
        ("eyj", r"\beyJ[A-Za-z0-9_-]{8,2000}\.[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]*"),
        ("://", r"\b[a-z][a-z0-9+.-]{0,20}://[^\s/:@]{0,64}:([^\s/@]{1,128})@"),
        (
            "passw secret key token",
            rf"(?i:{_NAMES})\\?[\"']?\s*[:=]\s*\\?[\"']?([^\s\"',;&}}\\]{{4,}})",
        ),
    )
    for mark in marks.split()
}
_SHORTEST_FORM = 7  # `a://:b@`
_KEY = re.compile(rf"(?:\w*[_-])?(?:{_NAMES}|authorization)", re.IGNORECASE)


class SecretFilter:
    """`known`: values that are secret because somebody said so, such as those of `--env`."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._known = sorted({value for value in known if len(value) >= SHORTEST}, reverse=True)
        self.removed = 0

    def learn(self, value: Json) -> None:
        """What stands under the key of a secret is one wherever it stands: a password that a call
        hands on is in the prompt, too, and whoever is asked again must find the same in both."""
        found = {
            leaf
            for label, leaf in labelled_leaves(value)
            if isinstance(leaf, str) and _is_key(label) and _is_telling(leaf)
        }
        self._known = sorted(found.union(self._known), reverse=True)

    def text(self, text: str, label: str = "") -> str:
        """The text without secrets. `label` is the key that it stands under."""
        # By its key, whatever it looks like: a password has no form of its own.
        if text and text != SECRET and _is_key(label):
            self.removed += 1
            return SECRET
        for value in self._known:
            if value in text:
                self.removed += text.count(value)
                text = text.replace(value, SECRET)
        if len(text) < _SHORTEST_FORM:
            return text
        folded = text.casefold()
        for form in dict.fromkeys([form for mark, form in _FORMS.items() if mark in folded]):
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


@lru_cache
def _is_key(label: str) -> bool:
    """Whether this is the key of a secret."""
    return _KEY.fullmatch(label) is not None


def _is_telling(value: str) -> bool:
    """Whether it is itself where it stands again: `none` or `required` are words like others."""
    return len(value) >= SHORTEST_LEARNT and not value.isalpha() and value != SECRET
