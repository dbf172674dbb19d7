"""What a run saw of its server: tokens, tries, and who answered."""

from __future__ import annotations

from callmark.core.jsontext import Json
from callmark.core.protocols import Observed
from callmark.errors import FingerprintMismatch
from callmark.runners.http_answer import Completion, usage_of
from callmark.runners.http_secrets import Secrets

MOST_NAMES = 20


class Seen:
    """`one_server`: a second system_fingerprint ends the run."""

    def __init__(self, base_url: str, secrets: Secrets, *, one_server: bool) -> None:
        self._base_url = base_url
        self._secrets = secrets
        self._one_server = one_server
        self._models: set[str] = set()
        self._fingerprints: set[str] = set()
        self._prompt_tokens: int | None = None
        self._completion_tokens: int | None = None
        self.requests = 0
        self.retries = 0
        self.answers = 0

    def note(self, completion: Completion) -> None:
        self.answers += 1
        self._add(self._models, completion.model)
        self._add(self._fingerprints, completion.system_fingerprint)
        if self._one_server and len(self._fingerprints) > 1:
            raise FingerprintMismatch(
                f"{self._base_url}: {self._differing()}; in determinism mode one server must answer"
                " all requests"
            )
        usage = usage_of(completion)
        if usage is not None:
            self._prompt_tokens = (self._prompt_tokens or 0) + usage.prompt_tokens
            self._completion_tokens = (self._completion_tokens or 0) + usage.completion_tokens

    def observed(self, *, highest: int, model: str, listed: tuple[str, ...]) -> Observed:
        warnings = []
        if len(self._fingerprints) > 1:
            warnings.append(f"{self._differing()}: not one and the same server answered")
        if len(self._models) > 1:
            warnings.append(f"several models answered: {', '.join(sorted(self._models))}")
        if self.answers and listed and not _is_listed(model, listed):
            shown = ", ".join(listed[:10])
            warnings.append(f"the server answers for {model!r}, but lists only: {shown}")
        return Observed(
            provenance={
                "base_url": self._base_url,
                "served_models": sorted(self._models),
                "system_fingerprints": sorted(self._fingerprints),
            },
            measured={
                "requests": self.requests,
                "retries": self.retries,
                "highest_concurrency": highest,
                "prompt_tokens": self._prompt_tokens,
                "completion_tokens": self._completion_tokens,
            },
            warnings=tuple(warnings),
        )

    def _add(self, names: set[str], name: Json) -> None:
        if name and isinstance(name, str) and name not in names and len(names) < MOST_NAMES:
            names.add(self._secrets.clean(name)[:200])

    def _differing(self) -> str:
        return f"system_fingerprint differs: {', '.join(sorted(self._fingerprints))}"


def _is_listed(model: str, listed: tuple[str, ...]) -> bool:
    """Servers add a tag or a folder to the names that they take."""
    return any(
        model == name or name.startswith(f"{model}:") or name.endswith(f"/{model}")
        for name in listed
    )
