"""`make train`: the model, its adapters, the held-out dataset and the recorded answers."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import msgspec

from dev.training.making import (
    COURSES,
    course_notes,
    make_adapters,
    make_answers,
    make_data,
    make_model,
)

_ROOT = Path(__file__).parents[2]
TINY = _ROOT / "src" / "callmark" / "data" / "tiny"
WORK = _ROOT / "build" / "training"
_NEEDED = ("torch", "transformers", "peft", "safetensors", "tokenizers")
STAGES = {
    "data": make_data,
    "model": make_model,
    "adapters": make_adapters,
    "answers": make_answers,
}


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        print(f"python -m dev.training: needs {missing[0]}; pip install '.[hf]'")
        return 2
    # Before torch is loaded: threads that wait for others must not spin.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    import torch

    torch.set_num_threads(options.threads)
    torch.use_deterministic_algorithms(True)
    for stage in options.only or STAGES:
        STAGES[stage](options.out, options.work)
    write_manifest(options.out, options.work)
    return 0


def write_manifest(folder: Path, work: Path) -> None:
    """Every shipped file by its SHA-256, and how the weights came to be."""
    manifest = folder / "manifest.json"
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path != manifest)
    content = {
        "courses": {name: msgspec.structs.asdict(course) for name, (_, course) in COURSES.items()},
        **json.loads(course_notes(work).read_text("utf-8")),
        "sha256": {
            path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in files
        },
    }
    manifest.write_text(json.dumps(content, indent=1) + "\n", "utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m dev.training", description=__doc__)
    parser.add_argument(
        "--only", action="append", choices=STAGES, metavar="STAGE", help=f"of {', '.join(STAGES)}"
    )
    parser.add_argument("--out", type=Path, default=TINY, metavar="DIR", help="what ships")
    parser.add_argument(
        "--work", type=Path, default=WORK, metavar="DIR", help="checkpoints, to go on from"
    )
    parser.add_argument("--threads", type=int, default=2, metavar="N")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
