"""The documentation as a site: `make docs` builds it into build/docs, and a warning is an error."""

import re
from pathlib import Path

VERSION = Path(__file__).parents[1] / "src" / "callmark" / "_version.py"

project = "callmark"
copyright = "the authors of callmark, Apache-2.0"  # noqa: A001  the name that Sphinx reads
release = re.search(r'"(.+)"', VERSION.read_text("utf-8")).group(1)
extensions = ["myst_parser"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "callmark"
html_copy_source = False
