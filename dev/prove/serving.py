"""Third parties' servers: `transformers serve` on a local model folder, and litellm's proxy, which
speaks three protocols, before it."""

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
    command = [
        sys.executable, "-c", _COMMAND, "serve", str(model),
        "--host", "127.0.0.1", "--port", str(port), "--device", "cpu", "--dtype", "float32",
    ]  # fmt: skip
    with _running(command, environment, f"http://127.0.0.1:{port}/health", work / "server.log"):
        yield f"http://127.0.0.1:{port}/v1"


PROXIED_MODEL = "shipped"
PROXY_KEY = "sk-proxy-of-a-test"  # nothing behind it can be reached from elsewhere


@contextmanager
def proxied(program: Path, model: Path, backend: str, work: Path) -> Iterator[str]:
    """litellm's proxy (`program`, in an environment of its own) in front of a served model: its
    base URL while it runs. It asks nobody else: prices come with it."""
    port = _free_port()
    work.mkdir(parents=True, exist_ok=True)
    config = work / "proxy.yaml"
    config.write_text(
        "model_list:\n"
        f"  - model_name: {PROXIED_MODEL}\n"
        "    litellm_params:\n"
        f"      model: openai/{model}\n      api_base: {backend}\n      api_key: none\n"
        f"general_settings:\n  master_key: {PROXY_KEY}\n",
        "utf-8",
    )
    environment = {
        **os.environ,
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        # Messages would be turned into Responses with tools that transformers' server cannot read.
        "LITELLM_USE_CHAT_COMPLETIONS_URL_FOR_ANTHROPIC_MESSAGES": "True",
        "PYTHONPATH": "",
    }
    command = [str(program), "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
    ready = f"http://127.0.0.1:{port}/health/liveliness"
    with _running(command, environment, ready, work / "proxy.log"):
        yield f"http://127.0.0.1:{port}/v1"


@contextmanager
def _running(
    command: list[str], environment: dict[str, str], ready: str, log: Path
) -> Iterator[None]:
    with log.open("wb") as stream:
        server = subprocess.Popen(  # noqa: S603 - what the test names, without a shell
            command, env=environment, stdout=stream, stderr=subprocess.STDOUT
        )
    try:
        _wait(server, ready, log)
        yield
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
