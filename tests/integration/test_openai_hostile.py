"""A server that sends whatever it likes. Each of its answers costs one trial or is right; none takes
longer than the time limit or fills the memory, and the command line ends as it should."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass

import pytest
from tests.builders import ROOT
from tests.endpoints import Answer, Request, Server, city_model, completion, self_signed
from tests.hostile_answers import HOSTILE, RIGHT
from tests.integration.conftest import Project, fixture, item, read_lines
from tests.integration.served import KEY, short_waits  # noqa: F401
from tests.pace import few

SECONDS = 2.0  # enough for all that is not heavy, on a busy machine too
MOST_MB = 300
HEAVY = re.compile(r"\d+ [MG]B|bomb|without end|terabyte|10,000")
LIGHT = {name: told for name, told in HOSTILE.items() if not HEAVY.search(name)}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return self_signed(tmp_path_factory.mktemp("tls"))


@dataclass(frozen=True)
class Ended:
    code: int
    megabytes: float
    lines: dict[str, dict]
    shown: str


def run_through(folder, answers: dict, certificate=None, seconds: float = SECONDS) -> Ended:
    """One run in a process of its own: every second sample gets one of the answers, the others
    are answered rightly."""
    project = Project(folder, size=1)
    names = list(answers)
    items = [item(5 * number) for number in range(2 * len(names))]
    project.write(items, [fixture(5 * number) for number in range(2 * len(names))])

    def answer(request: Request) -> Answer:
        number = int(re.findall(r"city (\d+)", request.messages[0]["content"])[0]) // 5
        if number % 2 == 0:
            return city_model(request)
        is_first = request.messages[-1]["role"] == "user"
        return answers[names[number // 2]][0] if is_first else completion("I do not know.")

    with Server(answer, certificate=certificate) as server:
        words = ["--in", project.dataset, "--fixtures", project.fixtures, "--out", project.out]
        served = ["--runner", "openai_http", "--model", "stub", "--base-url", server.url]
        # One more try: a kept connection may be reset in the moment in which it is used again.
        limits = ["--request-timeout", seconds, "--max-retries", 1, "--max-connections", 8]
        code, megabytes, shown = child(folder, *words, *served, *limits, tls=certificate)
    path = project.out if project.out.exists() else f"{project.out}.journal"
    lines = [line for line in read_lines(path) if "index" in line]
    by_name = {names[line["index"] // 2]: line for line in lines if line["index"] % 2}
    assert len(lines) == 2 * len(names), shown
    good = [line for line in lines if line["index"] % 2 == 0]
    assert [(line["index"], line["error"]) for line in good if line["status"] != "ok"] == []
    return Ended(code, megabytes, by_name, shown)


# A process counts the memory of the one that it was forked from as its own: so it is started by a
# small one.
MEASURED = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[2:])
with open(sys.argv[1], "w") as stream:
    stream.write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
sys.exit(code)
"""


def child(folder, *words: object, tls=None) -> tuple[int, float, str]:
    """Exit code, most memory in MB, and what was printed."""
    environment = {**os.environ, "OPENAI_API_KEY": KEY, "PYTHONPATH": str(ROOT / "src")}
    if tls is not None:
        environment["SSL_CERT_FILE"] = str(tls)
    used = folder / "used.txt"
    every = [sys.executable, "-m", "callmark", "run", *map(str, words)]
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(used), *every],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, int(used.read_text()) / 1024, done.stdout


def check(ended: Ended, answers: dict) -> None:
    for name, (_, is_right) in answers.items():
        line = ended.lines[name]
        if line["status"] == "error":
            assert not is_right, (name, line["error"])
            assert line["scores"] is None
            assert "fault of callmark" not in line["error"], name
        else:
            assert is_right is not False, (name, line["model_output"][:200])
        if is_right:
            assert line["model_output"] == RIGHT
    assert "Traceback" not in ended.shown
    assert ended.megabytes < MOST_MB
    assert ended.code == 4  # trials are lost, and none may be


@pytest.mark.parametrize("way", few(["TLS", "plain"]))
@pytest.mark.parametrize("part", few(range(4)))
def test_f9_f10_f13_hostile_answers_cost_one_trial_each(tmp_path, certificate, way, part):
    assert len(LIGHT) > 120
    answers = dict(list(LIGHT.items())[part::4])
    check(run_through(tmp_path, answers, certificate if way == "TLS" else None), answers)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["plain", "TLS"])
def test_f11_every_hostile_answer_over_both_ways(tmp_path, certificate, way):
    ended = run_through(tmp_path, HOSTILE, certificate if way == "TLS" else None, 6.0)
    check(ended, HOSTILE)
