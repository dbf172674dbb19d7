"""One word, one meaning: docs/glossary.md has the word of every file."""

import ast
import re
from collections import Counter
from pathlib import Path

from tests.sources import tree_of

from callmark.datasets.importing import CHOICES

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


def test_every_file_is_called_by_a_word_and_every_word_belongs_to_a_file():
    """But for commands and formats of logs, which the command line names, and what Python wants."""
    modules = {
        ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__")
        for path in SRC.rglob("*.py")
        if path.relative_to(SRC).parts[0] != "data" and not path.stem.startswith("_")
    }
    listed = {entry["module"] for entry in ENTRIES if entry["module"]}
    nameless = {name for name in modules - listed if not is_named_on_the_command_line(name)}
    assert nameless | (classes_by_module().keys() - listed) == set(), "give it an entry"
    assert listed - modules == set(), "these are gone"


def is_named_on_the_command_line(module: str) -> bool:
    folder, _, name = module.rpartition(".")
    is_format = name.replace("_", "-").startswith(CHOICES)
    return folder == "cli" or (folder == "datasets.importing" and is_format)


def test_files_are_called_after_what_they_hold():
    """Names that say nothing. The inside of grounding is written anew soon."""
    empty = {"opening", "located", "forms", "finished", "belonging", "listing", "texts", "said", "given", "places"}  # fmt: skip
    found = [path for path in SRC.rglob("*.py") if path.stem in empty]
    assert [path for path in found if path.parent.name != "grounding"] == []
