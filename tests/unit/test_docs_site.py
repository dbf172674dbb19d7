"""The documentation as a site: no page is left out of it, and no link of a page leads nowhere."""

import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

import callmark
from callmark.cli import MODULES
from callmark.cli.completion import words_by_command

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
READ_ELSEWHERE = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "eval" / "HARNESS.md"]
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.M | re.S)
FENCED = re.compile(r"^(`{3,}).*?^\1$", re.M | re.S)
LINK = re.compile(r"\]\((?!https?:)([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} (.+)$", re.M)
CODE = re.compile(r"`([^`\n]+(?:\n[^`\n]+)?)`")
BLOCK = re.compile(r"^```(?:console|sh|text|yaml)?(?: \S+)?\n(.*?)^```$", re.M | re.S)
CALL = re.compile(r"(?:^|[ '(])callmark ((?!import )[a-z-]+.*)")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
# Options of other programs that the docs speak of.
OTHERS = {"--collect-only"} | {
    "--enable-auto-tool-choice", "--tool-call-parser", "--reasoning-parser", "--parallel",
    "--chat-template", "--chat-template-file", "--enable-deterministic-inference",
}  # of servers  # fmt: skip


def prose_of(page: Path) -> str:
    return FENCED.sub("", page.read_text("utf-8"))


def anchors_of(page: Path) -> set[str]:
    """As GitHub and the site make them of headings."""
    texts = (re.sub(r"[^\w\- ]", "", text.lower()) for text in HEADING.findall(prose_of(page)))
    return {text.strip().replace(" ", "-") for text in texts}


def test_every_page_stands_in_the_contents_once():
    index = (DOCS / "index.md").read_text("utf-8")
    lines = [line for tree in TOCTREE.findall(index) for line in tree.split()]
    listed = [line for line in lines if (DOCS / f"{line}.md").exists()]
    assert sorted(listed) == [page.stem for page in PAGES if page.stem != "index"]


@pytest.mark.parametrize("page", [*PAGES, *READ_ELSEWHERE], ids=lambda page: page.name)
def test_links_lead_to_files_and_their_headings(page: Path):
    for link in LINK.findall(prose_of(page)):
        path, _, anchor = unquote(link).partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors_of(target), link


@pytest.mark.parametrize("page", [*PAGES, *READ_ELSEWHERE], ids=lambda page: page.name)
def test_a_page_has_one_title(page: Path):
    assert len(re.findall(r"^# ", prose_of(page), re.M)) == 1


def calls_in(page: Path) -> list[str]:
    """The command lines of `callmark` in code spans and blocks, without the word itself."""
    text = page.read_text("utf-8")
    blocks = [block.replace("\\\n", " ") for block in BLOCK.findall(text)]
    lines = [line for block in blocks for line in block.splitlines()]
    lines += [span.replace("\n", " ") for span in CODE.findall(FENCED.sub("", text))]
    return [found.group(1) for line in lines if (found := CALL.search(line.split(" && ")[-1]))]


def command_of(call: str) -> str | None:
    one, two = call.split()[0], " ".join(call.split()[:2])
    return next((name for name in (two, one) if name in MODULES), None)


@pytest.mark.parametrize("page", [*PAGES, *READ_ELSEWHERE], ids=lambda page: page.name)
def test_commands_and_their_options_exist(page: Path):
    """Those that no test runs (a served model, a cluster) too."""
    options = words_by_command()
    for call in calls_in(page):
        command = command_of(call)
        assert command or call == "--help", call
        assert set(OPTION.findall(call)) <= set(options.get(command, ["--help"])), call


@pytest.mark.parametrize("page", [*PAGES, *READ_ELSEWHERE], ids=lambda page: page.name)
def test_options_that_are_spoken_of_exist(page: Path):
    known = {word for words in words_by_command().values() for word in words} | OTHERS
    spans = CODE.findall(prose_of(page))
    assert {option for span in spans for option in OPTION.findall(span)} <= known


def test_every_command_is_explained_somewhere():
    calls = [call for page in [*PAGES, *READ_ELSEWHERE] for call in calls_in(page)]
    assert set(MODULES) <= {command_of(call) for call in calls}


def test_every_public_name_is_explained():
    text = (DOCS / "python.md").read_text("utf-8")
    cells = re.findall(r"^\| (`.*?) \|", text, re.M)
    rows = {name for cell in cells for name in re.findall(r"`(\w+)[(`]", cell)}
    assert rows == set(callmark.__all__) - {"__version__"}


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path: Path):
    options = ["--quiet", "--fail-on-warning", "--keep-going", "--nitpicky"]
    finished = subprocess.run(
        [
            sys.executable,
            "-m",
            "sphinx",
            *options,
            "-d",
            tmp_path / "trees",
            DOCS,
            tmp_path / "site",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    built = {path.stem for path in (tmp_path / "site").glob("*.html")}
    assert {page.stem for page in PAGES} <= built
    # A reader without a network sees all of it.
    for path in (tmp_path / "site").glob("*.html"):
        loaded = re.findall(
            r'<(?:script|link|img)[^>]+(?:src|href)="(https?:[^"]+)"', path.read_text("utf-8")
        )
        assert not loaded, path.name
