"""Views over one loaded model: adapters are switched, nothing is ever loaded twice.

Null adapters, random ones of a trained one's shape, say how much of an effect is no more than
noise. They live beside the trained adapter in the loaded model, without files: one place for each
rank, filled with the numbers of one null after the other."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from callmark._version import __version__
from callmark.calls.registry import name_of_tool
from callmark.errors import Incomplete, OutputFailed, UsageError
from callmark.probe.records import Rendering, WrittenAnswer
from callmark.probe.views import CannotAsk, ModelAlone, NullRun, Question, written_of
from callmark.records.jsontext import Json, digest, sha256_hex
from callmark.records.seams import Failure, Reply
from callmark.run.loop import drive_at_once
from callmark.runners.hf.loading import LoadedModel, adapter_folder
from callmark.runners.hf.local import ADAPTER, LIBRARIES, LocalRunner, open_local
from callmark.runners.hf.prompts import CannotRender
from callmark.runners.options import RunnerOptions
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


CHECKPOINT = "checkpoint"  # one of a series, while it is asked
TOKENIZER_CONFIG = "tokenizer_config.json"
EARLIER = "earlier"  # the adapter of the base view, where it has one


@contextmanager
def open_adapted(options: RunnerOptions, earlier: str | None = None) -> Iterator[AdaptedViews]:
    """One checkpoint, with and without the adapter of the options. `earlier`: an adapter that
    the base view wears."""
    with open_local(options) as runner:
        yield adapted_views(runner, earlier)


def adapted_views(runner: LocalRunner, earlier: str | None = None) -> AdaptedViews:
    """Views over a runner that has an adapter; loads it if that is still to be done."""
    drive_at_once(runner.ready())
    if earlier is not None:
        runner.loaded.add_adapter(EARLIER, adapter_folder(earlier))
    return AdaptedViews(runner, None if earlier is None else EARLIER)


class AdaptedViews:
    """Base, tuned and nulls of one model in memory."""

    def __init__(self, runner: LocalRunner, before: str | None) -> None:
        self._runner = runner
        self._before = before
        self._worn = ADAPTER
        self._nulls = NullAdapters(runner.loaded, ADAPTER)
        self.why_no_nulls = self._nulls.why_not()

    def check(self, questions: Sequence[Question]) -> None:
        prompts = [prompt_of(self._runner, question) for question in questions]
        loaded = self._runner.loaded
        ids = (self._runner.encoded(prompt) for prompt in prompts)
        if questions and not any(loaded.changes(self._worn, one, self._before) for one in ids):
            raise CannotAsk(
                "the adapter is not applied: for every prompt the logits are those of the base"
                " view (are all of its weights zero, or its target modules not in this model?)"
            )

    def rendering(self, questions: Sequence[Question]) -> Rendering | None:
        folder = self._runner.adapter_path
        if folder is None or not (folder / TOKENIZER_CONFIG).is_file():
            return None
        return compare_rendering(self._runner, questions, folder)

    def base(self, questions: Sequence[Question]) -> list[WrittenAnswer]:
        return self._written(questions, self._before)

    def tuned(self, questions: Sequence[Question]) -> list[WrittenAnswer]:
        return self._written(questions, self._worn)

    def null(self, questions: Sequence[Question], run: NullRun) -> list[str]:
        written = self._written(questions, self._nulls.switched_to(run))
        return [one.text for one in written]

    @contextmanager
    def wearing(self, folder: str) -> Iterator[None]:
        # One place for all: a long training leaves more adapters than a memory holds.
        loaded, given = self._runner.loaded, adapter_folder(folder)
        if not loaded.refill_adapter(CHECKPOINT, given):
            if CHECKPOINT in loaded.peft.peft_config:
                loaded.drop_adapter(CHECKPOINT)
            loaded.add_adapter(CHECKPOINT, given)
        self._worn = CHECKPOINT
        try:
            yield
        finally:
            self._worn = ADAPTER

    def facts(self) -> dict[str, Json]:
        return {"views": "adapters on one loaded model", **facts_of(self._runner)}

    def identity(self) -> dict[str, Json]:
        return {
            "model": self._runner.model_fingerprint(),
            "runner": self._runner.fingerprint_parts(),
            "libraries": {name: version(name) for name in LIBRARIES},
        }

    def measured(self) -> dict[str, Json]:
        return self._runner.observed().measured

    def warnings(self) -> tuple[str, ...]:
        return self._runner.observed().warnings

    def _written(self, questions: Sequence[Question], adapter: str | None) -> list[WrittenAnswer]:
        with self._runner.loaded.adapter(adapter):
            return written_by(self._runner, questions)


class LocalModel:
    """A checkpoint in a folder, with an adapter if the options name one; in memory only while it
    is asked, so that two of them need the room of one."""

    what = "checkpoint"
    why_no_nulls = "no adapter was given: nulls are random adapters of the trained one's shape"

    def __init__(self, options: RunnerOptions) -> None:
        self._options = options
        self._facts: dict[str, Json] = {}
        self._measured: dict[str, Json] = {}
        self._warnings: list[str] = []

    def look(self, questions: Sequence[Question]) -> str | None:
        with open_local(self._options) as runner:
            for question in questions:
                prompt_of(runner, question)
            return f"{runner.model_fingerprint()} {self._options.local.dtype}"

    def rendering(self, questions: Sequence[Question], other: ModelAlone) -> Rendering | None:
        if not isinstance(other, LocalModel):
            return None
        with open_local(self._options) as runner:
            return compare_rendering(runner, questions, Path(other._options.model or ""))

    def of_folder(self, folder: str) -> LocalModel:
        return LocalModel(msgspec.structs.replace(self._options, model=folder))

    def facts(self) -> dict[str, Json]:
        return self._facts

    def measured(self) -> dict[str, Json]:
        return self._measured

    def warnings(self) -> tuple[str, ...]:
        return tuple(self._warnings)

    def written(self, questions: Sequence[Question]) -> list[WrittenAnswer]:
        with open_local(self._options) as runner:
            drive_at_once(runner.ready())
            own = None if self._options.local.adapter is None else ADAPTER
            with runner.loaded.adapter(own):
                written = written_by(runner, questions)
            observed = runner.observed()
            self._facts = facts_of(runner)
        self._measured = observed.measured
        self._warnings += observed.warnings
        return written


def written_by(runner: LocalRunner, questions: Sequence[Question]) -> list[WrittenAnswer]:
    """What the view that is switched on answers; every question with its own bound."""
    batch = [question.conversation(number) for number, question in enumerate(questions)]
    made = runner.texts(batch, [question.max_new_tokens for question in questions])
    return [_or_raise(reply, question) for reply, question in zip(made, questions, strict=True)]


def _or_raise(reply: Reply | Failure, question: Question) -> WrittenAnswer:
    if isinstance(reply, Failure):
        raise Incomplete(f"case {question.name[:60]!r}: no answer: {reply.reason}")
    return written_of(reply)


def compare_rendering(
    runner: LocalRunner, questions: Sequence[Question], folder: Path
) -> Rendering:
    """The prompts of a runner beside those of the tokenizer in another folder: texts and tokens."""
    different, note = 0, f"the tokenizer in {folder}"
    try:
        own = runner.with_tokenizer(folder)
    except UsageError as error:
        return Rendering(prompts=len(questions), different=len(questions), note=f"{note}: {error}")
    for question in questions:
        given = question.conversation(0)
        try:
            text, other = runner.prompt(given), own.prompt(given)
            different += text != other or runner.encoded(text) != own.encoded(other)
        except CannotRender:
            different += 1
    if own.tools_block != runner.tools_block:
        note += (
            f" shows tools by a {own.tools_block} block, the base's by a {runner.tools_block} one"
        )
    return Rendering(prompts=len(questions), different=different, note=note)


def prompt_of(runner: LocalRunner, question: Question) -> str:
    """The prompt as the model reads it, every offered tool in it."""
    where = f"the tools are not in the prompt of case {question.name[:60]!r}"
    try:
        prompt = runner.prompt(question.conversation(0))
    except CannotRender as error:
        raise CannotAsk(f"{where}: {error}") from None
    missing = [name for tool in question.tools if (name := name_of_tool(tool)) not in prompt]
    if missing:
        raise CannotAsk(
            f"{where}: {missing[0]} is missing; does the prompt wrapper use `tools`, and is"
            " --tool-choice auto?"
        )
    return prompt


def facts_of(runner: LocalRunner) -> dict[str, Json]:
    return {
        "model_fingerprint": runner.model_fingerprint(),
        "tokenizer_fingerprint": runner.tokenizer_fingerprint(),
        "runner": runner.fingerprint_parts(),
        **runner.observed().provenance,
    }
