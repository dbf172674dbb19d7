"""Loading a local model: quietly, offline, from safetensors, with adapters that can be switched."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stderr
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from callmark.errors import MissingExtra, UsageError
from callmark.runners.hf.folder import ADAPTER_WEIGHTS, GGUF, AdapterFolder, ModelFolder

if TYPE_CHECKING:
    import torch

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
