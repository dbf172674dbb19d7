"""Calls as models write them: right ones in many spellings, and typical wrong ones. What callmark
says of them is what BFCL's rules say."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.real.bfcl_rules import accepts
from tests.real.test_imports import (
    arguments_of,
    imported,
    lines_of,
    read_results,
    score_file,
    write_lines,
)

pytestmark = pytest.mark.real


def leaves(change: Callable) -> Callable:
    def alter(value):
        if isinstance(value, dict):
            return {key: alter(one) for key, one in value.items()}
        return [alter(one) for one in value] if isinstance(value, list) else change(value)

    return lambda calls: [(name, alter(arguments)) for name, arguments in calls]


def texts(change: Callable) -> Callable:
    return leaves(lambda value: change(value) if isinstance(value, str) else value)


def numbers(change: Callable) -> Callable:
    is_number = (int, float)
    return leaves(lambda value: change(value) if type(value) in is_number else value)


def without_first(calls):
    (name, arguments), *others = calls
    return [(name, dict(list(arguments.items())[1:])), *others]


WAYS: dict[str, Callable] = {
    "as accepted": lambda calls: calls,
    "in capitals": texts(str.upper),
    "as titles": texts(str.title),
    "with dashes": texts(lambda text: text.replace(" ", "-")),
    "with underscores": texts(lambda text: text.replace(" ", "_")),
    "dates with slashes": texts(lambda text: text.replace("-", "/")),
    "dates with points": texts(lambda text: text.replace("-", ".").replace("/", ".")),
    "without blanks": texts(lambda text: text.replace(" ", "")),
    "with a full stop": texts(lambda text: text + "."),
    "other quotes": texts(lambda text: text.replace("'", '"')),
    "the order of calls": lambda calls: calls[::-1],
    "one word more": texts(lambda text: text + " please"),
    "the first word": texts(lambda text: text.split()[0] if text.split() else text),
    "another number": numbers(lambda number: number + 1),
    "the sign": numbers(lambda number: -number),
    "numbers as texts": numbers(str),
    "an argument missing": without_first,
    "an argument more": lambda calls: [(n, {**a, "verbose": True}) for n, a in calls],
    "a call missing": lambda calls: calls[1:],
    "a call twice": lambda calls: [*calls, calls[0]],
    "another tool": lambda calls: [(f"not_{name}", a) for name, a in calls],
}


@pytest.fixture(scope="module")
def bfcl(real_data: Path, tmp_path_factory: pytest.TempPathFactory):
    source = real_data / "bfcl.jsonl"
    places, _ = imported(source, tmp_path_factory.mktemp("bfcl"))
    return places, [row for row in lines_of(source) if row["ground_truth"]]


def as_trace(calls):
    trace = [{"name": name, "arguments": arguments, "turn": 1} for name, arguments in calls]
    return {"model_output": "", "tool_trace": trace, "turns": [{"start": 0, "end": 0}]}


def as_python(calls):
    written = (
        f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"
        for name, arguments in calls
    )
    return {"model_output": f"[{', '.join(written)}]"}


def as_tags(calls):
    written = (
        json.dumps({"name": name.replace(".", "_"), "arguments": arguments})
        for name, arguments in calls
    )
    return {"model_output": "\n".join(f"<tool_call>\n{one}\n</tool_call>" for one in written)}


def disagreeing(places, answers, verdicts, folder):
    """(stricter, more lenient): the samples of which callmark says something else."""
    out = folder / "out.jsonl"
    named = {"in": str(places.dataset), "registry": str(places.registry), "out": str(out)}
    score_file(write_lines(folder / "answers.jsonl", answers), named)
    said = {result.sample_id: result.scores.call_f1 == 1 for result in read_results(out)}
    stricter = {one for one, right in verdicts.items() if right and not said[one]}
    return stricter, {one for one, right in verdicts.items() if said[one] and not right}


@pytest.mark.parametrize("turn", [0, 7])
@pytest.mark.parametrize(("write", "bound"), [(as_trace, 0.95), (as_python, 0.92), (as_tags, 0.92)])
def test_f82_callmark_and_bfcl_say_the_same_of_calls(bfcl, tmp_path, write, bound, turn):
    """Every row in one of the ways; in another one with another `turn`."""
    places, rows = bfcl
    ways, chosen, verdicts, answers = list(WAYS), {}, {}, []
    for number, row in enumerate(rows):
        way = chosen[row["id"]] = ways[(number + turn) % len(ways)]
        calls = WAYS[way](
            [
                (name, arguments_of(accepted, "given"))
                for one in row["ground_truth"]
                for name, accepted in one.items()
            ]
        )
        verdicts[row["id"]] = accepts(row, calls)
        answers.append({"sample_id": row["id"], **write(calls)})
    stricter, lenient = disagreeing(places, answers, verdicts, tmp_path)
    assert len(verdicts) == 1000
    assert 200 < sum(verdicts.values()) < 800
    told = sorted((chosen[one], one) for one in stricter | lenient)
    assert 1 - len(told) / len(verdicts) >= bound + 0.03, told
    assert len(stricter) <= 5, told
