"""A judge, if you want one: another model says whether an answer helps. Advisory, never a proof.

`judge.yaml` says who is asked, with the keys of a callmark.yaml: runner, model, base_url, cache."""

import json
import re
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import yaml

import callmark
from callmark.records.samples import Sample
from callmark.records.trace import Trace

ASK = """Question: {prompt}\nTool results: {results}\nAnswer: {answer}\n
Does the answer help, and say nothing that the results do not? Reply with yes or no."""
ADVISORY = {"model_says_yes": {">=": 0.8, "policy": "warning_only"}}  # it warns, and never fails


@callmark.scorer(measures={"model_says_yes": "higher"}, gates=ADVISORY, version="1")
def judge(sample: Sample, trace: Trace) -> bool | None:
    if sample.metadata.get("x_judged"):
        return None  # this is the judge's own answer
    results = json.dumps([entry.result for entry in trace.tool_trace])
    asked = ASK.format(prompt=sample.prompt, results=results, answer=trace.model_output)
    metadata = {"sample_id": sample.sample_id, "tools": [], "x_judged": True}
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as aside:
        dataset, out = Path(folder, "asked.jsonl"), Path(folder, "said.jsonl")
        dataset.write_text(json.dumps({"prompt": asked, "metadata": metadata}) + "\n")
        settings = {**yaml.safe_load(Path("judge.yaml").read_text()), "html": False}
        aside.submit(callmark.run, {**settings, "dataset": str(dataset), "out": str(out)}).result()
        said = json.loads(out.read_text())["model_output"]
    verdict = re.search(r"\b(yes|no)\b", said.lower())
    return None if verdict is None else verdict[1] == "yes"  # None: it did not say
