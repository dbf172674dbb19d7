"""The two-turn loop in inspect-ai: URL FOLDER SIZE AT_ONCE."""

import json
import sys

from inspect_ai import Task
from inspect_ai import eval as evaluate
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import Tool, ToolFunction, tool

url, folder, size, at_once = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])


@tool
def web_search() -> Tool | ToolFunction:
    async def execute(q: str) -> str:
        """Search the web.

        Args:
            q: What to search for.
        """
        city = int(q.split()[1])
        result = {"ok": True, "count": 1000 + 7 * city, "summary": f"City {city} is large."}
        return json.dumps(result)

    return execute


def sample(number: int) -> Sample:
    city = number % 1000
    question = f"How many people live in city {city}?"
    return Sample(id=f"city-{number:07}", input=question, target=str(1000 + 7 * city))


task = Task(
    dataset=MemoryDataset([sample(number) for number in range(size)]),
    solver=[use_tools(web_search()), generate()],
    scorer=includes(),
)
model = get_model("openai/stub", base_url=url, api_key="key", responses_api=False)
[log] = evaluate(
    task,
    model=model,
    max_connections=at_once,
    max_samples=at_once,
    log_dir=folder,
    display="none",
)
assert log.status == "success", log.error
assert log.results.scores[0].metrics["accuracy"].value == 1.0, log.results
