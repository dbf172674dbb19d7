"""Good files of every kind, small and with every feature in them: what the mutations start from."""

import json
from pathlib import Path

import msgspec

from callmark.broker.broker import ToolBroker
from callmark.config import RunConfig, load_config
from callmark.datasets.reader import dataset_sha256
from callmark.run.conclude import run
from callmark.run.offers import open_registry

HEADER = {
    "__header__": True,
    "dataset_version": "1",
    "tokenizer_fingerprint": {"id": "t", "sha256": "0"},
    "integration_span_cap": 2,
    "span_extractor": "auto",
    "strict_keys": ["count", "summary"],
    "gates": {
        "integration_coverage": {"bound": 0.5},
        "integration_f1_macro_lax": {"bound": 0.5, "policy": "count_based_misses", "pct": 0.1},
        "error_recovery_rate": {"policy": "confident"},
    },
    "url_allowlist": ["corp.io"],
    "privacy_echo": "allow",
    "seed": 3,
}
SEARCH = {"name": "web.search", "arguments": {"q": "city 1", "top_k": 3}}
ITEMS = [
    {
        "prompt": "How many live in city 1? Say Integration: and the number.",
        "teacher_text": "Integration: 1,007 people.",
        "metadata": {
            "sample_id": "s1",
            "call_sequence": [
                {**SEARCH, "accept": {"/q": ["city 1", "city one"]}, "optional": ["top_k"]}
            ],
            "required_facts": [1007],
            "strict_keys": ["count"],
            "slices": ["teacher_heavy", "big"],
            "cluster": "c",
            "integration_spans_bytes": [[0, 5]],
        },
    },
    {
        "prompt": [
            {"role": "system", "content": "Be short."},
            {"role": "user", "content": [{"type": "text", "text": "And city 2?"}]},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "function": SEARCH}]},
            {"role": "tool", "tool_call_id": "a", "content": '{"count": 2014}'},
        ],
        "user_turns": ["In French, please.", "Sure?"],
        "metadata": {
            "sample_id": 2,
            "call_sequence": ["web.search", {"name": "read_file", "arguments": {"path": "a"}}],
            "call_match": "unordered",
            "locale_probe": True,
            "locale": "fr",
            "language": "fr",
            "cluster": "c",
        },
    },
    {"prompt": "Say hello.", "metadata": {"sample_id": "s3", "expected_behaviour": "no_tool"}},
    {
        "prompt": "What about Atlantis?",
        "metadata": {"sample_id": "s4", "negative_control": True, "decoy_values": ["9,999", 12]},
    },
    {
        "prompt": "Do it.",
        "sample_id": "s5",
        "metadata": {"adversarial": {"type": "ambiguity", "expected": "ask_clarify"}},
    },
    {
        "prompt": "Try city 6 again if it fails.",
        "metadata": {
            "sample_id": "s6",
            "expected_behaviour": "retry",
            "call_sequence": [{"name": "web.search", "arguments": {"q": "city 6"}}] * 2,
            "tools": ["web.search", "read_file"],
            "long_context": True,
        },
    },
    {"prompt": "Nothing is expected here."},
]
FIXTURES = [
    {"name": "web.search", "key": {"q": "city 1"}, "result": {"count": 1007, "summary": "Big."}},
    {
        "name": "web.search",
        "key": {"q": "city 2", "top_k": 5},
        "result": [1, {"hits": ["a", None]}],
        "_note": "x",
    },
    {
        "name": "web.search",
        "key": {"q": "city 6"},
        "result": {"ok": False, "error": "busy"},
        "seq": 1,
    },
    {"name": "web.search", "key": {"q": "city 6"}, "result": {"ok": True, "count": 6042}, "seq": 2},
    {"name": "web.search", "key": {"q": "atlantis"}, "result": "Population 12.", "sample_id": "s4"},
    {
        "name": "web.search",
        "key": {"q": "town x"},
        "match": {"q": {"regex": "town .*"}, "lang": {"ignore": True}},
        "result": 1,
    },
    {
        "name": "web.search",
        "key": {"q": "y"},
        "match": {"q": {"one_of": ["y", "z"]}},
        "result": None,
    },
    {
        "name": "web.search",
        "key": {"q": "v", "n": 5},
        "match": {"n": {"number_tolerance": 0.5}},
        "result": 2,
    },
    {"name": "web.search", "key": {"q": "w"}, "match": {"q": {"contains": "w"}}, "result": 3},
    {"name": "read_file", "match": "any", "result": {"content": "line one\nline two"}},
]
TRACE = [
    {"name": "web.search", "arguments": {"q": "City  1"}, "turn": 1},
    {"name": "web.search", "arguments": '{"q": "city 6"}', "result": {"ok": True, "count": 6042}},
    {"name": "web.search", "arguments": "{q:", "status": "malformed", "raw": "<x>"},
]
ANSWERS = [
    {
        "sample_id": "s1",
        "trial": 0,
        "model_output": "Let me see.\nIntegration: 1,007 people. Write to jane@corp.io.",
        "tool_trace": TRACE[:1],
        "turns": [{"start": 0, "end": 11}, {"start": 12, "end": 61}],
        "reasoning": "hm",
    },
    {
        "sample_id": "2",
        "model_output": 'Voici 2 014. <tool_call>{"name": "web.search", "arguments": {"q": "a"}}</tool_call>',
        "tool_trace": TRACE,
        "said": [{"turn": 1, "text": "And?"}],
        "stop": "truncated",
    },
    {"sample_id": "s3", "model_output": "Hello! See https://evil.io/x.", "metadata": {"a": 1}},
    {"sample_id": "s4", "model_output": "There is nothing.", "status": "ok", "prompt": "?"},
    {"sample_id": "s5", "model_output": "Which one? Call 030 1234567 or 4111 1111 1111 1111."},
    {"sample_id": "s6", "model_output": None, "status": "error", "error": "timeout"},
]
CONVERSATIONS = [
    {
        "id": "s1",
        "messages": [
            {"role": "user", "content": "How many live in city 1?"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {**SEARCH, "arguments": '{"q": "x"}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": '{"count": 1007}'},
            {"role": "assistant", "content": "There are 1,007.", "reasoning_content": "hm"},
            {"role": "user", "content": "Sure?"},
            {"role": "assistant", "content": [{"type": "text", "text": "Yes, 1007."}]},
        ],
        "tools": [{"type": "function", "function": {"name": "web.search", "parameters": {}}}],
        "metadata": {"call_sequence": [SEARCH]},
    },
    {
        "sample_id": "s3",
        "trial": 0,
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "", "function_call": {"name": "f", "arguments": "{"}},
            {"role": "function", "name": "f", "content": "oops"},
        ],
    },
    [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b 12 < 13 km"}],
]
REGISTRY = [
    {
        "name": "web.search",
        "description": "Search.",
        "parameters": {
            "type": "object",
            "properties": {
                "q": {"type": "string", "minLength": 1},
                "top_k": {"type": "integer", "default": 3, "minimum": 1},
                "kind": {"$ref": "#/$defs/kind"},
            },
            "required": ["q"],
            "additionalProperties": False,
            "$defs": {"kind": {"enum": ["a", "b", None]}},
        },
        "x-callmark": {
            "ignore": ["trace"],
            "casefold": ["q"],
            "default": {"lang": "en"},
            "aliases": ["search"],
            "strict_keys": ["count"],
        },
    },
    {"type": "function", "function": {"name": "read_file", "parameters": {"type": "object"}}},
    {"name": "noop"},
]
ALLOWLIST = {"tools": ["web.search", "read_file", "code_exec"]}
CONFIG = """\
# settings
runner: replay
in: dataset.jsonl
out: results.jsonl
report: report.json
fixtures: fixtures
resume: false
restart: false
num_shards: 1
shard_index: 0
limit: null
slice: []
redact_pii: false
max_tokens: 100
seed: 7
temperature: 0.0
top_p: null
max_turns: 4
repeat: 1
parse_text: auto
span_extractor: auto
integration_span_cap: 3
strict_keys: [count, summary]
url_allowlist:
  - corp.io
privacy_echo: allow
miss_reply: '{"ok": false}'
max_errors: 50%
min_eligible_for_gates: 1
fail_on_inconclusive: false
only: [s1, 2]
gates:
  integration_coverage: {bound: 0.95, policy: hard_fail}
  integration_f1_macro_lax: {bound: 0.5, policy: count_based_misses, pct: 0.1}
  error_recovery_rate: {policy: confident}
"""


def lines_of(values: list) -> bytes:
    return "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values).encode()


def json_of(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=1).encode()


class Material:
    """The good files in one folder, and the settings of a run over them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        fields = {name: value for name, value in HEADER.items() if name != "__header__"}
        # Kind of file -> its forms. The first is the one that the others are tried with.
        self.good: dict[str, tuple[bytes, ...]] = {
            "dataset": (
                lines_of([HEADER, *ITEMS]),
                lines_of([{"__header__": fields}, *ITEMS]),
                lines_of(ITEMS),
            ),
            "fixtures": (lines_of(FIXTURES),),
            "fixtures list": (json_of(FIXTURES), json_of(FIXTURES[0])),
            "answers": (lines_of(ANSWERS),),
            "conversations": (lines_of(CONVERSATIONS),),
            "registry": (
                json_of(REGISTRY),
                json_of({"tools": REGISTRY}),
                json_of({"web.search": REGISTRY[0], "read_file": REGISTRY[1]}),
                json_of(REGISTRY[0]),
            ),
            "registry in a folder": (json_of(REGISTRY), json_of({"tools": REGISTRY[:2]})),
            "allowlist": (json_of(ALLOWLIST), json_of(ALLOWLIST["tools"])),
            "config": (CONFIG.encode(),),
        }
        self.fixtures = folder / "fixtures"
        self.fixtures.mkdir()
        self.dataset = self._write("dataset.jsonl", "dataset")
        self.answers = self._write("answers.jsonl", "answers")
        self.registry = self._write("registry.json", "registry")
        self.allowlist = self._write("allowlist.json", "allowlist")
        self._write("fixtures/web.search.jsonl", "fixtures")
        # Read once: a run of the fuzzer starts from it thousands of times.
        self.settings: RunConfig = load_config(Path("/dev/null"), {"max_errors": 9})
        self.good["dataset"] += (self._sealed(),)
        self.results = folder / "results.jsonl"
        self.good["results"] = (self._results(),)
        self.good["journal"] = (self._journal(),)
        lines = map(json.loads, self.results.read_text("utf-8").splitlines())
        self.trials = [(line["sample_id"], line["trial"]) for line in lines]

    def config(self, **settings) -> RunConfig:
        files = {
            "dataset": str(self.dataset),
            "fixtures": str(self.fixtures),
            "model": str(self.answers),
            "registry": str(self.registry),
        }
        sources = {**self.settings.sources, **dict.fromkeys(settings, "flag")}
        return msgspec.structs.replace(self.settings, **{**files, **settings}, sources=sources)

    def goes_with(self, kind: str) -> list[Path]:
        """The good files that a spoilt one of this kind can contradict."""
        if kind.startswith(("registry", "allowlist")):
            return [self.dataset, self.fixtures / "web.search.jsonl"]
        return []

    def _write(self, name: str, kind: str) -> Path:
        path = self.folder / name
        path.write_bytes(self.good[kind][0])
        return path

    def _sealed(self) -> bytes:
        """The dataset with a header that pins what belongs to it."""
        registry = open_registry(str(self.registry))
        pins = {
            "dataset_sha256": dataset_sha256(self.dataset),
            "tool_registry_sha256": registry.sha256,
            "fixtures_sha256": ToolBroker(self.fixtures, registry).fixtures_sha256,
        }
        return lines_of([{**HEADER, **pins}, *ITEMS])

    def _results(self) -> bytes:
        run(self.config(out=str(self.results), repeat=1))
        return self.results.read_bytes()

    def _journal(self) -> bytes:
        """What a run leaves behind that was killed after its last trial but one."""
        out = self.folder / "killed.jsonl"
        run(self.config(out=str(out), max_errors=0))  # one answer is an error: it stays open
        journal = out.with_name("killed.jsonl.journal")
        data = journal.read_bytes()
        journal.unlink()
        return data
