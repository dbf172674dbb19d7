"""Random adapters of a trained one's shape: how much of an effect is no more than noise?

They live beside the trained adapter in the loaded model, without files: one place for each rank,
filled with the numbers of one null after the other."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from callmark._version import __version__
from callmark.errors import OutputFailed
from callmark.probe.views import NullRun, Question
from callmark.records.jsontext import Json, digest, sha256_hex
from callmark.runners.hf.loading import LoadedModel
from callmark.store.files import atomic_writer, make_folder

if TYPE_CHECKING:
    import torch

NULLS_VERSION = 1  # other numbers for the same seed: another version


class Factors(NamedTuple):
    """The two matrices of an update, B (out × r) and A (r × in), and the factor before them."""

    b: torch.Tensor
    a: torch.Tensor
    scaling: float


class _Place(NamedTuple):
    """One module that an adapter changes."""

    name: str
    layer: Any


class NullAdapters:
    """Makes nulls after the adapter `trained` of a loaded model."""

    def __init__(self, loaded: LoadedModel, trained: str) -> None:
        self._loaded = loaded
        self._trained = trained
        self._slots: dict[float, str] = {}

    def why_not(self) -> str | None:
        """Why no null has this adapter's structure; None: they can be made."""
        config = self._loaded.peft.peft_config[self._trained]
        kind = getattr(config.peft_type, "value", config.peft_type)
        if kind != "LORA":
            return f"nulls are made for LoRA adapters, and this is {kind}"
        if getattr(config, "use_dora", False):
            return "nulls are not made for DoRA, which also scales the weights of the model"
        if any(self._factors(layer, self._trained).a.ndim != 2 for _, layer in self._places()):
            return "nulls are made for linear layers, and this adapter changes convolutions"
        return None

    def switched_to(self, run: NullRun) -> str:
        """Fills the place of this rank with one null, and gives the name of it."""
        slot = self._slot(run.rank_multiplier)
        for name, layer in self._places():
            self._fill(name, layer, slot, run)
        return slot

    def _slot(self, multiplier: float) -> str:
        if multiplier not in self._slots:
            name = f"null_{len(self._slots)}"
            peft = self._loaded.peft
            peft.add_adapter(name, _resize(peft.peft_config[self._trained], multiplier))
            peft.eval()
            self._slots[multiplier] = name
        return self._slots[multiplier]

    def _places(self) -> Iterator[_Place]:
        from peft.tuners.lora import LoraLayer

        for name, layer in self._loaded.model.named_modules():
            if isinstance(layer, LoraLayer) and self._trained in layer.scaling:
                yield _Place(name, layer)

    def _factors(self, layer: Any, adapter: str) -> Factors:
        scaling = float(layer.scaling[adapter])
        if adapter in layer.lora_embedding_A:
            return Factors(
                layer.lora_embedding_B[adapter], layer.lora_embedding_A[adapter], scaling
            )
        return Factors(layer.lora_B[adapter].weight, layer.lora_A[adapter].weight, scaling)

    def _fill(self, name: str, layer: Any, slot: str, run: NullRun) -> None:
        import torch

        place = self._factors(layer, slot)
        generator = torch.Generator().manual_seed(seed_of(run, name))
        with torch.no_grad():
            if run.spec.method == "matched":
                trained = self._factors(layer, self._trained)
                b, a = match_spectrum(spectrum(trained), place, generator)
            else:
                b, a = (
                    torch.randn(one.shape, generator=generator) * run.spec.init_scale
                    for one in (place.b, place.a)
                )
            place.b.copy_(b)
            place.a.copy_(a)
            bias = getattr(layer.lora_B[slot], "bias", None) if slot in layer.lora_B else None
            if bias is not None:
                bias.zero_()


def seed_of(run: NullRun, module: str) -> int:
    """Of one module of one null: the order in which they are filled changes nothing."""
    which = f"{run.seed}\n{run.number}\n{run.rank_multiplier:g}\n{run.spec.method}\n{module}"
    return int(sha256_hex(which.encode())[:15], 16)


def spectrum(trained: Factors) -> torch.Tensor:
    """The singular values of scaling · B · A, largest first. With B = QR and A = (Q'R')ᵀ they are
    those of R R'ᵀ, which is no larger than the rank."""
    import torch

    # In double, on the processor: the same numbers whatever the model runs on.
    _, right = torch.linalg.qr(trained.a.double().cpu().T)
    _, left = torch.linalg.qr(trained.b.double().cpu())
    values: torch.Tensor = torch.linalg.svdvals(left @ right.T) * abs(trained.scaling)
    return values


def match_spectrum(
    values: torch.Tensor, place: Factors, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """B and A with these singular values and random orthonormal directions. A place of another
    rank gets the same curve of values, stretched, with the same sum of squares."""
    import torch

    out, rank, into = place.b.shape[0], place.b.shape[1], place.a.shape[1]
    most = min(out, rank, into)
    kept = _stretch(values, most) / (place.scaling or 1.0)
    b, a = torch.zeros(out, rank).double(), torch.zeros(rank, into).double()
    b[:, :most] = _orthonormal(out, most, generator) * kept
    a[:most] = _orthonormal(into, most, generator).T
    return b, a


def _stretch(values: torch.Tensor, size: int) -> torch.Tensor:
    import torch

    if len(values) == size:
        return values
    at = torch.linspace(0, len(values) - 1, size, dtype=torch.float64)
    low = at.floor().long()
    high = (low + 1).clamp_max(len(values) - 1)
    curve = values[low] + (values[high] - values[low]) * (at - low)
    norm = curve.norm()
    return curve if norm == 0 else curve * (values.norm() / norm)


def _orthonormal(rows: int, columns: int, generator: torch.Generator) -> torch.Tensor:
    """Columns without a preferred direction: the signs of QR are taken back."""
    import torch

    drawn = torch.randn(rows, columns, generator=generator, dtype=torch.float64)
    q, r = torch.linalg.qr(drawn)
    made: torch.Tensor = q * r.diagonal().sign()
    return made


def _resize(config: Any, multiplier: float) -> Any:
    """The trained adapter's configuration with another rank, for numbers that come later: nothing
    is started from the weights of the model, and nothing beside the two factors is trained."""
    made = copy.deepcopy(config)
    made.init_lora_weights = True
    made.lora_dropout = 0.0
    made.modules_to_save = None
    made.trainable_token_indices = None
    made.r = _rank(config.r, multiplier)
    made.rank_pattern = {name: _rank(r, multiplier) for name, r in config.rank_pattern.items()}
    return made


def _rank(rank: int, multiplier: float) -> int:
    return max(1, round(rank * multiplier))


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
        # A cache that cannot be written costs time, and nothing else.
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
