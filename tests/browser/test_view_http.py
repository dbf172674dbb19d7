"""The viewer, asked over a real socket: whom it answers, and what."""

import http.client
import json
import os
import socket
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.browser.view_world import begin_journal, make_run, viewing
from tests.builders import make_result

from toolmark.errors import BadInput
from toolmark.store.lines import encode_result, placed_results, result_at
from toolmark.view.catalogue import MAX_DEPTH, Catalogue, NoSuchRun
from toolmark.view.live import read_piece

EVERYWHERE = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


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


@pytest.fixture(scope="module")
def folder(two_runs):
    return two_runs


@pytest.fixture(scope="module")
def client(folder, tmp_path_factory):
    with viewing(folder, tmp_path_factory.mktemp("scratch")) as server:
        yield Client(server)


def test_it_listens_on_this_machine_only(folder, tmp_path):
    with viewing(folder, tmp_path) as server:
        assert server.server_address[0] == "127.0.0.1"


def test_without_the_token_nothing_is_told(client, folder):
    run = client.runs()["base"]["id"]
    for path in ("/", "/runs", f"/run/{run}", f"/run/{run}/head", "/nothing"):
        for headers in ({}, {"Cookie": f"toolmark-{client.port}=x"}, {"Authorization": "Bearer x"}):
            answer = client.ask(path, **headers)
            assert answer.status == 403
            assert "toolmark view" in answer.text
            assert "base" not in answer.text
            assert answer.getheader("Set-Cookie") is None
    assert client.ask("/?token=").status == client.ask(f"/?token={client.token}x").status == 403
    assert client.ask(f"/runs?token={client.token}").status == 403


def test_the_token_gives_a_cookie_and_leaves_the_address(client):
    answer = client.ask(f"/?token={client.token}")
    room = answer.getheader("Location")
    assert answer.status == 303
    assert len(room) == 34
    cookie, *flags = answer.getheader("Set-Cookie").split("; ")
    assert {"HttpOnly", "SameSite=Strict", f"Path={room[:-1]}"} == set(flags)
    assert client.token not in cookie
    assert client.ask(room, Cookie=cookie).status == 200
    assert client.ask(f"{room}runs", Cookie=cookie).status == 200
    assert client.ask("/runs", Cookie=f"a=b; {cookie}").status == 200
    assert client.ask("/runs", Cookie=f"{cookie}x").status == 403


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{}", "[::2]:{}", ""],
)
def test_another_name_is_refused_even_with_the_token(client, host):
    """DNS rebinding: a name that leads to this machine does not lead to this viewer."""
    assert client.known("/runs", Host=host.format(client.port)).status == 403
    assert client.ask(f"/?token={client.token}", Host=host.format(client.port)).status == 403


def test_two_names_or_none_are_refused(client):
    own = f"127.0.0.1:{client.port}"
    assert client.known("/runs", Host=[own, "evil.example"]).status == 403
    assert client.known("/runs", NoHost="").status == 403


@pytest.mark.parametrize("host", ["127.0.0.1:{}", "localhost:{}", "LOCALHOST:{}", "[::1]:{}"])
def test_its_own_names_are_answered(client, host):
    assert client.known("/runs", Host=host.format(client.port)).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},  # another port of this machine
    ],
    ids=str,
)
def test_other_sites_are_refused_even_with_the_token(client, headers):
    assert client.known("/runs", **headers).status == 403
    assert client.post({"a": "0" * 16, "b": "0" * 16}, **headers).status == 403


def test_a_request_that_does_something_says_where_it_comes_from(client):
    cookie = client.ask(f"/?token={client.token}").getheader("Set-Cookie").split(";")[0]
    run = client.runs()["base"]["id"]
    body = json.dumps({"a": run, "b": run}).encode()
    given = {"Content_Type": "application/json", "Cookie": cookie}
    assert client.ask("/compare", "POST", body, **given).status == 403
    own = {"Origin": f"http://127.0.0.1:{client.port}", "Sec_Fetch_Site": "same-origin"}
    assert client.ask("/compare", "POST", body, **given, **own).status == 200
    form = {**given, **own, "Content_Type": "application/x-www-form-urlencoded"}
    assert client.ask("/compare", "POST", body, **form).status == 415
    assert client.ask("/compare", "POST", b"x" * 20_000, **given, **own).status == 413
    assert client.ask("/compare", "POST", b'{"a":1}', **given, **own).status == 400


@pytest.mark.parametrize("method", ["HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_other_methods_are_refused(client, method):
    assert client.known("/runs", method=method).status == 405


def test_each_path_has_its_method(client):
    assert client.known("/compare").status == 405
    body = {"method": "POST", "body": b"{}", "Content_Type": "application/json"}
    assert client.known("/runs", **body).status == 405


@pytest.mark.parametrize(
    "path",
    [
        "/../../../../etc/passwd", "/run/../../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd",
        "/run/..%2f..%2fetc%2fpasswd", "/base/results.jsonl", "/base", "/base/", "/run/", "/run/base",
        "/run/0000000000000000", "/run/0000000000000000/head", "/compare/0000000000000000", "/favicon.ico",
        "/run/{}/answers.txt", "/run/{}/../head", "/run/{}/sample", "/run/{}/sample?at=-1", "/run/{}/sample?at=1e3",
        "/run/{}/sample?at=/etc/passwd", "/run/{}/piece", "/run/{}\0", "/file:///etc/passwd",
    ],
)  # fmt: skip
def test_no_path_leads_to_a_file(client, path):
    run = client.runs()["base"]["id"]
    raw = path.format(run).replace("\0", "%00")
    answer = client.known(raw)
    assert answer.status == 404
    assert "root:" not in answer.text


def test_every_answer_carries_its_protection(client):
    run = client.runs()["base"]["id"]
    state = client.compared(run, run)
    paths = [
        "/",
        "/runs",
        f"/run/{run}",
        f"/run/{run}/head",
        f"/run/{run}/index",
        f"/run/{run}/sample?at=0",
    ]
    paths += [f"/compare/{state['id']}", "/nothing"]
    answers = [*map(client.known, paths), client.ask("/"), client.known("/", method="PUT")]
    for answer in answers:
        assert {name: answer.getheader(name) for name in EVERYWHERE} == EVERYWHERE
        policy = answer.getheader("Content-Security-Policy")
        assert policy.startswith("default-src 'none'")
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.getheader("Access-Control-Allow-Origin") is None
        if "script-src" not in policy:
            assert answer.getheader("Content-Type").split(";")[0] in (
                "application/json",
                "text/plain",
            )


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET http://[ HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\r\n\r\n",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n", b"GET /\r\n\r\n", b"X" * 100 + b"\r\n\r\n",
        b"GET /?" + b"a=1&" * 50 + b" HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n",
    ],
    ids=range(7),
)  # fmt: skip
def test_nonsense_is_refused_and_it_goes_on(client, request_bytes, capfd):
    data = request_bytes.replace(b"%d", str(client.port).encode())
    with socket.create_connection(("127.0.0.1", client.port), timeout=10) as connection:
        connection.sendall(data)
        answered = connection.recv(65536)
    assert b" 200 " not in answered
    assert client.known("/runs").status == 200
    assert "Traceback" not in capfd.readouterr().err


def test_what_follows_a_refused_request_is_not_taken_for_another(client):
    """The body of a refused POST holds a second request: nobody answers it."""
    hidden = f"GET /runs HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\nAuthorization: Bearer {client.token}\r\n\r\n"
    outer = (
        f"POST /compare HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\nContent-Length: 99999\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", client.port), timeout=10) as connection:
        connection.sendall((outer + hidden).encode())
        connection.shutdown(socket.SHUT_WR)
        answered = b""
        while piece := connection.recv(65536):
            answered += piece
    assert answered.count(b"HTTP/1.1 ") == 1
    assert b"413" in answered.splitlines()[0]


def test_the_list_has_verdict_n_fingerprints_and_metrics(client, folder):
    runs = client.runs()
    assert list(runs) == ["deep/tuned.jsonl", "base"]  # the latest first
    base, tuned = runs["base"], runs["deep/tuned.jsonl"]
    report = json.loads((folder / "base" / "report.json").read_text("utf-8"))
    assert (base["word"], base["samples"], tuned["word"]) == (
        "pass",
        report["counts"]["samples"],
        "fail",
    )
    assert report["header"]["dataset_sha256"].startswith(base["pins"]["dataset"])
    assert len(base["pins"]["dataset"]) == 10
    assert base["written"] == pytest.approx((folder / "base" / "results.jsonl").stat().st_mtime)
    f1 = base["metrics"]["integration_f1_macro_lax"]
    assert f1["value"] == report["metrics"]["integration_f1_macro_lax"]["value"]
    assert [f1["low"], f1["high"]] == report["metrics"]["integration_f1_macro_lax"]["ci_95"]


def test_every_sample_is_read_from_its_place(client, folder):
    run = client.runs()["base"]["id"]
    index = client.json(f"/run/{run}/index")
    lines = [
        json.loads(line)
        for line in (folder / "base" / "results.jsonl").read_text("utf-8").splitlines()
    ]
    assert index["ids"] == [line["sample_id"] for line in lines]
    for at, line in list(zip(index["at"], lines, strict=True))[::17]:
        [side] = client.json(f"/run/{run}/sample?at={at}")["sides"]
        for name in ("sample_id", "prompt", "model_output", "tool_trace", "scores"):
            assert side["result"][name] == line[name]
        assert client.json(f"/run/{run}/sample?s={line['sample_id']}&t=0")["sides"] == [side]
    assert client.known(f"/run/{run}/sample?at=7").status == 422
    assert client.known(f"/run/{run}/sample?s=nobody&t=0").status == 422


def test_the_page_of_a_run_has_the_head_of_the_file(client, folder):
    from toolmark.cli import main

    run = client.runs()["base"]["id"]
    head = client.json(f"/run/{run}/head")
    page = folder / "page.html"
    assert main(["report", str(folder / "base"), "--html", str(page)]) == 0
    text = page.read_text("utf-8")
    page.unlink()
    written = json.loads(text.split('id="head">')[1].split("</script>")[0])
    assert {**head, "title": ""} == {**written, "title": ""}


def test_comparing_writes_the_page_of_both_sides_once(client, folder):
    before = sorted(folder.rglob("*"))
    runs = client.runs()
    a, b = runs["base"]["id"], runs["deep/tuned.jsonl"]["id"]
    state = client.compared(a, b)
    assert state["word"] == "done", state
    page = client.known(f"/compare/{state['id']}")
    assert "REGRESSION" in page.text.upper()
    assert '<a class="brand" href="../">' in page.text
    assert int(page.getheader("Content-Length")) == len(page.text.encode())
    assert client.compared(a, b)["id"] == state["id"]
    assert client.compared(b, a)["id"] != state["id"]
    assert sorted(folder.rglob("*")) == before


def test_runs_that_are_not_comparable_say_why(folder, tmp_path):
    root = tmp_path / "runs"
    one, two = root / "a.jsonl", root / "b.jsonl"
    root.mkdir()
    results = [result for _, result in placed_results(folder / "base" / "results.jsonl")][:40]
    import msgspec

    other = msgspec.structs.replace(results[0].fingerprints, dataset_sha256="0" * 64)
    one.write_bytes(b"".join(map(encode_result, results)))
    two.write_bytes(
        b"".join(encode_result(msgspec.structs.replace(r, fingerprints=other)) for r in results)
    )
    (tmp_path / "s").mkdir()
    with viewing(root, tmp_path / "s") as server:
        client = Client(server)
        runs = client.runs()
        state = client.compared(runs["a.jsonl"]["id"], runs["b.jsonl"]["id"])
        assert state["word"] == "failed"
        assert "--common" in state["message"]
        assert client.known(f"/compare/{state['id']}").status == 404
        common = client.compared(runs["a.jsonl"]["id"], runs["b.jsonl"]["id"], common=True)
        assert common["word"] == "done"
        assert runs["a.jsonl"]["word"] == "no report"
        head = client.json(f"/run/{runs['a.jsonl']['id']}/head")
        assert "summarised by the gates in force" in head["warnings"][0]


def test_a_report_of_another_run_and_a_broken_one_are_not_believed(folder, tmp_path):
    root, scratch = tmp_path / "runs", tmp_path / "s"
    scratch.mkdir()
    for name, report in (("other", "tuned"), ("broken", None)):
        (root / name).mkdir(parents=True)
        (root / name / "results.jsonl").write_bytes(
            (folder / "base" / "results.jsonl").read_bytes()
        )
        source = folder / "deep" / "report.json"
        (root / name / "report.json").write_bytes(source.read_bytes() if report else b"{")
    (root / "dataset.jsonl").write_text('{"prompt": "x", "metadata": {}}\n', "utf-8")
    with viewing(root, scratch) as server:
        runs = Client(server).runs()
        assert runs.keys() == {"other", "broken"}
        assert all(run["word"] == "no report" and not run["metrics"] for run in runs.values())
        assert "another run (model_fingerprint)" in runs["other"]["reason"]
        assert "is no report" in runs["broken"]["reason"]


def test_a_report_of_its_own_name_goes_with_each_file(folder, tmp_path):
    root, scratch = tmp_path / "runs", tmp_path / "s"
    scratch.mkdir()
    root.mkdir()
    for name, source in (("a", "base/results.jsonl"), ("b", "deep/tuned.jsonl")):
        (root / f"{name}.jsonl").write_bytes((folder / source).read_bytes())
        report = (folder / source).with_name("report.json")
        (root / f"{name}.json").write_bytes(report.read_bytes())
    with viewing(root, scratch) as server:
        client = Client(server)
        runs = client.runs()
        assert {name: run["word"] for name, run in runs.items()} == {
            "a.jsonl": "pass",
            "b.jsonl": "fail",
        }
        for run in runs.values():
            assert client.json(f"/run/{run['id']}/verdict")["word"] == run["word"]
            head = client.json(f"/run/{run['id']}/head")
            assert (head["word"], head["warnings"]) == (run["word"], [])


def test_a_report_that_comes_after_its_results_is_seen(folder, tmp_path):
    root, scratch = tmp_path / "runs", tmp_path / "s"
    scratch.mkdir()
    root.mkdir()
    (root / "results.jsonl").write_bytes((folder / "base" / "results.jsonl").read_bytes())
    with viewing(root, scratch) as server:
        client = Client(server)
        [run] = client.runs().values()
        for part in ("verdict", "head"):
            assert client.json(f"/run/{run['id']}/{part}")["warnings"]
        (root / "report.json").write_bytes((folder / "base" / "report.json").read_bytes())
        for part in ("verdict", "head"):
            assert client.json(f"/run/{run['id']}/{part}")["warnings"] == []


def test_the_verdict_is_the_head_without_what_needs_all_lines(client):
    run = client.runs()["base"]["id"]
    verdict, head = client.json(f"/run/{run}/verdict"), client.json(f"/run/{run}/head")
    assert head["plots"][0]["id"] == "f1"
    assert {**head, "plots": head["plots"][1:]} == verdict


def test_results_that_cannot_be_read_say_where_and_why(folder, tmp_path):
    root, scratch = tmp_path / "runs", tmp_path / "s"
    scratch.mkdir()
    root.mkdir()
    lines = (folder / "base" / "results.jsonl").read_bytes().splitlines(keepends=True)
    (root / "results.jsonl").write_bytes(lines[0] + b"{broken\n" + lines[1])
    with viewing(root, scratch) as server:
        client = Client(server)
        [run] = client.runs().values()
        answer = client.known(f"/run/{run['id']}/index")
        assert answer.status == 422
        assert "results.jsonl:2: " in answer.text


def test_links_that_lead_out_of_the_folder_are_not_followed(tmp_path):
    outside, root = tmp_path / "outside", tmp_path / "runs"
    outside.mkdir()
    root.mkdir()
    line = encode_result(make_result())
    (outside / "results.jsonl").write_bytes(line)
    (root / "linked").symlink_to(outside)
    (root / "results.jsonl").symlink_to(outside / "results.jsonl")
    (root / "loop").symlink_to(root)
    (root / "real.jsonl").write_bytes(line)
    (root / "inside.jsonl").symlink_to(root / "real.jsonl")
    (root / ".hidden").mkdir()
    (root / ".hidden" / "results.jsonl").write_bytes(line)
    catalogue = Catalogue(root)
    found = {run.name: run for run in catalogue.scan().runs}
    assert found.keys() == {"real.jsonl", "inside.jsonl"}
    real = found["real.jsonl"]
    assert catalogue.find(real.id).path == root.resolve() / "real.jsonl"
    (root / "real.jsonl").unlink()
    (root / "real.jsonl").symlink_to(outside / "results.jsonl")  # after it was listed
    with pytest.raises(NoSuchRun):
        catalogue.find(real.id)


def test_the_search_for_runs_has_bounds(tmp_path, monkeypatch):
    deep = tmp_path.joinpath(*"abcdefghijkl")
    deep.mkdir(parents=True)
    line = encode_result(make_result())
    (deep / "results.jsonl").write_bytes(line)
    folder = Catalogue(tmp_path).scan()
    assert folder.runs == ()
    assert f"more than {MAX_DEPTH} deep" in folder.left_out
    for number in range(12):
        (tmp_path / f"{number}.jsonl").write_bytes(line)
    monkeypatch.setattr("toolmark.view.catalogue.MAX_RUNS", 5)
    folder = Catalogue(tmp_path).scan()
    assert len(folder.runs) == 5
    assert "12 runs were found; the latest 5" in folder.left_out
    monkeypatch.setattr("toolmark.view.catalogue.MAX_ENTRIES", 3)
    folder = Catalogue(tmp_path).scan()
    assert len(folder.runs) == 3
    assert "first 3 files" in folder.left_out


@given(st.lists(st.text(max_size=40), min_size=1, max_size=8), st.data())
def test_any_place_gives_its_line_or_nothing(tmp_path_factory, outputs, data):
    path = tmp_path_factory.mktemp("lines") / "results.jsonl"
    results = [
        make_result(at, output=text.encode("utf-8", "replace").decode())
        for at, text in enumerate(outputs)
    ]
    path.write_bytes(b"".join(map(encode_result, results)))
    places = dict(placed_results(path))
    assert [*places.values()] == results
    offset = data.draw(st.integers(0, path.stat().st_size + 3))
    if offset in places:
        assert result_at(path, offset) == places[offset]
    else:
        with pytest.raises(BadInput):
            result_at(path, offset)


@given(st.lists(st.integers(0, 12), min_size=1, max_size=30), st.integers(100, 3000), st.booleans())
def test_pieces_of_a_journal_are_all_of_it(tmp_path_factory, indexes, piece, torn):
    """Read with any size of piece: every whole line is there once, the torn one is not."""
    import toolmark.view.live as live

    path = tmp_path_factory.mktemp("journal") / "results.jsonl.journal"
    lines = [encode_result(make_result(index, trial=at)) for at, index in enumerate(indexes)]
    head = b'{"journal":1,"fingerprints":{"dataset_sha256":"d"}}\n'
    path.write_bytes(head + b"".join(lines) + (lines[0][:50] if torn else b""))
    before, live.PIECE_BYTES = live.PIECE_BYTES, piece
    try:
        found, start, pins = [], 0, []
        while True:
            part = read_piece(path, start, {})
            assert part.start == start
            found += zip(part.index.ids, part.index.trials, part.index.at, strict=True)
            pins += part.pins
            start = part.next
            if not part.more:
                break
    finally:
        live.PIECE_BYTES = before
    assert [(name, trial) for name, trial, _ in found] == [
        (f"s{i}", at) for at, i in enumerate(indexes)
    ]
    assert all(result_at(path, at).trial == trial for _, trial, at in found)
    assert pins == [("dataset_sha256", "d")]


def test_a_run_goes_on_and_becomes_results(folder, tmp_path):
    root, scratch = tmp_path / "runs", tmp_path / "s"
    scratch.mkdir()
    out = root / "new" / "results.jsonl"
    journal, lines = begin_journal(out, folder / "base" / "results.jsonl")
    with viewing(root, scratch) as server, journal:
        client = Client(server)
        run = client.runs()["new"]
        assert (run["finished"], run["word"]) == (False, "unfinished")
        for line in lines[:10]:
            journal.append(line)
        first = client.json(f"/run/{run['id']}/piece")
        assert len(first["index"]["ids"]) == 10
        assert (
            dict(first["pins"])["dataset_sha256"]
            == json.loads(lines[0])["fingerprints"]["dataset_sha256"]
        )
        assert first["index"]["facets"][1]["names"].count("passes") == 0
        journal.append(lines[10])
        second = client.json(f"/run/{run['id']}/piece?from={first['next']}")
        assert second["index"]["ids"] == [json.loads(lines[10])["sample_id"]]
        [side] = client.json(f"/run/{run['id']}/sample?at={second['index']['at'][0]}")["sides"]
        assert side["result"]["model_output"] == json.loads(lines[10])["model_output"]
        assert client.json(f"/run/{run['id']}/piece?from={second['next']}")["index"]["ids"] == []
        anew = client.json(f"/run/{run['id']}/piece?from=999999999")
        assert (anew["start"], len(anew["index"]["ids"])) == (0, 11)
        assert client.known(f"/run/{run['id']}/head").status == 404
        assert client.post({"a": run["id"], "b": run["id"]}).status == 404
        for line in lines[11:]:
            journal.append(line)
        journal.finish(out)
        became = client.json(f"/run/{run['id']}/piece?from={second['next']}")["became"]
        assert became == client.runs()["new"]["id"]
        assert len(client.json(f"/run/{became}/index")["ids"]) == len(lines)
        out.unlink()
        assert client.known(f"/run/{run['id']}/piece").status == 404


def test_hostile_names_are_written_out(tmp_path):
    root, scratch = tmp_path / "runs", tmp_path / "s"
    scratch.mkdir()
    name = os.fsdecode("<img src=x onerror=alert(1)>\u202e\x1b[31m".encode() + b"\xff")
    (root / name).mkdir(parents=True)
    (root / name / "results.jsonl").write_bytes(encode_result(make_result()))
    with viewing(root, scratch) as server:
        client = Client(server)
        answer = client.known("/runs")
        assert "<" not in answer.text
        [shown] = client.runs()
        assert shown == "<img src=x onerror=alert(1)>\\u202e\\x1b[31m\ufffd"
        page = client.known(f"/run/{client.runs()[shown]['id']}").text
        assert "<img" not in page
        assert "<title>&lt;img src=x" in page


def test_an_empty_folder_is_a_list_of_nothing(tmp_path):
    (tmp_path / "s").mkdir()
    (tmp_path / "r").mkdir()
    with viewing(tmp_path / "r", tmp_path / "s") as server:
        assert Client(server).json("/runs")["runs"] == []


def test_a_file_that_changed_is_read_again(folder, tmp_path):
    root, scratch = tmp_path / "runs", tmp_path / "s"
    scratch.mkdir()
    out: Path = make_run(root / "one" / "results.jsonl")
    with viewing(root, scratch) as server:
        client = Client(server)
        run = client.runs()["one"]
        f1 = run["metrics"]["integration_f1_macro_lax"]["value"]
        assert client.json(f"/run/{run['id']}/head")["word"] == "pass"
        make_run(out, worse=3)
        again = client.runs()["one"]
        assert again["id"] == run["id"]
        assert again["metrics"]["integration_f1_macro_lax"]["value"] < f1
        assert client.json(f"/run/{run['id']}/head")["word"] == "fail"
