"""One word, one meaning: docs/glossary.md has the word of every module that defines a public class."""

import ast
import re
from collections import Counter
from pathlib import Path

from tests.sources import tree_of

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "callmark"
ENTRY = re.compile(r"^- \*\*(?P<word>[^*]+)\*\* (?:\(`(?P<module>[a-z_0-9.]+)`\) )?(?P<says>\S.*)$")
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text("utf-8")
LINES = [line for line in GLOSSARY.splitlines() if line.startswith("- ")]
ENTRIES = [found for line in LINES if (found := ENTRY.match(line))]


def classes_by_module() -> dict[str, list[str]]:
    found = {}
    for path in SRC.rglob("*.py"):
        names = [node.name for node in tree_of(path).body if isinstance(node, ast.ClassDef)]
        module = ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__")
        if public := [name for name in names if not name.startswith("_")]:
            found[module] = public
    return found


def test_every_line_is_an_entry_of_one_or_two_sentences():
    assert len(ENTRIES) == len(LINES)
    for entry in ENTRIES:
        assert entry["says"].endswith("."), entry["word"]
        assert len(re.findall(r"[.](?= |$)", entry["says"])) <= 2, entry["word"]


def test_no_word_stands_there_twice():
    words = Counter(word for entry in ENTRIES for word in entry["word"].lower().split(", "))
    assert [one for one, count in words.items() if count > 1] == []


def test_every_public_class_belongs_to_a_word_and_every_word_to_a_module():
    classes = classes_by_module()
    listed = {entry["module"] for entry in ENTRIES if entry["module"]}
    assert {name: classes[name] for name in classes.keys() - listed} == {}, "give it an entry"
    assert listed - classes.keys() == set(), "these are gone, or define no public class"


def test_files_are_called_after_what_they_hold():
    """Names that say nothing. The inside of grounding is written anew soon."""
    empty = {"opening", "located", "forms", "finished", "belonging", "listing", "texts", "said", "given", "places"}  # fmt: skip
    found = [path for path in SRC.rglob("*.py") if path.stem in empty]
    assert [path for path in found if path.parent.name != "grounding"] == []
