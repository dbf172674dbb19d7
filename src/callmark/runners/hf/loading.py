"""Loading a local model: its folder and that of an adapter are looked at first, then it is loaded
quietly, offline, from safetensors, with adapters that can be switched."""

from __future__ import annotations

import hashlib
import os
import re
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stderr, suppress
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from callmark.errors import BadInput, MissingExtra, OutputFailed, UsageError
from callmark.records.jsontext import Json, NotJson, digest, parse_json
from callmark.store.files import atomic_writer, read_input

if TYPE_CHECKING:
    import torch


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


_EXTRA = ("torch", "transformers", "safetensors", "peft")
# Nothing is fetched, and nothing that runs beside the model takes its threads.
_ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
_SAME_LOGITS = 1e-6


def require_extra() -> None:
    if any(find_spec(name) is None for name in _EXTRA):
        raise MissingExtra("hf_local", "hf")


@contextmanager
def quiet_libraries() -> Iterator[None]:
    """Imports transformers without network, progress bars and advice on standard error."""
    os.environ.update(_ENVIRONMENT)
    from transformers.utils import logging

    verbosity, has_bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if has_bars:
            logging.enable_progress_bar()


@contextmanager
def steady_computing(seed: int, *, determinism_mode: bool) -> Iterator[None]:
    """Seeds and threads. One thread, unless OMP_NUM_THREADS says otherwise: several beside other
    work can be ten times slower."""
    if determinism_mode:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    import torch

    threads = torch.get_num_threads()
    was_strict = torch.are_deterministic_algorithms_enabled()
    if determinism_mode or "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)
    torch.use_deterministic_algorithms(determinism_mode or was_strict)
    torch.manual_seed(seed % 2**63)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(was_strict)


def load_tokenizer(folder: ModelFolder) -> Any:
    return load_tokenizer_of(folder.tokenizer)


def load_tokenizer_of(path: Path) -> Any:
    """From a folder, or from a GGUF file."""
    from transformers import AutoTokenizer

    given: dict[str, str] = {}
    if path.suffix == GGUF and path.is_file():
        _require_gguf(path)
        given = {"gguf_file": path.name}
    with _sentence("--model", path, f"its tokenizer cannot be loaded{_SERVE if given else ''}"):
        return AutoTokenizer.from_pretrained(
            path.parent if given else path, local_files_only=True, trust_remote_code=False, **given
        )


_SERVE = (
    " (serve it instead: llama-server -m FILE, and use --base-url; or name the folder with the"
    " safetensors that it was made from)"
)


def _require_gguf(path: Path) -> None:
    if find_spec("gguf") is None:
        what = "a GGUF file is loaded with the package gguf: pip install gguf"
        raise UsageError(f"--model: {path}: {what}{_SERVE}")


def device_of(name: str) -> torch.device:
    """`auto` is the fastest kind that is there."""
    import torch

    there = ["cpu"]
    if torch.cuda.is_available():
        there += ["cuda", *(f"cuda:{index}" for index in range(torch.cuda.device_count()))]
    if torch.backends.mps.is_available():
        there.append("mps")
    if name == "auto":
        name = next(kind for kind in ("cuda", "mps", "cpu") if kind in there)
    if name not in there:
        found = ", ".join([*there, "auto"])
        raise UsageError(f"--device: there is no {name!r} here; there is: {found}")
    return torch.device(name)


class LoadedModel:
    """One base model in memory. Adapters are put beside it and switched, never loaded again."""

    def __init__(self, model: Any, device: torch.device) -> None:
        self.model = model  # the layers of every adapter are put into it
        self.device = device
        self._peft: Any = None
        self._active: str | None = None
        config = model.config.get_text_config()
        # Tokens of prompt and answer together; None: the model knows no bound.
        self.longest: int | None = getattr(config, "max_position_embeddings", None)
        self.vocabulary: int = model.get_input_embeddings().weight.shape[0]

    def add_adapter(self, name: str, folder: AdapterFolder) -> None:
        """Load an adapter and leave it switched off."""
        from peft import PeftConfig, get_peft_model

        with _sentence("--adapter", folder.path, f"does not fit the model{_made_for(folder)}"):
            config = PeftConfig.from_pretrained(str(folder.path))
            if config.is_prompt_learning:
                raise ValueError(f"{config.peft_type.value} puts tokens into the prompt; use LoRA")
            if self._peft is None:
                self._peft = get_peft_model(self.model, config, adapter_name=name)
            loaded = self._peft.load_adapter(
                str(folder.path), adapter_name=name, torch_device=str(self.device)
            )
            for what, keys in (
                ("it lacks weights for", loaded.missing_keys),
                ("the model has no place for", loaded.unexpected_keys),
            ):
                if keys:
                    raise ValueError(f"{what} {keys[0]} (and {len(keys) - 1} more)")
        self._peft.eval()
        self._switch()

    def refill_adapter(self, name: str, folder: AdapterFolder) -> bool:
        """Put the weights of another adapter of the same make into a place that is there: making
        the place is most of the work. False: it is of another make, and nothing was changed."""
        from peft import PeftConfig, set_peft_model_state_dict
        from safetensors.torch import load_file

        if self._peft is None or name not in self._peft.peft_config:
            return False
        with _sentence("--adapter", folder.path, f"does not fit the model{_made_for(folder)}"):
            config = PeftConfig.from_pretrained(str(folder.path))
            if _make_of(config) != _make_of(self._peft.peft_config[name]):
                return False
            weights = load_file(folder.path / ADAPTER_WEIGHTS, device=str(self.device))
            loaded = set_peft_model_state_dict(self._peft, weights, adapter_name=name)
            lacking = [key for key in loaded.missing_keys if f".{name}." in key]
            for what, keys in (
                ("it lacks weights for", lacking),
                ("the model has no place for", loaded.unexpected_keys),
            ):
                if keys:
                    raise ValueError(f"{what} {keys[0]} (and {len(keys) - 1} more)")
        return True

    def drop_adapter(self, name: str) -> None:
        """Forget an adapter; another one has to be there."""
        other = next(one for one in self._peft.peft_config if one != name)
        self._peft.set_adapter(other, inference_mode=True)  # to delete the active one is a warning
        self._peft.delete_adapter(name)
        self._switch()

    @contextmanager
    def adapter(self, name: str | None) -> Iterator[None]:
        """The model with this adapter switched on; None is the base model alone."""
        before, self._active = self._active, name
        try:
            self._switch()
            yield
        finally:
            self._active = before
            self._switch()

    @property
    def peft(self) -> Any:
        """What holds the adapters; None before the first."""
        return self._peft

    def logits(self, ids: Sequence[int]) -> torch.Tensor:
        """Of the token after `ids`, computed alone and in one go."""
        import torch

        with torch.inference_mode():
            given = torch.tensor([list(ids)], device=self.device)
            logits: torch.Tensor = self.model(input_ids=given, use_cache=False).logits
            return logits[0, -1].float()

    def changes(self, name: str, ids: Sequence[int], other: str | None = None) -> bool:
        """Whether an adapter changes what the base model (or another adapter) makes of these
        tokens."""
        with self.adapter(other):
            base = self.logits(ids)
        with self.adapter(name):
            return bool((self.logits(ids) - base).abs().max() > _SAME_LOGITS)

    def _switch(self) -> None:
        if self._peft is None:
            return
        if self._active is None:
            self._peft.base_model.disable_adapter_layers()
        else:
            self._peft.base_model.enable_adapter_layers()
            self._peft.set_adapter(self._active, inference_mode=True)


def load_model(folder: ModelFolder, *, dtype: str, device: torch.device) -> LoadedModel:
    import torch
    from transformers import AutoModelForCausalLM, GgufConfig

    more: dict[str, Any] = {"use_safetensors": True}
    if folder.gguf is not None:
        # As plain numbers: then an adapter can be put on it, and batches are those of any model.
        more = {"gguf_file": folder.gguf, "quantization_config": GgufConfig(dequantize=True)}
    what = f"the model cannot be loaded{'' if folder.gguf is None else _SERVE}"
    # The bar that counts a GGUF file's tensors knows no switch.
    silence = nullcontext() if folder.gguf is None else redirect_stderr(StringIO())
    with _sentence("--model", folder.tokenizer, what), silence:
        model, found = AutoModelForCausalLM.from_pretrained(
            folder.path,
            dtype=getattr(torch, dtype),
            local_files_only=True,
            trust_remote_code=False,
            output_loading_info=True,
            **more,
        )
        missing = sorted(found["missing_keys"])
        if missing:
            # transformers would go on with random numbers in their place.
            raise ValueError(f"its weights lack {missing[0]} (and {len(missing) - 1} more)")
        # What is stored in few bits lies where its library put it.
        is_packed = folder.quantization is not None and folder.gguf is None
        return LoadedModel(model.eval() if is_packed else model.eval().to(device), device)


def _make_of(config: Any) -> dict[str, Any]:
    """What two adapters must share to take each other's place: all but what they were made from."""
    made: dict[str, Any] = config.to_dict()
    sources = ("base_model_name_or_path", "revision", "inference_mode", "peft_version")
    return {key: value for key, value in made.items() if key not in sources}


def _made_for(folder: AdapterFolder) -> str:
    return "" if folder.base is None else f" (it was made for {folder.base})"


@contextmanager
def _sentence(option: str, path: Path, what: str) -> Iterator[None]:
    """What the libraries say about somebody's files, as one sentence."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except Exception as error:  # tokenizers raises the bare class, the others all there is
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        # The first line often only announces the list that follows it.
        said = next((line for line in lines if not line.endswith(":")), type(error).__name__)
        raise UsageError(f"{option}: {path}: {what}: {said[:300]}") from None
