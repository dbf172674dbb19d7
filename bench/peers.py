"""What one served sample costs in other harnesses, in units of ours: the same questions, the same
server, the same number at once. They live in an environment of their own (`make bench-peers`)."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.http import AT_ONCE, run_toolmark, stub_server, used_by, write_files

PYTHON = os.environ.get("TOOLMARK_PEERS_PYTHON", "build/peers/bin/python")
OURS = (1_000, 6_000)
THEIRS = (50, 350)
INSPECT = """
import json, sys
from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import tool
url, folder, size, at_once = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])

@tool
def web_search():
    async def execute(q: str) -> str:
        '''Search the web.

        Args:
            q: What to search for.
        '''
        city = int(q.split()[1])
        result = {"ok": True, "count": 1000 + 7 * city, "summary": f"City {city} is large."}
        return json.dumps(result)
    return execute

def sample(number):
    city = number % 1000
    question = f"How many people live in city {city}?"
    return Sample(id=f"city-{number:07}", input=question, target=str(1000 + 7 * city))

task = Task(
    dataset=MemoryDataset([sample(number) for number in range(size)]),
    solver=[use_tools(web_search()), generate()],
    scorer=includes(),
)
model = get_model("openai/stub", base_url=url, api_key="key", responses_api=False)
[log] = eval(task, model=model, max_connections=at_once, max_samples=at_once, log_dir=folder,
             display="none")
assert log.status == "success", log.error
assert log.results.scores[0].metrics["accuracy"].value == 1.0, log.results
"""


def _per_sample(cpu_seconds_of: Callable[[int], float], sizes: tuple[int, int]) -> float:
    """Milliseconds; what it takes to start is left out on both sides."""
    few, many = sizes
    return (cpu_seconds_of(many) - cpu_seconds_of(few)) / (many - few) * 1000


def rows() -> list[tuple[str, str, str]]:
    with TemporaryDirectory() as name, stub_server() as url:
        folder = Path(name)

        def ours(size: int) -> float:
            write_files(folder, size)
            return run_toolmark(folder, url).cpu_seconds

        def inspect(size: int) -> float:
            words = [PYTHON, "-c", INSPECT, url, str(folder / "logs"), str(size), str(AT_ONCE)]
            return used_by(words).cpu_seconds

        if not Path(PYTHON).exists():
            sys.exit(f"{PYTHON} is not there: make bench-peers installs it")
        own, theirs = _per_sample(ours, OURS), _per_sample(inspect, THEIRS)
    return [
        ("CPU of a served sample: inspect-ai ÷ toolmark", f"{theirs / own:.0f}", ">= 30"),
        ("  ms per sample: inspect-ai", f"{theirs:.1f}", ""),
        ("  ms per sample: toolmark run", f"{own:.3f}", ""),
    ]
