"""What the tests of served models share: short waits, one sample, answers in order."""

import pytest
from tests.endpoints import Answer, Request, Server
from tests.integration.conftest import Project

from callmark.runners.http import runner as openai_http
from callmark.runners.http.trouble import RetryPolicy

KEY = "sk-marker-0123456789abcdef"


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    """Imported by name: then it holds for every test of that file."""
    policy = RetryPolicy(first_wait=0.001, longest_wait=0.01, longest_asked=0.05)
    monkeypatch.setattr(openai_http, "POLICY", policy)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)


def served(server: Server, **settings) -> dict:
    return {"runner": "openai_http", "model": "stub", "base_url": server.url, **settings}


def one_sample(tmp_path, **metadata) -> Project:
    project = Project(tmp_path, size=1)
    call = {"name": "web.search", "arguments": {"q": "city 0"}}
    sample = {"sample_id": "s", "call_sequence": [call], **metadata}
    project.write([{"prompt": "How many people live in city 0?", "metadata": sample}])
    return project


class Script:
    """Answers in this order; the last one is repeated."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)

    def __call__(self, request: Request) -> Answer:
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
