"""`make ci-parity`: the shipped model, served by somebody else's server and run locally, must give
nearly the same macro F1. With two results files as arguments: those two."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from callmark.cli import dispatch as callmark
from callmark.resources import shipped_model
from dev.prove.serving import served

WORK = Path("build") / "ci" / "parity"
MAX_F1_DELTA = "0.03"


def main(arguments: Sequence[str] | None = None) -> int:
    given = [Path(name) for name in (sys.argv[1:] if arguments is None else arguments)]
    if len(given) not in (0, 2):
        print("python -m dev.prove.parity [SERVED_RESULTS LOCAL_RESULTS]", file=sys.stderr)
        return 2
    over_http, local = given or _made()
    return callmark(["compare", str(over_http), str(local), "--max-f1-delta", MAX_F1_DELTA])


def _made() -> tuple[Path, Path]:
    shutil.rmtree(WORK, ignore_errors=True)
    model = shipped_model().folder
    with served(model, WORK / "server") as base_url:
        over_http = _run("served", "openai_http", model, "--base-url", base_url)
    return over_http, _run("local", "hf_local", model)


def _run(name: str, runner: str, model: Path, *more: str) -> Path:
    shipped = shipped_model()
    out = WORK / name / "results.jsonl"
    code = callmark(
        [
            "run", "--config", ".ci/parity.yaml", "--runner", runner, "--model", str(model),
            "--in", str(shipped.dataset), "--fixtures", str(shipped.fixtures),
            "--out", str(out), "--restart", *more,
        ]
    )  # fmt: skip
    if code > 1:
        raise SystemExit(code)
    return out


if __name__ == "__main__":
    sys.exit(main())
