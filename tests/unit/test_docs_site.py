"""The documentation as a site: no page is left out of it, and no link of a page leads nowhere."""

import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
READ_ELSEWHERE = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "eval" / "HARNESS.md"]
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.M | re.S)
FENCED = re.compile(r"^(`{3,}).*?^\1$", re.M | re.S)
LINK = re.compile(r"\]\((?!https?:)([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} (.+)$", re.M)


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
