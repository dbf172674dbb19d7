"""A third party's OpenAI-compatible server (`transformers serve`) on a local model folder."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

_PATIENCE_SEC = 300
_COMMAND = "from transformers.cli.transformers import main; main()"


@contextmanager
def served(model: Path, work: Path) -> Iterator[str]:
    """The base URL while the server runs; it is stopped by its own pid."""
    port = _free_port()
    (work / "hub").mkdir(parents=True, exist_ok=True)  # its list of models looks there
    environment = {
        **os.environ,
        "HF_HOME": str(work),
        "HF_HUB_CACHE": str(work / "hub"),
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
    }
    log = work / "server.log"
    with log.open("wb") as stream:
        server = subprocess.Popen(  # noqa: S603 - our own interpreter
            [
                sys.executable, "-c", _COMMAND, "serve", str(model),
                "--host", "127.0.0.1", "--port", str(port), "--device", "cpu", "--dtype", "float32",
            ],
            env=environment,
            stdout=stream,
            stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        _wait(server, f"http://127.0.0.1:{port}/health", log)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _wait(server: subprocess.Popen[bytes], url: str, log: Path) -> None:
    until = time.monotonic() + _PATIENCE_SEC
    while time.monotonic() < until:
        if server.poll() is not None:
            raise SystemExit(f"the server ended by itself; see {log}")
        try:
            with urlopen(url, timeout=5):  # noqa: S310 - our own address
                return
        except (URLError, OSError):
            time.sleep(0.5)
    raise SystemExit(f"the server is not ready after {_PATIENCE_SEC} s; see {log}")
