"""Runs to look at, and a viewer that serves them."""

import http.client
import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from callmark.cli import main
from callmark.cli.view import doing_of
from callmark.config import load_config
from callmark.resources import demo_paths
from callmark.store.journal import Journal, open_journal
from callmark.view.server import ViewServer
from callmark.view.viewer import Viewer


def make_run(out: Path, *, worse: int = 0, age: int = 0, model: str = "answers") -> Path:
    """The bundled dataset with its recorded answers; every `worse`th of them says nothing."""
    paths = demo_paths()
    answers = [json.loads(line) for line in paths.answers.read_text("utf-8").splitlines()]
    for answer in answers[::worse] if worse else ():
        answer["model_output"] = "I do not know."
        answer.pop("turns", None)
    out.parent.mkdir(parents=True, exist_ok=True)
    recorded = out.parent / f"{model}.txt"
    recorded.write_text("".join(f"{json.dumps(answer)}\n" for answer in answers), "utf-8")
    words = ["run", "--runner", "replay", "--in", paths.dataset, "--fixtures", paths.fixtures]
    words += ["--model", recorded, "--out", out, "--report", out.with_name("report.json")]
    main([str(word) for word in (*words, "--quiet", "--no-html")])
    when = out.stat().st_mtime - age
    os.utime(out, (when, when))
    return out


def begin_journal(out: Path, results: Path) -> tuple[Journal, list[bytes]]:
    """A run over the same dataset that has not finished anything yet, and what it will write."""
    lines = results.read_bytes().splitlines(keepends=True)
    fingerprints = json.loads(lines[0])["fingerprints"]
    return open_journal(out, fingerprints, mode="new"), lines


@contextmanager
def viewing(folder: Path, scratch: Path, judged: Path | None = None) -> Iterator[ViewServer]:
    viewer = Viewer(folder, scratch, doing_of(load_config(Path(os.devnull), {}), None, judged))
    with ViewServer(viewer, 0) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
            viewer.close()


class Client:
    """Speaks HTTP with exactly the headers that a test gives."""

    def __init__(self, server):
        self.port = server.server_address[1]
        self.token = server.guard.token
        self.bearer = {"Authorization": f"Bearer {self.token}"}

    def ask(self, path, method="GET", body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.putrequest(method, path, skip_host="Host" in headers or "NoHost" in headers)
        headers.pop("NoHost", None)
        if body is not None:
            headers.setdefault("Content-Length", str(len(body)))
        for name, value in headers.items():
            for one in value if isinstance(value, list) else [value]:
                connection.putheader(name, one)
        connection.endheaders(body)
        answer = connection.getresponse()
        answer.text = answer.read().decode()
        connection.close()
        return answer

    def known(self, path, **options):
        return self.ask(path, **options, **self.bearer)

    def json(self, path, **options):
        answer = self.known(path, **options)
        assert answer.status == 200, answer.text
        return json.loads(answer.text)

    def runs(self):
        return {run["name"]: run for run in self.json("/runs")["runs"]}

    def post(self, body, **headers):
        given = {"Content_Type": "application/json", **self.bearer, **headers}
        return self.ask("/compare", "POST", json.dumps(body).encode(), **given)

    def compared(self, a, b, **more):
        state = json.loads(self.post({"a": a, "b": b, **more}).text)
        while state["word"] == "running":
            time.sleep(0.05)
            state = self.json(f"/compare/{state['id']}/state")
        return state
