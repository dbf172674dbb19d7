"""The shipped adapters: one keeps the calls, one damages them, one loses a few, and the probe says
which is which; an adapter of zeros is no adapter."""

import json
import shutil
from pathlib import Path

import pytest

from callmark.cli import main

TINY = Path(__file__).parents[2] / "src" / "callmark" / "data" / "tiny"


@pytest.fixture
def probe(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.chdir(tmp_path)

    def call(adapter, *more):
        words = ["probe", "--base", TINY / "model", "--adapter", adapter, "--json", "probe.json"]
        code = main([*map(str, words), *map(str, more or ["--cases", TINY / "cases.jsonl"])])
        return code, json.loads(Path("probe.json").read_text("utf-8")), capfd.readouterr().out

    return call


@pytest.mark.slow
def test_f21_the_good_one_shows_no_drop_with_equal_bytes_on_repeat(probe):
    cases = ["--cases", TINY / "cases.jsonl"]
    code, report, shown = probe(TINY / "adapters" / "keeps", *cases)
    assert code == 0
    assert shown.startswith("NO DROP SEEN")
    assert "a drop of up to 10.1% is not ruled out" in shown
    assert report["results"][0]["result"]["evidence"]["num_cases"] == 24
    assert len(report["nulls"]["calibrations"][0]["ranks"][0]["rates"]) == 5
    _, again, _ = probe(TINY / "adapters" / "keeps", *cases, "--no-cache")
    assert again.pop("timing")["nulls_from_cache"] == report.pop("timing")["nulls_from_cache"] == 0
    assert json.dumps(again) == json.dumps(report)


@pytest.mark.slow
def test_f21_three_cases_are_inconclusive_and_power_can_be_asked_for(probe, tmp_path):
    few = tmp_path / "few.jsonl"
    lines = (TINY / "cases.jsonl").read_text("utf-8").splitlines(keepends=True)
    few.write_text("".join(lines[:3]), "utf-8")
    code, report, shown = probe(TINY / "adapters" / "keeps", "--cases", few, "--nulls", 0)
    assert (code, report["exit_code"]) == (5, 5)
    assert shown.startswith("INCONCLUSIVE")
    assert "fewer than 20 cases cannot say that nothing was lost" in shown
    all_cases = ["--cases", TINY / "cases.jsonl", "--nulls", 0, "--require-power"]
    code, report, _ = probe(TINY / "adapters" / "keeps", *all_cases)
    assert (code, report["exit_code"]) == (5, 5)


@pytest.mark.parametrize("flag", ["--base", "--checkpoints"])
def test_f20_two_models_in_one_place_are_an_error(flag, capsys):
    """Several --adapter are a series; of everything else one is meant."""
    words = ["--base", TINY / "model", "--checkpoints", TINY / "adapters"]
    words += [flag, TINY / "adapters" / "keeps", "--cases", TINY / "cases.jsonl"]
    assert main(["probe", *map(str, words)]) == 2
    assert f"{flag}: given more than once" in capsys.readouterr().err


@pytest.mark.slow
def test_the_damaging_one_is_a_regression_by_the_signals_it_was_made_for(probe, capfd):
    """Code is called with arguments that never close, files by a tool that does not exist."""
    code, report, shown = probe(TINY / "adapters" / "damages")
    assert code == 1
    assert shown.startswith("REGRESSION")
    result = report["results"][0]["result"]
    assert (result["decision"], result["hallucination_ok"]) == ("regression", False)
    lost = [case for case in result["evidence"]["cases"] if not case["tuned"]["valid"]]
    assert {case["gold_tool_name"] for case in lost} == {"code_exec"}
    wrong = [case for case in result["evidence"]["cases"] if case["hallucinated"]]
    assert {case["tuned"]["call"]["name"] for case in wrong} == {"file_reader"}
    assert main(["show", "probe.json"]) == main(["show", "probe.json", "5"]) == 0
    listed = capfd.readouterr().out
    assert " wrong tool  read_file      calls file_reader " in listed
    assert "case 5  wrong tool after the fine-tune: file_reader" in listed


@pytest.mark.slow
def test_the_one_that_loses_a_few_is_inconclusive(probe):
    code, report, shown = probe(TINY / "adapters" / "loses")
    assert code == 5
    assert shown.startswith("INCONCLUSIVE")
    result = report["results"][0]["result"]
    assert 2 <= result["evidence"]["num_lost"] <= 4
    assert result["verdict"] == "fail"


def test_an_adapter_of_zeros_is_an_error(probe, tmp_path):
    from safetensors.torch import load_file, save_file

    folder = Path(shutil.copytree(TINY / "adapters" / "keeps", tmp_path / "zeros"))
    weights = folder / "adapter_model.safetensors"
    save_file({name: one * 0 for name, one in load_file(weights).items()}, weights)
    code, report, shown = probe(folder)
    assert code == 1
    assert shown.startswith("ERROR  the adapter is not applied")
    assert report["results"][0]["result"]["verdict"] == "error"


@pytest.mark.slow
def test_with_the_dataset_the_damage_is_found_by_tool(probe):
    dataset = ["--dataset", TINY / "dataset.jsonl", "--fixtures", TINY.parent / "fixtures"]
    code, report, _ = probe(TINY / "adapters" / "damages", *dataset, "--nulls", 1)
    assert code == 1
    comparison = report["comparison"]
    assert comparison["decision"] == "regression"
    changes = {
        tool: next(one["difference"] for one in metrics if one["metric"] == "valid_call_rate")
        for tool, metrics in comparison["by_tool"].items()
    }
    assert changes["code_exec"] < -0.9
    assert changes["read_file"] < -0.9
    assert changes["web.search"] > -0.5


@pytest.mark.slow
def test_with_cases_enough_the_good_one_shows_that_it_lost_nothing(probe):
    dataset = ["--dataset", TINY / "dataset.jsonl", "--fixtures", TINY.parent / "fixtures"]
    code, report, shown = probe(TINY / "adapters" / "keeps", *dataset, "--nulls", 1)
    assert code == 5  # of the comparison of whole answers, which 179 samples leave open
    assert shown.startswith("NO REGRESSION  valid calls: 72 of 72 before the fine-tune, 72 after")
    assert report["results"][0]["result"]["evidence"]["num_cases"] == 72
