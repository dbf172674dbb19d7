"""What a checkpoint folder and an adapter folder must hold, looked at before anything is loaded."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from callmark.errors import BadInput, OutputFailed, UsageError
from callmark.records.jsontext import Json, NotJson, digest, parse_json
from callmark.store.files import atomic_writer, read_input

CONFIG = "config.json"
GENERATION_CONFIG = "generation_config.json"
WEIGHTS = "model.safetensors"
GGUF = ".gguf"
WEIGHTS_INDEX = "model.safetensors.index.json"
ADAPTER_CONFIG = "adapter_config.json"
ADAPTER_WEIGHTS = "adapter_model.safetensors"

_PICKLED = re.compile(r"(pytorch_model|adapter_model|model|consolidated).*\.(bin|pt|pth|ckpt)")
# Any one of these is a vocabulary, the first before the others; what else belongs to a tokenizer
# is optional.
_VOCABULARIES = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model")
_MORE_OF_A_TOKENIZER = (
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "merges.txt",
    "chat_template.jinja",
    "chat_template.json",
)
_EXTRA_TEMPLATES = "additional_chat_templates"
_CONVERT = (
    "which can run code when they are loaded: convert them to safetensors"
    " (load them where you trust them, then save_pretrained)"
)


class ModelFolder(msgspec.Struct, frozen=True):
    """A checkpoint: what its fingerprint is made of. `vocabulary` says how text becomes tokens.
    `gguf`: the one file that holds all of it. `quantization`: how its weights are stored, if not
    as plain numbers."""

    path: Path
    weights: tuple[Path, ...]
    vocabulary: tuple[Path, ...]
    settings: tuple[Path, ...]
    gguf: str | None = None
    quantization: str | None = None

    @property
    def tokenizer(self) -> Path:
        """What a tokenizer is loaded from."""
        return self.path if self.gguf is None else self.path / self.gguf


class AdapterFolder(msgspec.Struct, frozen=True):
    """A PEFT adapter. `base` is the name of the model that it says it was made for."""

    path: Path
    base: str | None

    @property
    def files(self) -> tuple[Path, ...]:
        return (self.path / ADAPTER_CONFIG, self.path / ADAPTER_WEIGHTS)


def model_folder(name: str | None) -> ModelFolder:
    if name is None:
        raise UsageError("--model: hf_local needs one: the folder of a causal language model")
    if (gguf := _gguf_in(Path(name))) is not None:
        return ModelFolder(gguf.parent, (gguf,), (gguf,), (), gguf.name, "gguf")
    folder = _folder("--model", name)
    if not (folder / CONFIG).is_file():
        if (folder / ADAPTER_CONFIG).is_file():
            raise UsageError(
                f"--model: {name}: this is an adapter: name it with --adapter, and the model that"
                " it belongs to with --model"
            )
        raise UsageError(f"--model: {name}: has no {CONFIG}: is it the folder of a checkpoint?")
    if (folder / ADAPTER_CONFIG).is_file():
        # transformers would load the model that the adapter names instead of this one.
        raise UsageError(
            f"--model: {name}: holds a model and an adapter ({ADAPTER_CONFIG}): move the adapter"
            " to a folder of its own and name it with --adapter"
        )
    config = _object_in("--model", folder / CONFIG)
    weights = _weights(name, folder)
    vocabulary = tuple(_present(folder, _VOCABULARIES))
    if not vocabulary:
        raise UsageError(
            f"--model: {name}: has no tokenizer: save it into this folder too"
            " (tokenizer.save_pretrained)"
        )
    stored = config.get("quantization_config")
    method = str(stored.get("quant_method")) if isinstance(stored, dict) else None
    return ModelFolder(folder, weights, vocabulary, tuple(_settings(folder)), quantization=method)


def _gguf_in(given: Path) -> Path | None:
    """The GGUF file that is named, or the only one of a folder without another checkpoint."""
    if given.suffix == GGUF and given.is_file():
        return given
    if not given.is_dir() or any((given / one).is_file() for one in (WEIGHTS, WEIGHTS_INDEX)):
        return None
    found = sorted(given.glob(f"*{GGUF}"))
    if len(found) > 1:
        raise UsageError(f"--model: {given}: holds {len(found)} GGUF files: name one of them")
    return found[0] if found else None


def adapter_folder(name: str) -> AdapterFolder:
    folder = _folder("--adapter", name)
    if not (folder / ADAPTER_CONFIG).is_file():
        raise UsageError(f"--adapter: {name}: has no {ADAPTER_CONFIG}: is it a PEFT adapter?")
    config = _object_in("--adapter", folder / ADAPTER_CONFIG)
    if not (folder / ADAPTER_WEIGHTS).is_file():
        raise _no_weights("--adapter", name, folder, ADAPTER_WEIGHTS)
    base = config.get("base_model_name_or_path")
    return AdapterFolder(folder, base if isinstance(base, str) else None)


def _folder(option: str, name: str) -> Path:
    folder = Path(name)
    if folder.is_file():
        raise UsageError(f"{option}: {name}: is a file: name the folder that it lies in")
    if not folder.is_dir():
        raise UsageError(
            f"{option}: {name}: there is no such folder (nothing is ever downloaded: name a folder"
            " of this machine)"
        )
    return folder


def _weights(name: str, folder: Path) -> tuple[Path, ...]:
    """The one file, or all that the index names."""
    if (folder / WEIGHTS).is_file():
        return (folder / WEIGHTS,)
    index = folder / WEIGHTS_INDEX
    if not index.is_file():
        raise _no_weights("--model", name, folder, WEIGHTS)
    places = _object_in("--model", index).get("weight_map")
    if not isinstance(places, dict) or not all(isinstance(one, str) for one in places.values()):
        raise UsageError(f"--model: {index}: has no weight_map: the download may be incomplete")
    parts = sorted(set(places.values()))
    missing = [part for part in parts if not (folder / part).is_file()]
    if missing:
        raise UsageError(
            f"--model: {name}: {missing[0]} is missing ({len(missing)} of {len(parts)} files of"
            " weights): the download may be incomplete"
        )
    return tuple(folder / part for part in parts)


def _no_weights(option: str, name: str, folder: Path, wanted: str) -> UsageError:
    pickled = sorted(one.name for one in folder.iterdir() if _PICKLED.fullmatch(one.name))
    if pickled:
        return UsageError(
            f"{option}: {name}: holds only pickled weights ({pickled[0]}), {_CONVERT}"
        )
    return UsageError(f"{option}: {name}: has no weights: {wanted} is missing")


def _settings(folder: Path) -> Iterable[Path]:
    yield from _present(folder, (CONFIG, GENERATION_CONFIG, *_MORE_OF_A_TOKENIZER))
    yield from sorted((folder / _EXTRA_TEMPLATES).glob("*.jinja"))


def _present(folder: Path, names: Iterable[str]) -> Iterable[Path]:
    return (folder / name for name in names if (folder / name).is_file())


def _object_in(option: str, path: Path) -> dict[str, Json]:
    try:
        value = parse_json(read_input(path))
    except BadInput as error:
        raise UsageError(f"{option}: {error}") from None
    except NotJson as error:
        raise UsageError(f"{option}: {path}: {error}") from None
    if not isinstance(value, dict):
        raise UsageError(f"{option}: {path}: must be a JSON object")
    return value


def end_tokens(folder: Path) -> frozenset[int]:
    """The tokens with which the checkpoint itself says that a turn ends."""
    found: set[int] = set()
    for path in _present(folder, (CONFIG, GENERATION_CONFIG)):
        value = _object_in("--model", path).get("eos_token_id")
        found.update(one for one in _as_list(value) if isinstance(one, int))
    return frozenset(found)


def _as_list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else [value]


# Smaller files are read again faster than they are looked up.
_WORTH_REMEMBERING = 1 << 20
_KEPT = 1_000
# A file that was changed a moment ago could be changed again without a new time stamp.
_SETTLED_NS = 2_000_000_000

_Stamp = tuple[int, int, int, int]  # inode, size, mtime_ns, ctime_ns


class _Remembered(msgspec.Struct, frozen=True):
    stamp: _Stamp
    sha256: str


def fingerprint(files: Iterable[tuple[str, Path]]) -> str:
    """One hash over the bytes of files, each under the name that it has in its role."""
    return HashCache.of_this_user().fingerprint(files)


class HashCache:
    """Hashes by path; each holds as long as the file's inode, size and times stay the same."""

    def __init__(self, path: Path, *, settled_ns: int = _SETTLED_NS) -> None:
        self._path = path
        self._settled_ns = settled_ns

    @classmethod
    def of_this_user(cls) -> HashCache:
        given = os.environ.get("XDG_CACHE_HOME")
        root = Path(given) if given else Path("~/.cache").expanduser()
        return cls(root / "callmark" / "file-hashes.json")

    def fingerprint(self, files: Iterable[tuple[str, Path]]) -> str:
        known = self._read()
        before = dict(known)
        hashes = {role: self._sha256(path, known) for role, path in files}
        if known != before:
            self._write(known)
        return digest(hashes)

    def _sha256(self, path: Path, known: dict[str, _Remembered]) -> str:
        key = str(path.resolve())
        try:
            stamp = _stamp_of(path)
            found = known.get(key)
            if found is not None and found.stamp == stamp:
                return found.sha256
            made = file_sha256(path)
            unchanged = _stamp_of(path) == stamp
        except OSError as error:
            raise UsageError(f"--model: {path}: cannot be read: {error.strerror}") from None
        settled = time.time_ns() - stamp[3] > self._settled_ns
        if unchanged and settled and stamp[1] >= _WORTH_REMEMBERING:
            known[key] = _Remembered(stamp, made)
        return made

    def _read(self) -> dict[str, _Remembered]:
        """What cannot be read is no more than forgotten."""
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=dict[str, _Remembered])
        except (OSError, msgspec.MsgspecError, UnicodeError):
            return {}

    def _write(self, known: dict[str, _Remembered]) -> None:
        newest = dict(list(known.items())[-_KEPT:])
        with suppress(OutputFailed, OSError), atomic_writer(self._path) as stream:
            stream.write(msgspec.json.encode(newest))


def _stamp_of(path: Path) -> _Stamp:
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def file_sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
