"""Evidence that does not stand plainly in a result: in JSON inside of text, in a prompt, in numbers
that a browser cannot hold."""

import json

import pytest

from callmark.cli import main

HUGE = 12345678901234567890
CALL = {"name": "web.search", "arguments": {"q": "x"}}
LINES = {
    "inside": {
        "model_output": f"There are {HUGE} of them.",
        "tool_trace": [
            {**CALL, "result": {"content": [{"type": "text", "text": f'{{"a/b": {HUGE}}}'}]}}
        ],
    },
    "prompt": {
        "prompt": [
            {"role": "user", "content": "How many?"},
            {"role": "tool", "content": '{"count": 321}'},
        ],
        "model_output": "It has 321 entries.",
        "tool_trace": [],
    },
    "many": {
        "model_output": "The last one is 987654.",
        "tool_trace": [{**CALL, "result": {"results": [*range(5000), 987654]}}],
    },
    "twice": {
        "model_output": "It costs 4711 crowns.",
        "tool_trace": [
            {**CALL, "result": {"ok": False, "error": "busy"}},
            {**CALL, "result": {"results": [{"price": 4711}]}},
        ],
    },
}


@pytest.fixture(scope="module")
def odd_page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("odd")
    metadata = {"call_sequence": [CALL]}
    lines = [
        {"sample_id": name, "prompt": "?", "metadata": metadata, **line}
        for name, line in LINES.items()
    ]
    answers = folder / "answers.jsonl"
    answers.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    main(["score", str(answers), "--out", str(folder / "results.jsonl"), "--quiet"])
    assert main(["report", str(folder), "--html", str(folder / "page.html")]) == 0
    return folder / "page.html"


@pytest.mark.parametrize(
    ("name", "path", "text"),
    [
        ("inside", "/content/0/text/a~1b", str(HUGE)),
        ("prompt", "/messages/1/count", "321"),
        ("many", "/results/5000", "987654"),
        ("twice", "/results/0/price", "4711"),
    ],
)
def test_the_exact_leaf_lights_up(browser, odd_page, name, path, text):
    browser.open(odd_page, f"s={name}&t=0")
    browser.wait("document.querySelector('mark.value')")
    browser.js("document.querySelector('mark.value').focus()")
    lit = browser.js(
        "return [...document.querySelectorAll('.lit')].map((one) => [one.dataset.path, one.textContent])"
    )
    assert lit == [[path, text]]
    assert browser.complaints() == []
