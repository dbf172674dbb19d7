"""The pytest plugin, in a pytest of its own: gates are test items, a run is made once."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy  # noqa: F401 - pytester forgets what is imported inside; numpy bears only one import
import pytest

import callmark.pytest_plugin
import callmark.run.conclude  # noqa: F401 - costs much, once is enough

pytest_plugins = ["pytester"]
SOURCE = str(Path(__file__).parents[2] / "src")
PLUGIN = ("-p", "no:cacheprovider", "-p", "callmark.pytest_plugin")

SUITE = """
import pytest

@pytest.mark.callmark(dataset="dataset.jsonl", fixtures="fixtures", answers="answers.jsonl"{more})
def test_model():
    pass
"""


def count_of(number: int) -> int:
    return 1003 + 17 * number


@pytest.fixture
def folder(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Twenty samples with their fixtures, and the answers of a good model."""
    monkeypatch.setenv("PYTHONPATH", SOURCE)
    items, fixtures, answers = [{"__header__": True, "dataset_version": "test"}], [], []
    for number in range(20):
        call = {"name": "web.search", "arguments": {"q": f"issues of project {number}"}}
        name = f"issues-{number:02}"
        items.append(
            {
                "prompt": f"How many issues does project {number} have?",
                "metadata": {
                    "sample_id": name,
                    "call_sequence": [call],
                    "required_facts": [count_of(number)],
                },
            }
        )
        result = {"ok": True, "count": count_of(number)}
        fixtures.append({"name": "web.search", "key": call["arguments"], "result": result})
        text = f"It has {count_of(number)} open issues."
        answers.append({"sample_id": name, "model_output": text, "tool_trace": [call]})
    pytester.mkdir("fixtures")
    for path, lines in (
        ("dataset.jsonl", items),
        ("fixtures/web.search.jsonl", fixtures),
        ("answers.jsonl", answers),
    ):
        (pytester.path / path).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return pytester.path


def leak(folder: Path) -> None:
    """The model tells a card number in one answer."""
    answers = folder / "answers.jsonl"
    answers.write_text(answers.read_text().replace("It has 1003", "4111 1111 1111 1111: 1003", 1))


def outcomes(pytester: pytest.Pytester, *words: str) -> dict[str, str]:
    """Item -> what became of it."""
    start = pytester.runpytest_subprocess if words else pytester.runpytest_inprocess
    finished = start(*PLUGIN, "-rA", "-W", "default", *words)
    found = {}
    for text in finished.outlines:
        status, _, rest = text.partition(" ")
        if status in ("PASSED", "FAILED", "ERROR") and "::" in rest:
            found[rest.partition("::")[2].partition(" - ")[0]] = status
    found["skipped"] = finished.parseoutcomes().get("skipped", 0)
    found["text"] = finished.stdout.str() + finished.stderr.str()
    return found


def test_one_item_for_each_gate_named_by_it(folder: Path, pytester: pytest.Pytester):
    pytester.makepyfile(SUITE.format(more=""))
    listed = pytester.runpytest_inprocess(*PLUGIN, "--collect-only", "-q").outlines
    assert sum("::test_model[gate:" in line for line in listed) == 27
    assert any(line.endswith("::test_model[gate:privacy_ok_rate]") for line in listed)
    assert any(line.endswith("::test_model[verdict]") for line in listed)


def test_gates_pass_are_skipped_or_fail_each_for_itself(folder: Path, pytester: pytest.Pytester):
    pytester.makepyfile(SUITE.format(more=""))
    good = outcomes(pytester)
    assert good["test_model[gate:integration_coverage]"] == "PASSED"
    assert good["test_model[verdict]"] == "PASSED"
    assert good["skipped"] > 5
    assert "n/a: the dataset has no such sample" in good["text"]
    assert "FAILED" not in good.values()
    leak(folder)
    bad = outcomes(pytester)
    assert [name for name, status in bad.items() if status == "FAILED"] == [
        "test_model[gate:privacy_ok_rate]",
        "test_model[verdict]",
    ]
    assert "privacy (privacy_ok_rate): 0.950, wanted exactly 1" in bad["text"]
    assert "  issues-00" in bad["text"]


def test_a_measure_of_a_plug_in_is_an_item(folder: Path, pytester: pytest.Pytester):
    (folder / "brief.py").write_text(
        "import callmark\n\n@callmark.scorer(measures={'words': 'lower'})\n"
        "def brief(sample, trace):\n    return len(trace.model_output.split())\n"
    )
    pytester.makepyfile(SUITE.format(more=", plugins='brief.py', gates={'brief.words': 5}"))
    found = outcomes(pytester)
    assert found["test_model[gate:brief.words]"] == "PASSED"
    pytester.makepyfile(SUITE.format(more=", plugins=['brief.py'], gates={'brief.words': 4}"))
    found = outcomes(pytester)
    assert found["test_model[gate:brief.words]"] == "FAILED"
    assert "brief.words: 5.000, wanted at most 4" in found["text"]
    pytester.makepyfile(SUITE.format(more=", plugins='brief.py', gates=['brief.words']"))
    assert "nothing is asked of 'brief.words': give it a bound" in outcomes(pytester)["text"]


def test_open_gates_are_skipped_with_their_reason(folder: Path, pytester: pytest.Pytester):
    pytester.makepyfile(SUITE.format(more=", limit=4"))
    found = outcomes(pytester)
    assert found.pop("test_model[verdict]") == "FAILED"
    assert not {"PASSED", "FAILED"} & set(map(str, found.values()))
    assert (
        "inconclusive: answers with a claim to check (integration_coverage): 1.000" in found["text"]
    )


def test_f16_fourteen_empty_answers_fail(folder: Path, pytester: pytest.Pytester):
    pytester.makepyfile(SUITE.format(more=", limit=14"))
    answers = folder / "answers.jsonl"
    lines = map(json.loads, answers.read_text().splitlines())
    silent = [{"sample_id": line["sample_id"], "model_output": ""} for line in lines]
    answers.write_text("".join(json.dumps(line) + "\n" for line in silent))
    result = pytester.runpytest_inprocess("-rA")
    assert result.ret == 1
    counts = result.parseoutcomes()
    assert (counts["failed"], counts.get("passed", 0)) == (1, 0)
    assert counts["skipped"] > 20
    assert "inconclusive: " in result.stdout.str()


def test_f16_chosen_gates_that_nothing_could_judge_fail(folder: Path, pytester: pytest.Pytester):
    pytester.makepyfile(SUITE.format(more=", limit=4, gates=['call_f1_macro']"))
    found = outcomes(pytester)
    assert found["skipped"] == 1
    assert found["test_model[verdict]"] == "FAILED"
    assert "none of the chosen gates could be judged" in found["text"]


def test_a_gate_that_only_warns_warns(folder: Path, pytester: pytest.Pytester):
    more = ", gates={'integration_coverage': {'policy': 'warning_only'}}"
    pytester.makepyfile(SUITE.format(more=more))
    answers = folder / "answers.jsonl"
    lines = answers.read_text().splitlines()
    silent = [json.dumps({**json.loads(line), "model_output": "I do not know."}) for line in lines]
    answers.write_text("\n".join([*silent[:3], *lines[3:]]) + "\n")
    found = outcomes(pytester)
    assert found["test_model[gate:integration_coverage]"] == "PASSED"
    assert "(integration_coverage): 0.850, wanted at least 0.95" in found["text"]


def test_chosen_gates_and_other_bounds(folder: Path, pytester: pytest.Pytester):
    pytester.makepyfile(SUITE.format(more=", gates=['privacy_ok_rate', 'call_f1_macro']"))
    found = outcomes(pytester)
    assert {name for name in found if "::" not in name and "[" in name and name != "text"} == {
        "test_model[gate:privacy_ok_rate]",
        "test_model[gate:call_f1_macro]",
        "test_model[verdict]",
    }


def counting_runner(folder: Path) -> None:
    """A runner of another package that writes down when it is opened."""
    (folder / "counted.py").write_text(
        "from pathlib import Path\n"
        "from callmark.runners.replay import open_replay\n"
        "def open_counted(options):\n"
        "    with Path('opened.txt').open('a') as stream:\n"
        "        stream.write('opened\\n')\n"
        "    return open_replay(options)\n"
    )
    info = folder / "counted-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: counted\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[callmark.runners]\ncounted = counted:open_counted\n")


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["0", "2"])
def test_one_run_for_all_items_of_all_workers(
    workers: str, folder: Path, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
):
    counting_runner(folder)
    monkeypatch.setenv("PYTHONPATH", f"{folder}:{SOURCE}")
    pytester.makepyfile(
        """
        import pytest

        evaluated = pytest.mark.callmark(
            dataset="dataset.jsonl", fixtures="fixtures", runner="counted", model="answers.jsonl"
        )

        @evaluated
        def test_model():
            pass

        @evaluated
        class TestAgain:
            def test_counts(self, callmark_report, callmark_gate):
                assert callmark_report["counts"]["samples"] == 20
                assert callmark_gate == "verdict" or callmark_gate.startswith("gate:")
        """
    )
    found = outcomes(pytester, "-n", workers)
    assert found["test_model[gate:privacy_ok_rate]"] == "PASSED"
    assert found["TestAgain::test_counts[verdict]"] == "PASSED"
    assert "FAILED" not in found.values()
    assert (folder / "opened.txt").read_text().count("opened") == 1


def test_the_body_is_run_too(folder: Path, pytester: pytest.Pytester):
    pytester.makepyfile(
        SUITE.format(more=", gates=['privacy_ok_rate']").replace(
            "def test_model():\n    pass",
            "def test_model(callmark_report):\n    assert callmark_report['verdict'] == 'fail'",
        )
    )
    assert outcomes(pytester)["test_model[gate:privacy_ok_rate]"] == "FAILED"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (", datasets='x'", "unknown key"),
        (", gates=['no_such_gate']", "there is no gate 'no_such_gate'"),
        (", runner='replay'", "answers: are replayed"),
        (", out='x'", "out: has no place in a mark"),
        (", gates={'no_such_gate': 1}", "no_such_gate"),
        (", registry='missing.json'", "missing.json"),
    ],
)
def test_a_wrong_mark_never_passes_and_says_why(
    more: str, message: str, folder: Path, pytester: pytest.Pytester
):
    pytester.makepyfile(SUITE.format(more=more))
    found = outcomes(pytester)
    assert "PASSED" not in found.values()
    assert message in found["text"]
    assert "Traceback" not in found["text"]


def test_a_mark_on_a_unittest_is_refused_not_ignored(folder: Path, pytester: pytest.Pytester):
    pytester.makepyfile(
        """
        import unittest, pytest

        @pytest.mark.callmark(dataset="x")
        class TestOld(unittest.TestCase):
            def test_it(self):
                pass
        """
    )
    assert "FAILED" in outcomes(pytester).values()


def test_the_report_needs_a_mark(folder: Path, pytester: pytest.Pytester):
    pytester.makepyfile("def test_it(callmark_report):\n    pass\n")
    assert "callmark_report: the test has no callmark mark" in outcomes(pytester)["text"]


def test_pytest_finds_it_where_callmark_is_installed():
    """Under the name that -p takes, so that naming it does not load it a second time."""
    project = tomllib.loads((Path(SOURCE).parent / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {PLUGIN[-1]: PLUGIN[-1]}


def test_importing_the_plugin_imports_nothing_else():
    """It is loaded in every pytest wherever callmark is installed."""
    code = (
        "import sys, pytest; before = set(sys.modules); import callmark.pytest_plugin;"
        "print(sorted(set(sys.modules) - before))"
    )
    finished = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": SOURCE},
    )
    assert finished.stdout.strip() == "['callmark', 'callmark._version', 'callmark.pytest_plugin']"
