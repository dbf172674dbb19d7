"""What a process leaves behind that is killed while it puts results in their place."""

import os
import signal
import subprocess
import sys
from pathlib import Path

SRC = Path(__file__).parents[2] / "src"
KILLED_WHILE_WRITING = """
import os, signal, sys
from pathlib import Path
from callmark.store.files import atomic_writer

with atomic_writer(Path(sys.argv[1])) as stream:
    stream.write(b"half of it")
    stream.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_the_next_run_with_the_same_out_removes_its_own_leftovers(project):
    others = project.folder / "others.jsonl"
    before = names_in(project.folder)
    for path in (project.out, project.report, others):
        child = [sys.executable, "-c", KILLED_WHILE_WRITING, path]
        killed = subprocess.run(child, env={**os.environ, "PYTHONPATH": str(SRC)}, check=False)
        assert killed.returncode == -signal.SIGKILL
    assert len(names_in(project.folder) - before) == 3
    project.run()
    [tools] = [path.name for path in project.folder.glob("tools-*.json")]
    [left] = names_in(project.folder) - before - {"results.jsonl", "report.json", tools}
    assert left.startswith(".callmark-")
    project.run(out=str(others))
    assert left not in names_in(project.folder)
