"""The stages of `python -m dev.training`, each from what stands before it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from callmark.records.jsontext import Json, want_list
from dev.training.adapters import ADAPTERS, tuned
from dev.training.bundle import write_cases, write_dataset
from dev.training.dialogues import FAMILIES, mixed_dialogue, training_dialogue
from dev.training.evaluate import calls_kept, record_answers
from dev.training.examples import Draw, Example, examples_of
from dev.training.learning import Course, exact, learn, new_model
from dev.training.rendering import messages_of, tools_named
from dev.training.vocabulary import make_tokenizer
from dev.training.world import TOOLS, World

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

SEED = 7
# From the bottom up, then everything mixed for a second time.
COURSES: dict[str, tuple[Draw, Course]] = {
    "first": (training_dialogue, Course(steps=2000, peak=3e-3, seed=SEED)),
    "second": (mixed_dialogue, Course(steps=800, peak=1e-3, seed=SEED + 1)),
}
ADAPTER_BASE = "callmark-tiny"
_CURVE_SAMPLES = 12  # of each family


def make_data(out: Path, work: Path) -> None:
    write_dataset(out, out.parent / "fixtures", SEED)
    write_cases(out / "cases.jsonl", SEED)


def make_model(out: Path, work: Path) -> None:
    """Goes on where it was interrupted."""
    folder = out / "model"
    tokenizer = make_tokenizer(folder, SEED)
    model = new_model(tokenizer, SEED)
    examples = _curve_examples(tokenizer)
    for name, (draw, course) in COURSES.items():
        for done, loss in learn(model, tokenizer, draw, course, work / name):
            right = exact(model, examples, tokenizer.pad_token_id)
            row = {"step": done, "loss": round(loss, 4), "exact": round(sum(right) / len(right), 4)}
            print(json.dumps({"course": name, **row}), flush=True)
            _note(work, f"curve_{name}", [*want_list(_noted(work).get(f"curve_{name}")), row])
    _save(model, folder)


def make_adapters(out: Path, work: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(out / "model")
    cases = [json.loads(line) for line in (out / "cases.jsonl").read_text("utf-8").splitlines()]
    base = AutoModelForCausalLM.from_pretrained(out / "model")
    kept = {"base": calls_kept(base, tokenizer, cases)}
    for name in ADAPTERS:
        base = AutoModelForCausalLM.from_pretrained(out / "model")
        model, learning = tuned(base, tokenizer, name, SEED, work / name)
        for done, loss in learning:
            print(json.dumps({"adapter": name, "step": done, "loss": round(loss, 4)}), flush=True)
        kept[name] = calls_kept(model, tokenizer, cases)
        _save_adapter(model, out / "adapters" / name)
    print(json.dumps(kept), flush=True)
    _note(work, "cases", kept)


def make_answers(out: Path, work: Path) -> None:
    verdict = record_answers(out, out / "answers.jsonl", work)
    print(json.dumps({"verdict": verdict}), flush=True)


def _curve_examples(tokenizer: PreTrainedTokenizerFast) -> list[Example]:
    """Held-out dialogues of every family, none of which is in the dataset."""
    world = World(Random(f"curve {SEED}"), "held_out")
    dialogues = [
        family.make(world, name) for name, family in FAMILIES.items() for _ in range(_CURVE_SAMPLES)
    ]
    tools = tools_named(TOOLS)
    return examples_of(tokenizer, [(messages_of(dialogue), tools) for dialogue in dialogues])


def _save(model: Any, folder: Path) -> None:
    model.save_pretrained(folder)
    for path in folder.glob("*.safetensors"):
        path.chmod(0o644)  # written for its owner only, but to be read by everybody


def _save_adapter(model: Any, folder: Path) -> None:
    """Without the page that PEFT adds, without this machine's paths, in one order."""
    shutil.rmtree(folder, ignore_errors=True)
    _save(model, folder)
    (folder / "README.md").unlink(missing_ok=True)
    path = folder / "adapter_config.json"
    config = json.loads(path.read_text("utf-8"))
    config["base_model_name_or_path"] = ADAPTER_BASE
    config["target_modules"] = sorted(config["target_modules"])
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", "utf-8")


def course_notes(work: Path) -> Path:
    return work / "course.json"


def _noted(work: Path) -> dict[str, Json]:
    path = course_notes(work)
    if not path.exists():
        return {}
    noted: dict[str, Json] = json.loads(path.read_text("utf-8"))
    return noted


def _note(work: Path, key: str, value: Json) -> None:
    noted = {**_noted(work), key: value}
    course_notes(work).write_text(json.dumps(noted, indent=1) + "\n", "utf-8")
