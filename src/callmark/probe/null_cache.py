"""What random adapters answered, kept between probes: they depend on nothing but their name.

The answers are kept, not the rates, so that they are read anew by whatever version is installed."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from callmark._version import __version__
from callmark.core.jsontext import Json, digest
from callmark.errors import OutputFailed
from callmark.probe.null_adapters import NULLS_VERSION
from callmark.probe.views import NullRun, Question
from callmark.store.files import atomic_writer, make_folder


class _Kept(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    key: str
    texts: tuple[str, ...]


class NullCache:
    """One small file for each null. `folder` None: nothing is kept and nothing is found."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self.found = 0

    @classmethod
    def of_this_user(cls) -> NullCache:
        given = os.environ.get("XDG_CACHE_HOME")
        root = Path(given) if given else Path("~/.cache").expanduser()
        return cls(root / "callmark" / "nulls")

    def texts(
        self,
        identity: dict[str, Json],
        questions: Sequence[Question],
        run: NullRun,
        make: Callable[[Sequence[Question], NullRun], list[str]],
    ) -> list[str]:
        """The answers of one null, made only if they are not known."""
        key = key_of(identity, questions, run)
        known = self._read(key, len(questions))
        if known is not None:
            self.found += 1
            return known
        made = make(questions, run)
        self._write(_Kept(key, tuple(made)))
        return made

    def _read(self, key: str, size: int) -> list[str] | None:
        """What cannot be read, or is not whole, is no more than forgotten."""
        if self._folder is None:
            return None
        try:
            kept = msgspec.json.decode(self._path(key).read_bytes(), type=_Kept)
        except (OSError, msgspec.MsgspecError, UnicodeError):
            return None
        return list(kept.texts) if kept.key == key and len(kept.texts) == size else None

    def _write(self, kept: _Kept) -> None:
        if self._folder is None:
            return
        with suppress(OutputFailed, OSError):
            make_folder(self._folder)
            with atomic_writer(self._path(kept.key)) as stream:
                stream.write(msgspec.json.encode(kept))

    def _path(self, key: str) -> Path:
        return (self._folder or Path()) / f"{key}.json"


def key_of(identity: dict[str, Json], questions: Sequence[Question], run: NullRun) -> str:
    """Model, adapter, prompts, decoding and libraries (`identity`), the questions, the null."""
    spec = run.spec
    return digest(
        {
            "views": identity,
            "questions": [msgspec.to_builtins(question) for question in questions],
            "method": spec.method,
            "init_scale": spec.init_scale if spec.method == "init_scale" else None,
            "rank_multiplier": run.rank_multiplier,
            "seed": run.seed,
            "number": run.number,
            "nulls_version": NULLS_VERSION,
            "callmark": __version__,
        }
    )
