"""`make train`: the model, its adapters, the held-out dataset and the recorded answers."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from training.making import SEED, make_adapters, make_answers, make_data, make_model

_ROOT = Path(__file__).parents[1]
TINY = _ROOT / "src" / "toolmark" / "data" / "tiny"
WORK = _ROOT / "build" / "training"
STAGES = {
    "data": make_data,
    "model": make_model,
    "adapters": make_adapters,
    "answers": make_answers,
}


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    # Set before torch is loaded: threads that wait must leave the machine to others.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    _prepare_torch(options.threads)
    for stage in options.stages or STAGES:
        STAGES[stage](options.out, options.work)
    write_manifest(options.out, options.work)
    return 0


def write_manifest(folder: Path, work: Path) -> None:
    """Every shipped file by its SHA-256, and how the weights came to be."""
    course = json.loads((work / "course.json").read_text("utf-8"))
    manifest = folder / "manifest.json"
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path != manifest)
    hashes = {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }
    text = json.dumps({"seed": SEED, "training": course, "sha256": hashes}, indent=1)
    manifest.write_text(f"{text}\n", "utf-8")
