"""Each command as a stranger types it: what it prints, what it writes, how it ends."""

import json
import re

import jsonschema_rs
import pytest
from tests.pace import few

from callmark import resources, sample_id_of
from callmark.summary.wording import METRICS


def read_report(path):
    return json.loads(path.read_bytes())


def unfolded(text):
    """Without the line breaks that 80 columns ask for."""
    return " ".join(text.split())


def answers_with(world, **changes):
    """The recorded answers with some fields replaced."""
    lines = [json.loads(line) for line in world.answers.read_text("utf-8").splitlines()]
    world.write(world.answers, [{**line, **changes} for line in lines])


@pytest.mark.slow
def test_a28_the_demo_evaluates_the_shipped_model_and_says_where_everything_is(callmark, tmp_path):
    (tmp_path / "callmark.yaml").write_text("seed: not a number\n")
    finished = callmark("demo")
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.startswith("PASS  ")
    for part in (
        "179 samples",
        "gates passed",
        "demo-run/report.json",
        "callmark show",
    ):
        assert part in finished.stdout
    lines = (tmp_path / "demo-run" / "results.jsonl").read_text("utf-8").splitlines()
    assert len(lines) == 179
    schema = jsonschema_rs.Draft202012Validator(resources.schema("eval_result"))
    assert all(schema.is_valid(json.loads(line)) for line in lines)  # a21, a49
    report = read_report(tmp_path / "demo-run" / "report.json")
    assert report["verdict"] == "pass"
    passed = {gate["name"] for gate in report["gates"] if gate["status"] == "pass"}
    assert "integration_f1_macro_lax" in passed
    assert report["header"]["runner"] == "hf_local"
    # What is shipped as its recorded answers is what it says.
    recorded = resources.shipped_model().answers.read_text("utf-8").splitlines()
    assert [said_in(line) for line in lines] == [said_in(line) for line in recorded]


def said_in(line):
    result = json.loads(line)
    calls = [(call["name"], call["arguments"]) for call in result["tool_trace"]]
    return result["sample_id"], result["model_output"], calls


WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
sys.argv = ["callmark", "demo"]
from callmark.cli import main
sys.exit(main())
"""


@pytest.mark.slow
def test_without_torch_the_demo_says_so_and_replays(python):
    finished = python("-c", WITHOUT_TORCH)
    assert finished.returncode == 0, finished.stderr
    assert "pip install '.[hf]'" in finished.stderr
    assert "recorded answers" in finished.stderr
    assert finished.stdout.startswith("PASS  ")


@pytest.mark.slow
def test_the_commands_that_the_demo_suggests_work(callmark):
    suggested = [
        text.partition(": ")[0].split()[1:]
        for text in callmark("demo", "--replay").stdout.splitlines()
        if text.strip().startswith("callmark ")
    ]
    assert {words[0] for words in suggested} >= {"show", "init"}
    for words in suggested:
        assert callmark(*words).returncode == 0, words


@pytest.mark.parametrize("words", [[], ["--example"]], ids=["starter", "example"])
def test_f59_init_writes_once_and_what_it_writes_runs_and_passes(callmark, tmp_path, words):
    assert callmark("init", "mine", *words).returncode == 0
    again = callmark("init", "mine", "--bare")
    assert again.returncode == 2
    assert "mine/callmark.yaml: exists already" in again.stderr
    assert "data/eval.jsonl: already exists" in callmark("init", "mine", *words).stderr
    finished = callmark("run", cwd=tmp_path / "mine")
    assert finished.returncode == 0, finished.stderr
    assert read_report(tmp_path / "mine" / "runs" / "latest" / "report.json")["verdict"] == "pass"
    tools = [] if words else ["--registry", "data/tools.json"]
    verified = callmark(
        "verify", "data/eval.jsonl", "--fixtures", "data/fixtures", *tools, cwd=tmp_path / "mine"
    )
    assert verified.returncode == 0, verified.stdout


def test_init_writes_only_settings_where_that_is_asked_for(callmark, tmp_path):
    assert callmark("init", "--bare").returncode == 0
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["callmark.yaml"]
    assert not (tmp_path / "data").exists()


def test_a_good_model_passes_and_files_are_where_they_belong(callmark, world):
    finished = callmark(*world.arguments())
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert finished.stderr == ""
    assert (world.folder / "results.jsonl").exists()
    assert (world.folder / "report.json").exists()
    assert not (world.folder / "results.jsonl.journal").exists()
    deeper = callmark(*world.arguments("--out", "a/b/c.jsonl"))
    assert deeper.returncode == 0
    assert (world.folder / "a" / "b" / "report.json").exists()


@pytest.mark.parametrize(
    "changes",
    few(
        [
            {"model_output": "", "tool_trace": []},
            {"model_output": "I do not know."},
            {"model_output": "It has 1003 open issues."},
        ]
    ),
    ids=["silent", "constant", "constant_value"],
)
def test_a_model_that_says_nothing_or_always_the_same_fails(callmark, world, changes):
    answers_with(world, **changes)
    finished = callmark(*world.arguments())
    assert finished.returncode == 1, finished.stdout
    assert finished.stdout.startswith("FAIL  ")
    assert callmark(*world.arguments("--no-fail-on-gate-failure")).returncode == 0


@pytest.mark.parametrize(("size", "code"), [(14, 5), (15, 1)])
def test_a43_fifteen_samples_decide_and_fourteen_do_not(callmark, world, size, code):
    world.items = world.items[:size]
    world.write_dataset({})
    lines = [json.loads(line) for line in world.answers.read_text("utf-8").splitlines()[:size]]
    world.write(world.answers, [{**line, "model_output": "I do not know."} for line in lines])
    finished = callmark(*world.arguments())
    assert finished.returncode == code, finished.stdout


def test_a137_a_contaminated_control_fails_at_any_n_and_is_named(callmark, world):
    world.items.append(
        {"prompt": "hi", "metadata": {"sample_id": "hi-1", "expected_behaviour": "no_tool"}}
    )
    world.write_dataset({})
    call = {"name": "web.search", "arguments": {"q": "open issues of project 1"}}
    with world.answers.open("a") as file:
        answer = {"sample_id": "hi-1", "model_output": "Hi.", "tool_trace": [call]}
        file.write(json.dumps(answer) + "\n")
    finished = callmark(*world.arguments())
    assert finished.returncode == 1
    failed = unfolded(finished.stdout.partition("\nfailed\n")[2].partition("\n\n")[0])
    assert failed.startswith(f"{METRICS['controls_with_integration'].label}: 1, wanted ")
    assert failed.endswith("callmark show results.jsonl hi-1")


def test_a19_a_call_outside_the_allowlist_is_reported(callmark, world):
    (world.folder / "allowed.json").write_text('["read_file"]')
    finished = callmark(*world.arguments("--allowlist", "allowed.json"))
    assert finished.returncode == 1
    assert "no sample is ever offered it" in unfolded(finished.stdout)
    assert "tool_not_allowed" in callmark("show", "results.jsonl", "issues-00").stdout


def test_a41_seed_and_decoding_stand_in_results_and_report(callmark, world):
    callmark(*world.arguments("--seed", "7", "--temperature", "null", "--max-tokens", "99"))
    first = json.loads((world.folder / "results.jsonl").read_text("utf-8").splitlines()[0])
    header = read_report(world.folder / "report.json")["header"]
    for decoding in (first["decoding"], header["decoding"]):
        assert (decoding["seed"], decoding["temperature"], decoding["max_tokens"]) == (7, None, 99)
    assert header["seed"] == 7


def test_quiet_prints_one_line(callmark, world):
    assert callmark(*world.arguments("--quiet")).stdout.count("\n") == 1


def test_a_part_of_the_dataset_is_inconclusive(callmark, world):
    finished = callmark(*world.arguments("--only", "issues-03", "--only", "issues-04"))
    assert finished.returncode == 5, finished.stdout
    assert finished.stdout.startswith("INCONCLUSIVE")
    assert len((world.folder / "results.jsonl").read_bytes().splitlines()) == 2
    assert read_report(world.folder / "report.json")["partial"] is True


@pytest.mark.slow
def test_fail_on_inconclusive_asks_for_every_gate(callmark, world):
    world.items.append({"prompt": "hi", "metadata": {"expected_behaviour": "no_tool"}})
    world.write_dataset({})
    lines = world.answers.read_text("utf-8")
    hello = {"sample_id": sample_id_of(world.items[-1]), "model_output": "Hello."}
    world.answers.write_text(lines + json.dumps(hello) + "\n")
    assert callmark(*world.arguments()).returncode == 0
    assert callmark(*world.arguments("--fail-on-inconclusive")).returncode == 5


def test_dry_run_and_show_prompt_write_nothing(callmark, world):
    dry = callmark(*world.arguments("--dry-run"))
    assert json.loads(dry.stdout)["chosen"] == 20
    prompt = callmark(*world.arguments("--show-prompt", "issues-07"))
    shown = json.loads(prompt.stdout)
    assert shown["messages"][-1]["content"] == "How many issues does project 7 have?"
    assert len(shown["tools"]) == 6  # d39: all tools are offered, not only the expected ones
    assert not (world.folder / "results.jsonl").exists()
    assert not (world.folder / "report.json").exists()


def test_a1_two_runs_give_equal_bytes_whatever_the_environment(callmark, world):
    callmark(*world.arguments("--out", "a/results.jsonl"), PYTHONHASHSEED="1", TZ="Asia/Tokyo")
    callmark(*world.arguments("--out", "b/results.jsonl"), PYTHONHASHSEED="2", LANG="de_DE.UTF-8")
    one, two = (world.folder / name for name in "ab")
    assert (one / "results.jsonl").read_bytes() == (two / "results.jsonl").read_bytes()
    reports = [read_report(folder / "report.json") for folder in (one, two)]
    for report in reports:
        report.pop("timing")
    assert reports[0] == reports[1]


@pytest.mark.slow
def test_a46_shards_concatenate_to_the_whole(callmark, world):
    callmark(*world.arguments("--out", "whole/results.jsonl"))
    for index in range(3):
        shard = ("--num-shards", "3", "--shard-index", str(index))
        finished = callmark(*world.arguments(*shard, "--out", f"{index}/results.jsonl"))
        assert finished.returncode in (0, 5), finished.stderr
    parts = [(world.folder / str(index) / "results.jsonl").read_bytes() for index in range(3)]
    whole = (world.folder / "whole" / "results.jsonl").read_bytes()
    assert sorted(b"".join(parts).splitlines()) == sorted(whole.splitlines())
    (world.folder / "joined.jsonl").write_bytes(b"".join(parts))
    finished = callmark("score", "joined.jsonl", "--report", "joined.json")
    assert finished.returncode == 0, finished.stderr
    joined = read_report(world.folder / "joined.json")
    assert joined["summary"] == read_report(world.folder / "whole" / "report.json")["summary"]


@pytest.mark.slow
def test_num_shards_auto_reads_the_cluster(callmark, world):
    auto = world.arguments("--num-shards", "auto")
    finished = callmark(*auto, SLURM_ARRAY_TASK_ID="1", SLURM_ARRAY_TASK_COUNT="3")
    assert finished.returncode in (0, 5), finished.stderr
    header = read_report(world.folder / "report.shard_1.json")["header"]
    assert (header["num_shards"], header["shard_index"]) == (3, 1)
    assert callmark(*auto).returncode == 2


def test_a26_scoring_again_gives_the_same_numbers(callmark, world):
    callmark(*world.arguments())
    finished = callmark("score", "results.jsonl", "--out", "again.jsonl", "--report", "again.json")
    assert finished.returncode == 0, finished.stderr
    again, first = (read_report(world.folder / name) for name in ("again.json", "report.json"))
    assert again["metrics"] == first["metrics"]
    assert [gate["status"] for gate in again["gates"]] == [
        gate["status"] for gate in first["gates"]
    ]
    assert (world.folder / "again.jsonl").exists()


def test_score_takes_other_gates_and_leaves_the_files_of_a_run_alone(callmark, world):
    (world.folder / "callmark.yaml").write_text("out: results.jsonl\nreport: report.json\n")
    callmark(*world.arguments())
    before = (world.folder / "report.json").read_bytes()
    finished = callmark("score", "results.jsonl", "--gate", "grounding_lift=1", "--verbose")
    assert finished.returncode == 1
    assert METRICS["grounding_lift"].label in finished.stdout.partition("\n\n")[2]
    assert re.search(r"\bflag\b", finished.stdout)  # where the bound is from
    assert (world.folder / "report.json").read_bytes() == before


def test_score_reads_conversations(callmark, world):
    call = {"id": "1", "type": "function",
            "function": {"name": "count", "arguments": '{"what": "rows"}'}}  # fmt: skip
    messages = [
        {"role": "user", "content": "How many rows?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": '{"count": 417}'},
        {"role": "assistant", "content": "There are 417 rows."},
    ]
    world.write(world.folder / "chats.jsonl", [{"sample_id": "chat-1", "messages": messages}])
    finished = callmark("score", "chats.jsonl", "--out", "scored.jsonl", "--verbose")
    assert finished.returncode in (0, 5), finished.stderr  # nothing was expected
    assert "1 conversation, " in unfolded(finished.stdout)
    shown = callmark("show", "scored.jsonl", "chat-1")
    assert "[+There are 417 rows+]" in shown.stdout
    assert "/count" in shown.stdout


def test_show_finds_a_sample_or_names_near_ones(callmark, world):
    callmark(*world.arguments())
    finished = callmark("show", ".", "issues-07")
    assert finished.returncode == 0, finished.stderr
    assert "[+It has 1122 open issues+]." in finished.stdout
    other = callmark("show", "results.jsonl", "issue-07")
    assert other.returncode == 2
    assert "issues-07" in other.stderr
    trial = callmark("show", "results.jsonl", "issues-07", "--trial", "3")
    assert "has no trial 3; it has 0" in trial.stderr


def test_d6_misses_fail_the_run_and_become_lines_to_paste(callmark, world):
    fixtures = world.fixtures / "web.search.jsonl"
    lines = fixtures.read_text("utf-8").splitlines(keepends=True)
    fixtures.write_text("".join(lines[2:]), "utf-8")
    finished = callmark(*world.arguments())
    assert finished.returncode == 1, finished.stdout
    assert "nearest: " in unfolded(finished.stdout)
    assert "differs in q" in unfolded(finished.stdout)
    suggested = callmark("fixtures", "suggest", "results.jsonl", "--fixtures", world.fixtures)
    assert len(suggested.stdout.splitlines()) == 2
    entry = json.loads(suggested.stdout.splitlines()[0])
    assert entry["key"] == {"q": "open issues of project 0", "top_k": 3}
    (world.fixtures / "new.jsonl").write_text(suggested.stdout)
    assert "placeholder" in callmark(*world.arguments()).stderr


def test_a128_one_broken_fixture_of_ten_fails_the_check(callmark, world):
    fixtures = world.fixtures / "web.search.jsonl"
    ten = fixtures.read_text("utf-8").splitlines(keepends=True)[:10]
    fixtures.write_text("".join(ten), "utf-8")
    world.items = world.items[:10]
    world.write_dataset({})
    check = ("fixtures", "check", world.fixtures, "--in", world.dataset)
    assert callmark(*check).returncode == 0
    fixtures.write_text("".join(ten).replace("project 4", "projekt 4"), "utf-8")
    finished = callmark(*check)
    assert finished.returncode == 1
    assert "90.0%" in finished.stdout
    assert "sample issues-04" in finished.stdout
    fixtures.write_text("".join(ten)[:-5], "utf-8")
    assert callmark(*check).returncode == 2


def test_d38_a_run_leaves_its_inputs_alone(callmark, world):
    before = {path: path.read_bytes() for path in world.folder.rglob("*") if path.is_file()}
    callmark(*world.arguments("--out", "new/results.jsonl"))
    after = {path: path.read_bytes() for path in world.folder.rglob("*") if path.is_file()}
    [tools] = (world.folder / "new").glob("tools-*.json")
    written = {"results.jsonl", "report.json", "report.html", tools.name}
    assert {path.name for path in after.keys() - before.keys()} == written
    assert all(after[path] == data for path, data in before.items())


def test_doctor_is_content_or_says_what_is_wrong(callmark, world):
    assert callmark("doctor").returncode == 0
    own = callmark("doctor", "--in", world.dataset, "--fixtures", world.fixtures)
    assert own.returncode == 0, own.stdout
    assert "20 samples" in own.stdout
    world.write_dataset({"fixtures_sha256": "0" * 64})
    wrong = callmark("doctor", "--in", world.dataset, "--fixtures", world.fixtures)
    assert wrong.returncode == 1
    assert "WRONG dataset" in wrong.stdout


def test_standard_input_is_a_dataset_too(callmark, world):
    arguments = ["-" if word == str(world.dataset) else word for word in world.arguments()]
    finished = callmark(*arguments, stdin=world.dataset.read_text("utf-8"))
    assert finished.returncode == 0, finished.stderr
