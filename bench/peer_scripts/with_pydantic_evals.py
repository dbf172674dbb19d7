"""The two-turn loop in pydantic-evals, written with the openai client: URL FOLDER SIZE AT_ONCE."""

import asyncio
import json
import re
import sys

from openai import AsyncOpenAI
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import EqualsExpected

url, size, at_once = sys.argv[1], int(sys.argv[3]), int(sys.argv[4])
NUMBER = re.compile(r"\d+")
PARAMETERS = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
SEARCH = {"name": "web_search", "description": "Search the web.", "parameters": PARAMETERS}
TOOLS = [{"type": "function", "function": SEARCH}]


def web_search(q: str) -> str:
    city = int(q.split()[1])
    result = {"ok": True, "count": 1000 + 7 * city, "summary": f"City {city} is large."}
    return json.dumps(result)


def case(number: int) -> Case[str, str, None]:
    city = number % 1000
    return Case(
        name=f"city-{number:07}",
        inputs=f"How many people live in city {city}?",
        expected_output=str(1000 + 7 * city),
    )


async def main() -> None:
    client = AsyncOpenAI(base_url=url, api_key="key")

    async def answer(question: str) -> str:
        messages = [{"role": "user", "content": question}]
        while True:
            completion = await client.chat.completions.create(
                model="stub", messages=messages, tools=TOOLS, temperature=0, max_tokens=1024
            )
            message = completion.choices[0].message
            if not message.tool_calls:
                return NUMBER.findall(message.content)[0]
            messages.append(message)
            for call in message.tool_calls:
                result = web_search(**json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})

    dataset = Dataset(
        name="cities", cases=[case(number) for number in range(size)], evaluators=[EqualsExpected()]
    )
    report = await dataset.evaluate(answer, max_concurrency=at_once, progress=False)
    assert not report.failures
    assert report.averages().assertions == 1.0


asyncio.run(main())
