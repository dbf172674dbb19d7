"""Thousands of spoilt specs and outputs: each gives a result or a named error, no traceback."""

import json
import random
import re
import traceback

import pytest
from tests.fuzz.mutations import JSON_FILE, YAML_FILE, mutated
from tests.unit.probe.asking import GOOD, PROSE, SEARCH, call, case
from tests.unit.probe.test_spec_file import WHOLE

from callmark import tool_use_fidelity
from callmark.errors import BadInput, CallmarkError
from callmark.probe.fidelity import fidelity
from callmark.probe.records import exit_code
from callmark.probe.spec import FidelitySpec, read_spec

FEW = {"specs": 20, "arguments": 100}  # in the normal suite; 5,000 more in the slow one
MANY = 2_500
OUTPUTS = [
    GOOD,
    f"<tool_call>\n{GOOD}\n</tool_call>",
    f"```json\n{call(query='x', max_results=3)}\n```",
    f"[{GOOD}, {call('other', a={'b': [1, 2.0, None]})}]",
    PROSE,
    "",
]
ARGUMENTS = {
    "cases": [
        case(),
        case({"type": "function", "function": SEARCH}),
        case(
            {"name": "t", "parameters": {"properties": {"n": {"type": ["integer", "null"]}}}}, "t"
        ),
        case(
            gold=None, other_tools=[{"name": "t"}, {"type": "function", "function": {"name": "u"}}]
        ),
    ],
    "base_outputs": [GOOD, GOOD, call("t", n=1), PROSE],
    "tuned_outputs": [GOOD, PROSE, call("t", n=None), GOOD],
    "null_rates": [0.0, 0.5, 1.0],
    "null_stats": {"mean": 0.1, "std": 0.2, "n": 3, "degenerate": False},
    "null_stats_by_rank": {"1.0": {"mean": 0.1, "std": 0.2}},
    "spec": {"allowed_tools": ["t"], "schema": "minimal", "assert_z_gte": 2.5, "weight": 1},
    "seed": 3,
}


def outputs_for(rng: random.Random, n: int) -> list[str]:
    texts = (rng.choice(OUTPUTS).encode() for _ in range(n))
    return [mutated(rng, text, JSON_FILE).decode("utf-8", "surrogateescape") for text in texts]


def check_places(problems, path: str) -> None:
    """Every problem begins with the file and a line of it."""
    assert 1 <= len(problems) <= 20
    for problem in problems:
        assert re.match(r":\d+: \S", problem.removeprefix(path)), problem


def try_spec(rng: random.Random, folder) -> bool:
    """A spec file, and spoilt outputs for whatever could be read of it."""
    path = folder / "probe.yaml"
    path.write_bytes(mutated(rng, WHOLE.encode(), YAML_FILE))
    try:
        spec = read_spec(path)
    except BadInput as error:
        check_places(error.problems, str(path))
        return False
    for entry in spec.suite:
        if isinstance(entry, FidelitySpec):
            n = len(entry.cases)
            result = fidelity(entry, outputs_for(rng, n), outputs_for(rng, n))
            assert exit_code(result) in (0, 1, 5)
    return True


def try_arguments(rng: random.Random, folder) -> bool:
    """The library's own function, with a spoilt argument or spoilt outputs."""
    given = json.loads(json.dumps(ARGUMENTS))
    name = rng.choice([*ARGUMENTS, "outputs"])
    if name == "outputs":
        given["base_outputs"], given["tuned_outputs"] = outputs_for(rng, 3), outputs_for(rng, 3)
    else:
        data = mutated(rng, json.dumps(given[name]).encode(), JSON_FILE)
        try:
            given[name] = json.loads(data.decode("utf-8", "surrogatepass"))
        except (ValueError, RecursionError):
            given[name] = data.decode("utf-8", "replace")
    positional = [given.pop(key) for key in ("cases", "base_outputs", "tuned_outputs")]
    try:
        found = tool_use_fidelity(*positional, **given)
    except CallmarkError:
        return False
    assert found["verdict"] in ("pass", "fail", "skip")
    json.dumps(found, allow_nan=False).encode()
    return True


TARGETS = {"specs": try_spec, "arguments": try_arguments}


def try_many(name: str, numbers: range, folder) -> None:
    read, failures = 0, []
    for number in numbers:
        try:
            read += TARGETS[name](random.Random(f"{name} {number}"), folder)
        except Exception:
            failures.append(f"{name} {number}:\n{traceback.format_exc(limit=-6)}")
    assert not failures, f"{len(failures)} of {len(numbers)}\n\n" + "\n".join(failures[:10])
    assert 0 < read < len(numbers)


@pytest.mark.parametrize("name", TARGETS)
def test_a_spoilt_probe_is_read_or_refused_by_name(name, tmp_path):
    try_many(name, range(FEW[name]), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_five_thousand_spoilt_probes(name, tmp_path):
    try_many(name, range(FEW[name], FEW[name] + MANY), tmp_path)
