"""The shape of the house: no name for two things, few fragments, and a map that is true."""

import ast
import re
from collections import defaultdict
from pathlib import Path

from tests.sources import tree_of

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "callmark"
MOST_LINES = 700
FRAGMENT_LINES = 150
MOST_FRAGMENTS = 4
MAP = ROOT / "docs" / "architecture.md"

FILES = {
    ".".join(path.relative_to(SRC.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(SRC.rglob("*.py"))
    if path.relative_to(SRC).parts[0] != "data"
}

# Modules that only list what stands beside them, one row a file.
TABLES = {
    "callmark.calls.formats",
    "callmark.datasets.importing.importing",
    "callmark.datasets.importing.span_logs",
}


def importers() -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for name, path in FILES.items():
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                continue
            for imported in names:
                if imported in FILES and imported != name:
                    found[imported].add(name)
    return found


def lines_of(name: str) -> int:
    return len(FILES[name].read_text("utf-8").splitlines())


def test_no_public_class_name_stands_for_two_things():
    homes: dict[str, list[str]] = defaultdict(list)
    for name, path in FILES.items():
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(name)
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}


def test_a_module_with_one_importer_beside_it_is_part_of_that_importer():
    """But for the rows of a table, such as a call format, and a few concepts of their own."""
    fragments = [
        f"{name}: only {only} imports it"
        for name, wanted_by in sorted(importers().items())
        if len(wanted_by) == 1 and FILES[name].name != "__init__.py"
        for only in wanted_by - TABLES
        if FILES[only].parent == FILES[name].parent and lines_of(name) < FRAGMENT_LINES
    ]
    assert len(fragments) <= MOST_FRAGMENTS, fragments


def test_no_file_is_too_long_to_read():
    assert [f"{name}: {n}" for name in FILES if (n := lines_of(name)) > MOST_LINES] == []


def test_the_map_names_files_that_exist_and_every_folder():
    text = MAP.read_text("utf-8")
    named = set(re.findall(r"(?<![\w/.])[a-z0-9_/]+\.py\b", text)) | set(
        re.findall(r"`([a-z0-9_/]+/(?:[\w.]+\.(?:json|yaml|js))?)`", text)
    )
    missing = [one for one in named if not (SRC / one).exists() and not (ROOT / one).exists()]
    assert missing == []
    folders = {path.parent.name for path in SRC.glob("*/__init__.py")}
    assert {name for name in folders if f"`{name}/`" not in text} == set()


def test_what_a_row_of_the_map_says_to_edit_stands_in_the_file_that_it_names():
    """`GATES` of `summary/gates.py`: whoever follows the row finds it there."""
    names = r"((?:`[A-Za-z_]+`(?: \([^)]*\))?(?:, | and )?)+)"
    told = re.findall(rf"{names} (?:of|in) (?:both )?`([a-z0-9_/]+\.py)`", MAP.read_text("utf-8"))
    assert len(told) > 30
    missing = [
        f"{name} in {file}"
        for words, file in told
        for name in re.findall(r"`([A-Za-z_]+)`", words)
        if not re.search(rf"\b{name}\b", (SRC / file).read_text("utf-8"))
    ]
    assert missing == []


def test_every_row_of_the_map_of_changes_begins_with_a_place():
    rows = MAP.read_text("utf-8").partition("## Where a change goes")[2].partition("\n## ")[0]
    places = [line.split("|")[2] for line in rows.splitlines() if line.startswith("| ")][1:]
    assert len(places) > 30
    assert [one for one in places if not re.search(r"`[a-z0-9_/]+(?:\.py|/)`|\]\(", one)] == []
