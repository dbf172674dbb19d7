"""The docs read as a native speaker would write them: no foreign idiom, pictures of what the text
describes, examples that end well or say why not. `make lint` asks codespell and proselint as well."""

import ast
import re
from pathlib import Path

import pytest
from dev.prose import FOREIGN, GENERATED, PAGES, prose_of

from callmark.errors import CallmarkError

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "callmark"
README = (ROOT / "README.md").read_text("utf-8")
LONGEST = 25  # words


def test_code_is_no_prose_and_lines_stay_where_they_are():
    text = "One `mend`.\n```console\n$ mend\n```\n[mend](mend.md)\n"
    assert prose_of(text).splitlines() == ["One CODE.", "", "", "", "[mend]"]


@pytest.mark.parametrize("page", [one for one in PAGES if one.name not in GENERATED], ids=lambda page: page.name)  # fmt: skip
def test_f59_no_page_has_a_foreign_idiom(page):
    found = [one[0] for one in FOREIGN.finditer(prose_of(page.read_text("utf-8")))]
    assert found == []


def test_f59_the_picture_of_the_readme_is_of_the_run_that_it_describes():
    """It is made by a script, from the log whose findings stand below it."""
    pictures = re.findall(r"!\[[^]]*\]\((docs/images/[^)]+)\)", README)
    assert pictures == ["docs/images/caught-mistake.png"]
    assert (ROOT / pictures[0]).read_bytes().startswith(b"\x89PNG")
    script = (ROOT / "docs" / "screenshots.py").read_text("utf-8")
    assert "examples/support-log.jsonl" in script
    assert '"caught-mistake"' in script
    assert "callmark score examples/support-log.jsonl" in README
    first = README.split("\n## ")[0]
    assert len(first.splitlines()) <= 50


def test_f59_the_quickstart_ends_well_or_says_why_not():
    text = (ROOT / "docs" / "quickstart.md").read_text("utf-8")
    assert "PASS" in text
    assert not re.search(r"^INCONCLUSIVE", text, re.M)
    for told in re.findall(r"^FAIL .*$", text, re.M):
        assert told in ("FAIL  failed: answers built on results", "FAIL  failed: privacy")


ERRORS = {one.__name__ for one in CallmarkError.__subclasses__()} | {"CallmarkError"}


def messages():
    """What the code raises as our errors, with `…` where a value goes."""
    for path in SRC.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            call = node.exc if isinstance(node, ast.Raise) else None
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
                continue
            if call.func.id in ERRORS and call.args:
                yield path, node.lineno, text_of(call.args[0])


def text_of(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(map(text_of, values))
        case ast.BinOp(left=left, right=right):
            return text_of(left) + text_of(right)
    return "…"


def test_f59_no_sentence_of_an_error_is_long():
    found = list(messages())
    assert len(found) > 200
    long = [
        f"{path.relative_to(SRC)}:{line}: {sentence}"
        for path, line, text in found
        for sentence in re.split(r"(?<=[.!?;:])\s+", text)
        if len(sentence.split()) > LONGEST
    ]
    assert long == []
