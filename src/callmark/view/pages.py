"""The pages that the viewer serves: the same scripts as in the file, with another source."""

from __future__ import annotations

from pathlib import Path

import msgspec

from callmark.reports.html_file import page_script, page_style, policy_of, shell

# In a file the name of the program is text; here it leads back to the list.
_BRAND = b'<span class="brand">callmark</span>'
_HOME = b'<a class="brand" href="../">callmark</a>'
_TOP_BYTES = 1 << 17  # the bar stands in them, after style and title
PLAIN = "default-src 'none'; base-uri 'none'; form-action 'none'"


class Page(msgspec.Struct, frozen=True):
    """HTML with the policy that it needs. `rest`: a file that follows, from this byte on."""

    policy: str
    data: bytes
    rest: Path | None = None
    rest_from: int = 0


def list_page(folder: str) -> Page:
    return _served(folder, "view-list.js", "list.html")


def run_page(name: str) -> Page:
    return _served(name, "view-run.js")


def live_page(name: str) -> Page:
    return _served(name, "view-live.js")


def _served(title: str, start: str, template: str = "page.html") -> Page:
    style, script = page_style("view.css"), page_script("served.js", start)
    parts = shell(title=title, style=style, script=script, connects=True, template=template)
    policy = policy_of(style, script, connects=True)
    return Page(policy, "".join(parts).encode().replace(_BRAND, _HOME, 1))


def written_page(path: Path) -> Page:
    """A page that is a file, with a way back."""
    with path.open("rb") as stream:
        top = stream.read(_TOP_BYTES)
    policy = policy_of(page_style(), page_script())
    return Page(policy, top.replace(_BRAND, _HOME, 1), path, len(top))
