"""The docs read as a native speaker would write them: no foreign idiom, pictures of what the text
describes, examples that end well or say why not. `make lint` asks codespell and proselint as well."""

import ast
import re
from pathlib import Path

import pytest
from dev.prose import FOREIGN, GENERATED, PAGES, prose_of
from tests.sources import tree_of

from callmark.errors import CallmarkError
from callmark.records.report import REPORT_VERSION

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
        assert told in (
            "FAIL  failed: answers built on results",
            "FAIL  failed: privacy",
            "FAIL  failed: items whose calls can be made",
        )


def test_f59_the_docs_name_the_version_that_a_report_has():
    text = (ROOT / "docs" / "reports.md").read_text("utf-8")
    assert f"| `report_version` | {REPORT_VERSION}; " in text


def names_below(error: type[Exception]) -> set[str]:
    """It and every kind of it."""
    return {error.__name__}.union(*(names_below(one) for one in error.__subclasses__()))


ERRORS = names_below(CallmarkError)


def messages():
    """What the code makes our errors of, raised there or handed on, with `…` for each value."""
    for path in SRC.rglob("*.py"):
        for node in ast.walk(tree_of(path)):
            match node:
                case ast.Call(func=ast.Name(id=name), args=[text, *_]) if name in ERRORS:
                    yield path, node.lineno, text_of(text)


def text_of(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(map(text_of, values))
        case ast.BinOp(left=left, right=right):
            return text_of(left) + text_of(right)
    return "…"


def too_long(text: str) -> list[str]:
    """A sentence ends with a full stop: what follows a colon or a semicolon belongs to it."""
    sentences = re.split(r"(?<=[.!?])\s+", text)
    return [one for one in sentences if len(one.split()) > LONGEST]


def test_f59_no_sentence_of_an_error_is_long():
    found = list(messages())
    assert len(found) > 500
    long = [
        f"{path.relative_to(SRC)}:{line}: {sentence}"
        for path, line, text in found
        for sentence in too_long(text)
    ]
    assert long == []


def test_a_long_sentence_is_found_however_it_is_joined():
    clause = "nothing can be said of it, and of nothing else either"
    assert too_long(f"{clause}: {clause}; {clause}") != []
    assert too_long(f"{clause}: {clause}. {clause}.") == []
