"""Runs to look at, and a viewer that serves them."""

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from toolmark.cli import main
from toolmark.cli.view import doing_of
from toolmark.config import load_config
from toolmark.resources import demo_paths
from toolmark.store.journal import Journal, open_journal
from toolmark.view.server import ViewServer
from toolmark.view.viewer import Viewer


def make_run(out: Path, *, worse: int = 0, age: int = 0) -> Path:
    """The bundled dataset with its recorded answers; every `worse`th of them says nothing."""
    paths = demo_paths()
    answers = [json.loads(line) for line in paths.answers.read_text("utf-8").splitlines()]
    for answer in answers[::worse] if worse else ():
        answer["model_output"] = "I do not know."
        answer.pop("turns", None)
    out.parent.mkdir(parents=True, exist_ok=True)
    recorded = out.parent / "answers.txt"
    recorded.write_text("".join(f"{json.dumps(answer)}\n" for answer in answers), "utf-8")
    words = ["run", "--runner", "replay", "--in", paths.dataset, "--fixtures", paths.fixtures]
    words += ["--model", recorded, "--out", out, "--report", out.with_name("report.json")]
    main([str(word) for word in (*words, "--quiet", "--no-html")])
    when = out.stat().st_mtime - age
    os.utime(out, (when, when))
    return out


def begin_journal(out: Path, results: Path) -> tuple[Journal, list[bytes]]:
    """A run over the same dataset that has not finished anything yet, and what it will write."""
    lines = results.read_bytes().splitlines(keepends=True)
    fingerprints = json.loads(lines[0])["fingerprints"]
    return open_journal(out, fingerprints, mode="new"), lines


@contextmanager
def viewing(folder: Path, scratch: Path) -> Iterator[ViewServer]:
    viewer = Viewer(folder, scratch, doing_of(load_config(Path(os.devnull), {}), None))
    with ViewServer(viewer, 0) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
            viewer.close()
