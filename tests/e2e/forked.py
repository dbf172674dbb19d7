"""`python -m callmark` as a process of its own, without the half second that its imports take: a
server that has them forks for each call. Streams, folder, environment, exit and what is left
running are those of a real process; whose variables matter to Python itself needs a new one."""

import gc
import importlib
import json
import os
import pkgutil
import runpy
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
# They load torch, which makes each fork three times as slow; who needs them loads them himself.
LEFT_OUT = ("callmark.runners.hf", "callmark.training")
USED_LATER = ("babel.dates", "jsonschema_rs", "numpy", "rich.console", "rich.progress", "yaml")


class ForkServer:
    def __init__(self, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__], env=environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8",
        )  # fmt: skip

    def call(
        self, words: list[str], *, cwd: Path, env: dict[str, str], stdin: str, streams: Path
    ) -> subprocess.CompletedProcess[str]:
        """`streams` is a folder for the files that stand in for pipes."""
        names = [str(streams / name) for name in ("stdin", "stdout", "stderr")]
        Path(names[0]).write_text(stdin, "utf-8")
        asked = {"words": words, "cwd": str(cwd), "env": env, "streams": names}
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        code = int(self._process.stdout.readline())
        printed = [Path(name).read_text("utf-8") for name in names[1:]]
        return subprocess.CompletedProcess(words, code, *printed)

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait(timeout=30)
        self._process.stdout.close()


def serve() -> None:
    import callmark

    for module in pkgutil.walk_packages(callmark.__path__, "callmark."):
        if not module.name.endswith("__main__") and not module.name.startswith(LEFT_OUT):
            importlib.import_module(module.name)
    for name in USED_LATER:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # a child that ends looks at nothing of this: without it, that takes a second
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            begin(**json.loads(line))
            return
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def begin(words: list[str], cwd: str, env: dict[str, str], streams: list[str]) -> None:
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    made = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    for number, (name, flags) in enumerate(zip(streams, (os.O_RDONLY, made, made), strict=True)):
        opened = os.open(name, flags, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, "utf-8", "backslashreplace", closefd=False)  # noqa: SIM115
    sys.argv = ["callmark", *words]
    sys.path[0] = cwd
    runpy.run_module("callmark", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    serve()
