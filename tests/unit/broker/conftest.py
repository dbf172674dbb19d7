import itertools
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from callmark.broker.broker import ToolBroker

ROPE = {
    "name": "web.search",
    "key": {"q": "rope precision", "top_k": 3},
    "result": {"ok": True, "hits": [{"title": "Rope", "snippet": "Keep it in fp32.", "url": "u"}]},
}


def fixture_line(entry) -> str:
    return entry if isinstance(entry, str) else json.dumps(entry, ensure_ascii=False)


def write_fixtures(folder: Path, files: dict) -> Path:
    """{relative path: list of entries, or the text itself} as files below a folder."""
    for name, entries in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = entries if isinstance(entries, str) else "\n".join(map(fixture_line, entries))
        path.write_text(lines, encoding="utf-8")
    return folder


@pytest.fixture
def broker_of(tmp_path) -> Callable[..., ToolBroker]:
    """A broker on these entries, all in one file (or on files, given as a dict), each time in a
    folder of its own."""
    folders = (tmp_path / str(number) / "fixtures" for number in itertools.count())

    def make(*entries, registry=None) -> ToolBroker:
        only_files = (
            len(entries) == 1 and isinstance(entries[0], dict) and "result" not in entries[0]
        )
        files = entries[0] if only_files else {"all.jsonl": list(entries)}
        return ToolBroker(write_fixtures(next(folders), files), registry)

    return make


@pytest.fixture
def rope() -> dict:
    return json.loads(json.dumps(ROPE))
