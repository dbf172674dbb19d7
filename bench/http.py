"""What `callmark run` costs on a served model, in units of a bare aiohttp loop that sends the same
two requests per sample to the same server; what of it is the client, what the rest without scoring;
and its memory at 1,000 and 20,000 samples."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

ROUNDS = 3
AT_ONCE = 64
CITIES = 1000
FEW, MANY = 1_000, 20_000
BARE = """
import asyncio, sys
import aiohttp, msgspec
url, tools, size, at_once = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
encode, decode = msgspec.json.encode, msgspec.json.decode
tools = msgspec.Raw(tools.encode())

async def ask(session, messages):
    body = {"model": "stub", "messages": messages, "tools": tools, "tool_choice": "auto",
            "temperature": 0.0, "max_tokens": 1024, "seed": 42}
    async with session.post(url, data=encode(body)) as response:
        return decode(await response.read())["choices"][0]["message"]

async def work(session, numbers):
    for number in numbers:
        city = number % 1000
        messages = [{"role": "user", "content": f"How many people live in city {city}?"}]
        message = await ask(session, messages)
        call = message["tool_calls"][0]
        assert decode(call["function"]["arguments"])["q"] == f"city {city}"
        result = '{"ok":true,"count":%d,"summary":"City %d is large."}' % (1000 + 7 * city, city)
        messages += [message, {"role": "tool", "tool_call_id": call["id"], "content": result}]
        message = await ask(session, messages)
        assert str(1000 + 7 * city) in message["content"]

async def main():
    numbers = iter(range(size))
    headers = {"Content-Type": "application/json", "Authorization": "Bearer key"}
    async with aiohttp.ClientSession(headers=headers) as session:
        await asyncio.gather(*(work(session, numbers) for _ in range(at_once)))

asyncio.run(main())
"""

# The same loop over our own client; encoding and decoding included.
CLIENT = (
    BARE.replace("import aiohttp, msgspec", "import msgspec")
    .replace(
        """    async with session.post(url, data=encode(body)) as response:
        return decode(await response.read())["choices"][0]["message"]
""",
        """    response = await session.post(encode(body))
    return decode(response.body)["choices"][0]["message"]
""",
    )
    .replace(
        """    headers = {"Content-Type": "application/json", "Authorization": "Bearer key"}
    async with aiohttp.ClientSession(headers=headers) as session:
        await""",
        """    from callmark.runners.http.client import Transport, endpoint_of
    from callmark.runners.options import ServedOptions
    served = ServedOptions(base_url=url, api_key="key")
    session = Transport(endpoint_of(served), timeout=120.0, keep_alive=True)
    if True:
        await""",
    )
)
# A run in which every trial has the scores of the first.
NOT_SCORED = """
import sys
from importlib import import_module
play = import_module("callmark.run.play")
score, known = play.score_trial, []
def first_score(*given):
    if not known:
        known.append(score(*given))
    return known[0]
play.score_trial = first_score
from callmark.__main__ import main
sys.exit(main())
"""


class Used(NamedTuple):
    cpu_seconds: float
    peak_mb: float


def _item(number: int) -> dict[str, object]:
    city = number % CITIES
    calls = [{"name": "web.search", "arguments": {"q": f"city {city}"}}]
    metadata = {"sample_id": f"city-{number:07}", "call_sequence": calls}
    return {"prompt": f"How many people live in city {city}?", "metadata": metadata}


def _fixture(number: int) -> dict[str, object]:
    result = {"ok": True, "count": 1000 + 7 * number, "summary": f"City {number} is large."}
    return {"name": "web.search", "key": {"q": f"city {number}"}, "result": result}


def write_files(folder: Path, size: int) -> None:
    """The dataset and its fixtures."""
    (folder / "fixtures").mkdir(parents=True, exist_ok=True)
    header = {"__header__": True, "dataset_version": "1"}
    for path, lines in (
        (folder / "dataset.jsonl", chain((header,), map(_item, range(size)))),
        (folder / "fixtures" / "all.jsonl", map(_fixture, range(CITIES))),
    ):
        with path.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)


@contextmanager
def stub_server() -> Iterator[str]:
    """The base URL of a server in a process of its own."""
    with subprocess.Popen(
        [sys.executable, "-m", "bench.stub_server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout
        assert server.stdin
        yield f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
        server.stdin.close()


def used_by(words: list[str], *, may_end: tuple[int, ...] = (0,)) -> Used:
    """CPU seconds and peak memory of one process."""
    environment = {**os.environ, "OPENAI_API_KEY": "key"}
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL, env=environment)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode in may_end, (words, child.returncode)
    return Used(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


CALLMARK = ("-m", "callmark")


def run_callmark(folder: Path, url: str, *more: object, program: Sequence[str] = CALLMARK) -> Used:
    out = folder / "results.jsonl"
    words = ["--in", folder / "dataset.jsonl", "--fixtures", folder / "fixtures", "--out", out]
    served = ["--runner", "openai_http", "--model", "stub", "--base-url", url]
    at_once = ["--max-connections", AT_ONCE, "--quiet"]
    every = [sys.executable, *program, "run", *words, *served, *at_once, *more]
    may_end = (0,) if program is CALLMARK else (0, 1)  # the scores of one may fail a gate
    used = used_by([str(word) for word in every], may_end=may_end)
    with out.open("rb") as lines:
        assert b'"status":"ok"' in lines.readline()
    out.unlink()
    return used


def run_bare(url: str, size: int, program: str = BARE) -> Used:
    from callmark.api import builtin_registry

    registry = builtin_registry()
    tools = json.dumps(registry.openai_tools(registry.names)).replace("web.search", "web_search")
    address = f"{url}/chat/completions"
    return used_by([sys.executable, "-c", program, address, tools, str(size), str(AT_ONCE)])


def rows() -> list[tuple[str, str, str]]:
    """(what, figure, bound). All take turns, so that a busy moment hits them alike."""
    taken: dict[str, list[Used]] = {"ours": [], "bare": [], "client": [], "unscored": []}
    with TemporaryDirectory() as name, stub_server() as url:
        many, few = Path(name, "many"), Path(name, "few")
        write_files(many, MANY)
        write_files(few, FEW)
        unscored = ("-c", NOT_SCORED)
        few_mb = run_callmark(few, url).peak_mb
        start = run_callmark(few, url, program=unscored).cpu_seconds
        for _ in range(ROUNDS):
            taken["bare"].append(run_bare(url, MANY))
            taken["ours"].append(run_callmark(many, url))
            taken["client"].append(run_bare(url, MANY, CLIENT))
            taken["unscored"].append(run_callmark(many, url, program=unscored))
    seconds = {name: min(one.cpu_seconds for one in used) for name, used in taken.items()}
    # Beyond the start, for so many samples as are more than few.
    rest = (seconds["unscored"] - start) / (MANY - FEW) * MANY - seconds["client"]
    many_mb = max(used.peak_mb for used in taken["ours"])
    every = f"{MANY:,} served samples"
    return [
        (f"CPU: run {every} ÷ bare aiohttp", f"{seconds['ours'] / seconds['bare']:.2f}", "<= 1.8"),
        ("  the client ÷ bare aiohttp", f"{seconds['client'] / seconds['bare']:.2f}", ""),
        ("  neither scoring nor client ÷ bare aiohttp", f"{rest / seconds['bare']:.2f}", "<= 0.4"),
        ("  ms per sample: callmark run", _per_sample(seconds["ours"]), ""),
        ("  ms per sample: bare aiohttp", _per_sample(seconds["bare"]), ""),
        (f"MB at most: run {FEW:,} served samples", f"{few_mb:.0f}", ""),
        (f"MB at most: run {every}", f"{many_mb:.0f}", f"<= {few_mb + 10:.0f}"),
    ]


def _per_sample(seconds: float) -> str:
    return f"{seconds / MANY * 1000:.3f}"
