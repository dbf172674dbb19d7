"""A server that fails in every way it can. Every trial ends scored once or marked as an error, none
is scored on a failure, and `--resume` makes the file that a good server would have made."""

import random
from collections import Counter
from email.utils import formatdate

import pytest
from tests.endpoints import Answer, Request, Server, city_model, completion, error
from tests.integration.conftest import Project, journalled

from callmark.runners.http import runner as openai_http
from callmark.runners.http.trouble import RetryPolicy

# An answer that would be scored if a failure were taken for one.
WRONG = completion("Nobody lives there.").body
TRUNCATED = Answer(body=WRONG).data()

FAULTS: tuple[Answer, ...] = (
    error(429),
    error(429, headers={"Retry-After": "0"}),
    error(429, headers={"Retry-After": formatdate(0, usegmt=True)}),
    error(500, "Nobody lives there."),
    error(503, headers={"Retry-After": "soon"}),
    Answer(502, b"<html>Nobody lives there.</html>"),
    Answer(body=WRONG, keep=20),
    Answer(body=WRONG, keep=len(TRUNCATED) - 9),
    Answer(raw=b"Nobody lives there.\r\n\r\n"),
    Answer(body=b"Nobody lives there."),
    Answer(body=b'{"choices": [{"message": {"content": "Nobody liv'),
    Answer(body={**WRONG, "choices": []}),
    Answer(body={**WRONG, "choices": {"0": WRONG["choices"][0]}}),
    Answer(body={**WRONG, "choices": [{"message": "Nobody lives there."}]}),
    Answer(body={**WRONG, "choices": [{"message": {"content": 3}}]}),
    Answer(body={**WRONG, "error": {"message": "overloaded", "code": 503}}),
    Answer(body=WRONG, before=30.0),
    Answer(body=WRONG, between=0.05),
)


class Faulty:
    """Fails with this share of its requests; which ones and how is drawn from a seed."""

    def __init__(self, share: float) -> None:
        self._random = random.Random(7)
        self._share = share
        self.faults: Counter[int] = Counter()

    def __call__(self, request: Request) -> Answer:
        if self._random.random() >= self._share:
            return city_model(request)
        fault = self._random.randrange(len(FAULTS))
        self.faults[fault] += 1
        return FAULTS[fault]


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    policy = RetryPolicy(first_wait=0.001, longest_wait=0.02, longest_asked=0.02)
    monkeypatch.setattr(openai_http, "POLICY", policy)


def run_through_faults(folder, samples: int, share: float, at_least: int) -> None:
    project = Project(folder, size=samples)
    settings = {
        "runner": "openai_http",
        "model": "stub",
        "max_retries": 2,
        "max_connections": 64,
    }
    faulty = Faulty(share)
    with Server(faulty) as server:
        outcome = project.run(**settings, base_url=server.url, request_timeout=1.5)
        assert len(server.requests) >= at_least
        # One that was given up before it was read is a request too.
        assert outcome.report.timing.more["requests"] >= len(server.requests)
    assert set(faulty.faults) == set(range(len(FAULTS)))
    lines = journalled(project.out)
    assert outcome.exit_code == 4
    assert not project.out.exists()
    _each_trial_once_and_never_on_a_failure(lines, samples)
    with Server(city_model) as server:
        assert project.run(**settings, base_url=server.url, resume=True).exit_code == 0
        again = project.out.read_bytes()
        assert len(server.requests) < at_least
        project.run(**settings, base_url=server.url)
    assert again == project.out.read_bytes()


def _each_trial_once_and_never_on_a_failure(lines: list, samples: int) -> None:
    assert sorted(line["index"] for line in lines) == list(range(samples))
    lost = [line for line in lines if line["status"] == "error"]
    assert 0 < len(lost) < samples / 2
    for line in lost:
        assert line["scores"] is None
        assert line["error"]
    for line in lines:
        assert "Nobody" not in line["model_output"]
        if line["status"] == "ok":
            assert line["scores"] is not None
            number = line["index"]
            right = "without a tool" if number % 5 == 4 else f"{1000 + 7 * number} people"
            assert right in line["model_output"]


@pytest.mark.slow
def test_300_requests_to_a_faulty_server(tmp_path):
    run_through_faults(tmp_path, samples=120, share=0.45, at_least=300)


@pytest.mark.slow
def test_10000_requests_to_a_faulty_server(tmp_path):
    run_through_faults(tmp_path, samples=4000, share=0.4, at_least=10_000)
