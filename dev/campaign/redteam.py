"""What somebody who means harm would try, each in a process of its own with a limit of time and
memory. A case passes if nothing escapes, nothing hangs and nothing ends in a traceback."""

from __future__ import annotations

import io
import json
import resource
import tempfile
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.queues import Queue
from pathlib import Path
from xml.etree import ElementTree

from tests.hostile import HOSTILE

from callmark.api import parse_tool_calls, score_item
from callmark.broker.broker import ToolBroker
from callmark.cli import MODULES
from callmark.config import load_config
from callmark.errors import CallmarkError
from callmark.grounding.ground import ground
from callmark.run.offers import open_registry
from callmark.runners.wrappers import render_prompt
from dev.campaign.parts import HELD, REFUSED

SECONDS, BYTES = 60, 3 * 2**30
SECRET = "root:x:0:0"  # noqa: S105 - of /etc/passwd, which nothing may show
Case = Callable[[Path], str]

TEMPLATES = {
    "classes": "{{ user.__class__.__mro__[1].__subclasses__() }}",
    "globals": "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
    "format": "{{ '{0.__class__}'.format(user) }}",
    "attribute filter": "{{ user | attr('__class__') }}",
    "include": "{% include '/etc/passwd' %}",
    "import": "{% import '/etc/passwd' as x %}{{ x }}",
    "range": "{% for i in range(10**9) %}x{% endfor %}",
    "nested loops": "{% for a in range(9999) %}{% for b in range(9999) %}"
    "{% for c in range(9999) %}x{% endfor %}{% endfor %}{% endfor %}",
    "multiplied text": "{{ 'x' * 10**10 }}",
    "power": "{{ 9 ** 9 ** 9 }}",
    "padding": "{{ 'x' | center(10**10) }}",
    "recursion": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
}
TEXTS = {
    "digits": "It is " + "9" * 100_000,
    "exponent": "It is 1e999999999 and 1E-999999999",
    "brackets": "[" * 100_000,
    "braces": '{"a":' * 50_000,
    "tags": "<tool_call>" * 20_000,
    "quotes": '"' * 100_001,
    "separators": "1," * 50_000,
    "blanks": "1" + " " * 100_000 + "2",
    "dates": "2024-" * 30_000,
    "marks": "a" + "\u0301" * 100_000,
    "mails": "a@" * 50_000,
    "links": "http://" * 20_000,
    "underscores": "_" * 100_000 + "x",
    "table": "|" * 100_000,
    "labels": "Option 1:\nOption 2:\n" * 10_000,
}
PATTERNS = (
    "(a+)+$",
    "(a|a)*b",
    "(.*)*x",
    "(?:a?){80}a{80}",
    ".*.*.*.*.*.*.*b",
    "(a{0,9999}){0,9999}",
)
NAMES = ("../../evil", "/tmp/evil", "..\\evil", "a/b", "con", "x\x00y", ".hidden", "a" * 5000)


def template_in_wrapper(source: str) -> Case:
    def case(folder: Path) -> str:
        path = folder / "wrapper.j2"
        path.write_text('{"system": "s", "user": "' + source.replace('"', "'") + '"}')
        try:
            shown = json.dumps(render_prompt(path, user="u", system="s"))
        except CallmarkError:
            return REFUSED
        escaped = SECRET in shown or "subclass" in shown or "uid=" in shown or len(shown) > 10**7
        return "the template got out" if escaped or "<class" in shown else HELD

    return case


def template_in_text(name: str) -> Case:
    """What a user writes is text, not a template."""

    def case(folder: Path) -> str:
        path = folder / "wrapper.j2"
        path.write_text('{"user": {{ user }}}')
        wanted = TEMPLATES[name]
        got = render_prompt(path, user=wanted)[0]["content"]
        return HELD if got == wanted else "the text was evaluated"

    return case


def huge_text(text: str) -> Case:
    def case(folder: Path) -> str:
        trace = [{"name": "f", "arguments": {}, "result": {"content": text}}]
        score_item({"prompt": "x", "metadata": {}}, text, trace, span_extractor="claims")
        ground(text[:50_000], [{"content": text}])
        parse_tool_calls(text)
        return HELD

    return case


def regex_bomb(pattern: str) -> Case:
    def case(folder: Path) -> str:
        fixture = {"name": "f", "key": {}, "match": {"q": {"regex": pattern}}, "result": 1}
        (folder / "f.jsonl").write_text(json.dumps(fixture) + "\n")
        try:
            ToolBroker(folder).call("f", {"q": "a" * 5000 + "!"})
        except CallmarkError:
            return REFUSED
        return HELD

    return case


def schema_bomb(pattern: str) -> Case:
    def case(folder: Path) -> str:
        path = folder / "registry.json"
        schema = {"type": "object", "properties": {"q": {"type": "string", "pattern": pattern}}}
        path.write_text(json.dumps([{"name": "f", "parameters": schema}]))
        try:
            open_registry(str(path)).validate("f", {"q": "a" * 5000 + "!"})
        except CallmarkError:
            return REFUSED
        return HELD

    return case


def remote_reference(target: str) -> Case:
    def case(folder: Path) -> str:
        path = folder / "registry.json"
        schema = {"type": "object", "properties": {"q": {"$ref": target}}}
        path.write_text(json.dumps([{"name": "f", "parameters": schema}]))
        try:
            problems = open_registry(str(path)).validate("f", {"q": "x"})
        except CallmarkError as error:
            return "the file was read" if SECRET in str(error) else REFUSED
        return "the file was read" if SECRET in str(problems) else HELD

    return case


def tool_name(name: str) -> Case:
    """A tool's name becomes the name of a file where fixtures are written."""

    def case(folder: Path) -> str:
        inside = folder / "inside"
        inside.mkdir()
        results = inside / "results.jsonl"
        results.write_text(_result_line(name, "ok", {"count": 7}))
        scored = inside / "scored.jsonl"
        assert _called("score", [str(results), "--out", str(scored)]) is not None
        words = [
            "--from-trace",
            str(scored),
            "s1",
            "--id",
            "s2",
            "--fixtures",
            str(inside / "fixtures"),
        ]
        code = _called("dataset add", [str(inside / "new.jsonl"), *words])
        outside = [path for path in folder.rglob("*") if inside not in (path, *path.parents)]
        outside += [path for path in (Path("/tmp/evil"), Path("/tmp/evil.jsonl")) if path.exists()]
        return f"wrote {outside}" if outside else REFUSED if code is None else HELD

    return case


def settings(text: str) -> Case:
    def case(folder: Path) -> str:
        path = folder / "callmark.yaml"
        path.write_text(text)
        try:
            load_config(path, {})
        except CallmarkError as error:
            return "the file was read" if SECRET in str(error) else REFUSED
        return HELD

    return case


def shown_text(text: str) -> Case:
    """A hostile answer in every form of report."""

    def case(folder: Path) -> str:
        results = folder / "results.jsonl"
        results.write_text(_result_line("web.search", text, {"content": text[:5000]}))
        scored = folder / "scored.jsonl"
        if _called("score", [str(results), "--out", str(scored)]) is None:
            return REFUSED
        forms = [folder / f"r.{ending}" for ending in ("xml", "md", "csv")]
        words = [word for form in forms for word in ("-o", str(form))]
        said = io.StringIO()
        _called("show", [str(scored), "s1", "--full"], said)
        _called("report", [str(scored), *words], said)
        ElementTree.parse(forms[0])  # noqa: S314 - our own file
        shown = said.getvalue() + forms[1].read_text("utf-8")
        steered = [char for char in "\x1b\x9b\x9d\x07\x08\u202e" if char in shown]
        if steered or "<script>" in forms[1].read_text("utf-8"):
            return f"steered by {steered}"
        return HELD

    return case


def deep_json(depth: int) -> Case:
    def case(folder: Path) -> str:
        path = folder / "f.jsonl"
        deep = "[" * depth + "]" * depth
        path.write_text('{"name": "f", "key": {}, "result": ' + deep + "}\n")
        try:
            ToolBroker(folder).call("f", {})
        except CallmarkError:
            return REFUSED
        return HELD

    return case


def linked_fixtures(folder: Path) -> str:
    """A link out of the folder shows its target in no message."""
    (folder / "f.jsonl").symlink_to("/etc/passwd")
    try:
        ToolBroker(folder).call("f", {})
    except CallmarkError as error:
        return "the file was read" if SECRET in str(error) else REFUSED
    return HELD


def packed_bomb(folder: Path) -> str:
    """A gigabyte of zeros in a megabyte: nothing unpacks by itself."""
    import gzip

    for name in ("dataset.jsonl", "dataset.jsonl.gz"):
        with gzip.open(folder / name, "wb", compresslevel=1) as stream:
            for _ in range(1024):
                stream.write(bytes(2**20))
        if _called("dataset stats", [str(folder / name)]) is not None:
            return "a bomb was unpacked"
    return REFUSED


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(12)
)
SETTINGS = {
    "aliases": BOMB,
    "aliases in a setting": BOMB + "strict_keys: *m\n",
    "object": "model: !!python/object/apply:os.system ['id']\n",
    "module": "model: !!python/name:os.system\n",
    "loop": "a: &a {b: *a}\nextra_body: *a\n",
    "depth": "extra_body: " + "[" * 5000 + "]" * 5000 + "\n",
    "number": "seed: " + "9" * 10_000 + "\n",
    "sexagesimal": "seed: " + ":".join(["59"] * 2000) + "\n",
}
REFERENCES = ("file:///etc/passwd", "http://127.0.0.1:9/x", "../../../etc/passwd", "#/properties/q")

CASES: dict[str, dict[str, Case]] = {
    "templates in a wrapper": {n: template_in_wrapper(s) for n, s in TEMPLATES.items()},
    "templates in a user's text": {n: template_in_text(n) for n in TEMPLATES},
    "huge and odd answers": {n: huge_text(t) for n, t in TEXTS.items()},
    "regex bombs in fixtures": {p: regex_bomb(p) for p in PATTERNS},
    "regex bombs in schemas": {p: schema_bomb(p) for p in PATTERNS},
    "references out of a schema": {t: remote_reference(t) for t in REFERENCES},
    "names of tools as paths": {n[:20]: tool_name(n) for n in NAMES},
    "settings": {n: settings(t) for n, t in SETTINGS.items()},
    "deep JSON in fixtures": {str(d): deep_json(d) for d in (100, 1_000, 100_000)},
    "files": {"link out of the folder": linked_fixtures, "packed gigabyte": packed_bomb},
    "hostile answers in reports": {n: shown_text(t) for n, t in HOSTILE.items()},
}


def _result_line(name: str, answer: str, result: object) -> str:
    entry = {"name": name, "arguments": {"q": "x"}, "result": result, "turn": 1}
    line = {
        "sample_id": "s1",
        "trial": 0,
        "prompt": "How many? Say what you found.",
        "metadata": {"call_sequence": [{"name": name, "arguments": {"q": "x"}}]},
        "model_output": answer,
        "tool_trace": [entry],
    }
    return json.dumps(line) + "\n"


def _called(command: str, words: list[str], said: io.StringIO | None = None) -> int | None:
    """The exit code, or None for a named error."""
    said = said or io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        try:
            code: int = import_module(MODULES[command]).main(words)
        except CallmarkError:
            return None
    return code


def attack(group: str, name: str) -> str:
    """`held`, `refused by name`, or what went wrong."""
    context = get_context("spawn")
    queue: Queue[str] = context.Queue()
    process = context.Process(target=_attacked, args=(group, name, queue))
    process.start()
    process.join(SECONDS)
    if process.is_alive():
        process.kill()
        process.join()
        return f"still running after {SECONDS} s"
    return queue.get(timeout=5) if process.exitcode == 0 else f"died: {process.exitcode}"


def _attacked(group: str, name: str, queue: Queue[str]) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    with tempfile.TemporaryDirectory(prefix="callmark-campaign-") as folder:
        try:
            queue.put(CASES[group][name](Path(folder)))
        except BaseException:  # whatever it is, it is a finding
            queue.put(f"traceback: {traceback.format_exc(limit=-4)}")
