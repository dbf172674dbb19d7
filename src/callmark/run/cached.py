"""A runner that asks for no answer twice: `--cache`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from callmark.config import RunConfig
from callmark.errors import CallmarkError, FingerprintMismatch, UsageError
from callmark.records.jsontext import Json, canonical_json, encode_json, plain, want_texts
from callmark.records.results import Decoding, Fingerprints
from callmark.records.seams import Conversation, Failure, Finish, Observed, Reply, Runner
from callmark.run.prepare import resolve_secrets

if TYPE_CHECKING:
    from callmark.run.prepare import Setup
    from callmark.store.response_cache import ResponseCache

# Raised whenever a runner reads one and the same answer otherwise than before.
REPLIES_VERSION = 2
REMEMBERED = 4096  # different beginnings of requests
# A prompt that is too long for a server may not be so tomorrow, and asking again costs nothing.
NOT_HELD: frozenset[Finish] = frozenset({"context_exceeded"})
RECORDED = frozenset({"replay"})


class KeptReply(msgspec.Struct, frozen=True):
    """A reply and who gave it: the provenance of the run that asked, as far as it was known by
    then. Of a local model there is none: its bytes are its name."""

    reply: Reply
    base_url: tuple[str, ...] = ()
    served_models: tuple[str, ...] = ()
    system_fingerprints: tuple[str, ...] = ()


ORIGIN = ("base_url", "served_models", "system_fingerprints")
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Reply).decode
_decode_kept = msgspec.json.Decoder(KeptReply).decode


def check_cache(config: RunConfig) -> None:
    """Raises where a cache could give a wrong answer, or keep too much."""
    if config.cache is not None and config.redact_pii:
        raise UsageError(
            "--cache: does not go with redact_pii: a cache keeps answers as they were given;"
            " leave one of them out"
        )


def why_unused(config: RunConfig, fingerprints: Fingerprints) -> tuple[str, ...]:
    """A warning where a cache was asked for that is of no use."""
    if config.cache is None:
        return ()
    if config.runner in RECORDED:
        return (f"--cache: not used: {config.runner} answers from a recording anyway",)
    if fingerprints.model_fingerprint is None:
        return (f"--cache: not used: {config.runner} cannot tell one model from another",)
    return ()


class Keys:
    """The key of a request: everything that the answer depends on, and nothing else."""

    def __init__(
        self,
        config: RunConfig,
        fingerprints: Fingerprints,
        decoding: Decoding,
        *,
        raw_prompt: bool = False,
        endpoint: str | None = None,
    ) -> None:
        self._is_drawn = decoding.temperature != 0
        self._common: dict[str, Json] = {
            "replies_version": REPLIES_VERSION,
            "model_fingerprint": fingerprints.model_fingerprint,
            "runner_fingerprint": fingerprints.runner_fingerprint,
            "decoding": plain(decoding),
            # With what ${NAME} stands for: it may be the name of an adapter.
            "extra_body": resolve_secrets(config.extra_body, "extra_body", []),
            "raw_prompt": raw_prompt,
            # Two servers may call two models by one name, unless somebody says which one it is.
            "endpoint": None if config.model_revision else endpoint,
        }
        self._begun: dict[tuple[int, int], tuple[Sequence[dict[str, Json]], hashlib._Hash]] = {}

    def of(self, conversation: Conversation) -> str:
        made = self._begin(conversation.tools, conversation.trial).copy()
        # Two samples that ask the same may draw different answers.
        drawn = [conversation.sample_id, conversation.turn] if self._is_drawn else None
        # JSON has no line ends of its own: no two requests run into the same text.
        made.update(encode_json(drawn) + b"\n" + encode_json(conversation.messages))
        return made.hexdigest()

    def _begin(self, tools: Sequence[dict[str, Json]], trial: int) -> hashlib._Hash:
        """What many requests have in common is hashed once. Samples that are offered the same
        share one list; holding on to it keeps its id its own."""
        known = self._begun.get((id(tools), trial))
        if known is None:
            if len(self._begun) >= REMEMBERED:
                self._begun.clear()
            common = canonical_json({**self._common, "trial": trial})
            # Not canonical: a prompt shows the fields of a tool in the order in which they stand.
            begun = hashlib.sha256(common.encode("utf-8", "surrogatepass") + b"\n")
            begun.update(encode_json(tools) + b"\n")
            known = self._begun[id(tools), trial] = (tools, begun)
        return known[1]


class CachedRunner(Runner):
    """What it is asked for the first time goes to `inner`. `deterministic`: after a failure
    nothing of this run is kept, and kept answers must be those of the server that is asked.
    `revision`: what the user calls the model, wherever it is served."""

    def __init__(
        self,
        inner: Runner,
        cache: ResponseCache,
        keys: Keys,
        *,
        deterministic: bool = False,
        revision: str | None = None,
    ) -> None:
        self._inner = inner
        self._cache = cache
        self._keys = keys
        self._deterministic = deterministic
        self._revision = revision
        self._taken: dict[str, set[str]] = {name: set() for name in ORIGIN}
        self._failed = False
        self._hits = 0
        self._asked = 0
        self.name = inner.name
        self.suspends = inner.suspends

    @property
    def max_batch(self) -> int:  # type: ignore[override]  # the inner one's mind may change
        return self._inner.max_batch

    async def answer(self, batch: Sequence[Conversation]) -> Sequence[Reply | Failure]:
        keys = [self._keys.of(one) for one in batch]
        found: list[Reply | Failure | None] = [self._found(key) for key in keys]
        waiting = [at for at, reply in enumerate(found) if reply is None]
        self._hits += len(batch) - len(waiting)
        self._refuse_others()
        if waiting:
            self._asked += len(waiting)
            replies = await self._ask([batch[at] for at in waiting])
            self._refuse_others()
            origin = _origin_of(self._inner)
            for at, reply in zip(waiting, replies, strict=True):
                found[at] = reply
                self._keep(keys[at], reply, origin)
        return [reply for reply in found if reply is not None]

    async def ready(self) -> None:
        await self._inner.ready()

    async def close(self) -> None:
        await self._inner.close()

    def fingerprint_parts(self) -> dict[str, Json]:
        return self._inner.fingerprint_parts()

    def model_fingerprint(self) -> str | None:
        return self._inner.model_fingerprint()

    def tokenizer_fingerprint(self) -> dict[str, Json] | None:
        return self._inner.tokenizer_fingerprint()

    def without_secrets(self, text: str) -> str:
        return self._inner.without_secrets(text)

    def observed(self) -> Observed:
        seen = self._inner.observed()
        # Flat: those of several processes are added up.
        counts = {
            "cache_hits": self._hits,
            "cache_asked": self._asked,
            "cache_stored": self._cache.stored,
        }
        warnings = (*seen.warnings, *self._differing())
        if self._hits and self._taken["base_url"] and not self._revision:
            warnings += (
                "--cache: kept answers were taken by endpoint and name of the model: whether it is"
                " still the same one, only --model-revision could tell",
            )
        if self._cache.trouble is not None:
            warnings += (
                f"--cache: could not be written any more: {self._cache.trouble};"
                f" {self._cache.stored} answers of this run are kept",
            )
        taken = {f"cached_{name}": sorted(held) for name, held in self._taken.items() if held}
        return msgspec.structs.replace(
            seen,
            provenance={**seen.provenance, **taken},
            measured={**seen.measured, **counts},
            warnings=warnings,
        )

    def _differing(self) -> list[str]:
        """What kept answers and those of this run do not have in common."""
        now = _origin_of(self._inner)
        return [
            f"--cache: answers of more than one {name}: kept ones of {', '.join(sorted(held))}"
            + (f"; this run asks {', '.join(now[name])}" if now[name] else "")
            for name, held in self._taken.items()
            if not held <= set(now[name]) and len(held.union(now[name])) > 1
        ]

    def _refuse_others(self) -> None:
        if not self._deterministic:
            return
        for what in self._differing():
            self._fail()
            raise FingerprintMismatch(
                f"{what}; in determinism mode one server must answer all requests: name another"
                " folder, or leave the cache out (--no-cache)"
            )

    async def _ask(self, batch: Sequence[Conversation]) -> Sequence[Reply | Failure]:
        try:
            return await self._inner.answer(batch)
        except CallmarkError:
            self._fail()
            raise

    def _found(self, key: str) -> Reply | None:
        data = self._cache.get(key)
        if data is None:
            return None
        try:
            kept = _decode_kept(data)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return None  # of another making
        for name, held in self._taken.items():
            held.update(getattr(kept, name))
        return kept.reply

    def _keep(self, key: str, reply: Reply | Failure, origin: dict[str, list[str]]) -> None:
        if isinstance(reply, Failure):
            self._fail()
        elif not self._failed and reply.finish not in NOT_HELD:
            # What an answer took it takes once.
            data = _lossless(msgspec.structs.replace(reply, usage=None, seconds=None))
            if data is not None:
                told = b"".join(
                    b',"%s":%s' % (name.encode(), _encode(held))
                    for name, held in origin.items()
                    if held
                )
                self._cache.put(key, b'{"reply":%s%s}' % (data, told))

    def _fail(self) -> None:
        if self._deterministic and not self._failed:
            self._failed = True
            self._cache.withdraw()


def _origin_of(runner: Runner) -> dict[str, list[str]]:
    """Who answers, as far as the runner has seen."""
    told = runner.observed().provenance
    found = {name: told.get(name) for name in ORIGIN}
    return {
        name: [held] if isinstance(held, str) and held else list(want_texts(held))
        for name, held in found.items()
    }


def _lossless(reply: Reply) -> bytes | None:
    """None: JSON cannot hold this one as it is (lone surrogates): it is asked for again."""
    try:
        data = _encode(reply)
        return data if _encode(_decode(data)) == data else None
    except (msgspec.MsgspecError, UnicodeError, OverflowError, RecursionError):
        return None


@contextmanager
def open_cache(setup: Setup) -> Iterator[Setup]:
    """The same with a cache around its runner, where there is one to use."""
    config = setup.config
    if config.cache is None or why_unused(config, setup.fingerprints):
        yield setup
        return
    from callmark.store.response_cache import ResponseCache

    endpoint = canonical_json(_origin_of(setup.runner)["base_url"])
    raw = setup.prompts.raw
    keys = Keys(config, setup.fingerprints, setup.decoding, raw_prompt=raw, endpoint=endpoint)
    with ResponseCache(Path(config.cache)) as cache:
        runner = CachedRunner(
            setup.runner,
            cache,
            keys,
            deterministic=config.determinism_mode,
            revision=config.model_revision,
        )
        yield msgspec.structs.replace(setup, runner=runner)
