"""`python -m dev.prose`: spelling and style of the README and the docs, by codespell and proselint.

Code is no prose: blocks, spans and addresses are blanked out first, line by line, so that a finding
has its line."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")))
# Lists that a program writes, or that quote what people and models wrote.
GENERATED = frozenset({"promises.md", "agreement.md", "campaign.md", "proof.md"})

_BLOCK = re.compile(r"^(```+)[^\n]*\n.*?^\1$", re.M | re.S)
_SPAN = re.compile(r"`[^`]+`", re.S)
_ADDRESS = re.compile(r"\]\([^)]*\)|https?://\S+")
_QUOTED = re.compile(r"“[^”]*”")
# proselint asks for typography that a terminal cannot show, and sees two spans of code as a repeat.
_FINDING = re.compile(r"\S+\.md:\d+:\d+: (?!typography|lexical_illusions)")
# What people whose language has other idioms write in this one.
FOREIGN = re.compile(
    r"\b(rightly|mend(?:s|ed|ing)?|stands? (?:behind|beside it)|whoever|of whom|the like of it"
    r"|is said, too|what was merely|as good as|in the place of)\b",
    re.I,
)


def prose_of(text: str) -> str:
    """The text with its code blanked out; every line stays where it is."""
    for pattern, instead in ((_BLOCK, ""), (_SPAN, "CODE"), (_ADDRESS, "]"), (_QUOTED, "")):
        text = pattern.sub(lambda found, say=instead: say + "\n" * found[0].count("\n"), text)  # type: ignore[misc]
    return text


def findings() -> list[str]:
    pages = [page for page in PAGES if page.name not in GENERATED]
    with tempfile.TemporaryDirectory() as folder:
        for page in pages:
            Path(folder, page.name).write_text(prose_of(page.read_text("utf-8")), "utf-8")
        return [*_foreign(pages), *_spelling(folder), *_style(folder)]


def _foreign(pages: list[Path]) -> Iterator[str]:
    for page in pages:
        for number, line in enumerate(prose_of(page.read_text("utf-8")).splitlines(), start=1):
            for found in FOREIGN.finditer(line):
                yield f"{page.name}:{number}: “{found[0]}”: say it as a native speaker would"


def _spelling(folder: str) -> list[str]:
    words = [sys.executable, "-m", "codespell_lib", "--builtin", "clear,rare", folder]
    return _run(words, folder)


def _style(folder: str) -> list[str]:
    pages = sorted(map(str, Path(folder).glob("*.md")))
    found = _run([sys.executable, "-m", "proselint", "check", *pages], folder)
    return [line for line in found if _FINDING.match(line)]


def _run(words: list[str], folder: str) -> list[str]:
    finished = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    if finished.stderr.strip():
        return [finished.stderr.strip()]
    return [line.replace(f"{folder}/", "") for line in finished.stdout.splitlines() if line.strip()]


if __name__ == "__main__":
    found = findings()
    print("\n".join(found) or f"{len(PAGES) - len(GENERATED)} pages: nothing found")
    sys.exit(1 if found else 0)
