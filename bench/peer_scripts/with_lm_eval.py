"""Two requests for each sample in lm-eval: URL FOLDER SIZE AT_ONCE. It has no tool loop, so both
are written beforehand: the question, and the question with the call and its result."""

import json
import logging
import os
import sys

os.environ["TQDM_DISABLE"] = "1"

from datasets import Dataset
from lm_eval import simple_evaluate
from lm_eval.api.instance import Instance
from lm_eval.api.task import ConfigurableTask
from lm_eval.models.api_models import JsonChatStr

url, size, at_once = sys.argv[1], int(sys.argv[3]), int(sys.argv[4])
PARAMETERS = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
SEARCH = {"name": "web_search", "description": "Search the web.", "parameters": PARAMETERS}
ASKED = {
    "tools": [{"type": "function", "function": SEARCH}],
    "temperature": 0,
    "max_tokens": 1024,
    "until": [],
}


def rows(**_: object) -> dict[str, Dataset]:
    return {"test": Dataset.from_list([{"city": number % 1000} for number in range(size)])}


def conversations(city: int) -> list[list[dict[str, object]]]:
    function = {"name": "web_search", "arguments": json.dumps({"q": f"city {city}"})}
    call = {"id": "call_a", "type": "function", "function": function}
    result = {"ok": True, "count": 1000 + 7 * city, "summary": f"City {city} is large."}
    question = {"role": "user", "content": f"How many people live in city {city}?"}
    called = {"role": "assistant", "content": None, "tool_calls": [call]}
    told = {"role": "tool", "tool_call_id": "call_a", "content": json.dumps(result)}
    return [[question], [question, called, told]]


class Cities(ConfigurableTask):
    def __init__(self) -> None:
        metric = {"metric": "acc", "aggregation": "mean", "higher_is_better": True}
        super().__init__(
            config={
                "task": "cities",
                "custom_dataset": rows,
                "test_split": "test",
                "output_type": "generate_until",
                "doc_to_text": "",
                "doc_to_target": "",
                "metric_list": [metric],
            }
        )

    def construct_requests(self, doc, ctx, **kwargs):  # noqa: ANN001, ANN003, ANN201
        kwargs.pop("apply_chat_template", None)
        kwargs.pop("chat_template", None)
        return [
            Instance(
                request_type="generate_until",
                doc=doc,
                arguments=(JsonChatStr(json.dumps(messages)), ASKED),
                idx=position,
                **kwargs,
            )
            for position, messages in enumerate(conversations(doc["city"]))
        ]

    def process_results(self, doc, results):  # noqa: ANN001, ANN201
        return {"acc": float(str(1000 + 7 * doc["city"]) in results[1])}


logging.disable(logging.WARNING)  # one for each turn without text
found = simple_evaluate(
    model="local-chat-completions",
    model_args={
        "model": "stub",
        "base_url": f"{url}/chat/completions",
        "num_concurrent": at_once,
        "tokenizer_backend": None,
        "tokenized_requests": False,
    },
    tasks=[Cities()],
    apply_chat_template=True,
    bootstrap_iters=0,
    log_samples=False,
)
assert found["results"]["cities"]["acc,none"] == 1.0, found["results"]
