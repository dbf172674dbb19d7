"""Engines with models that are really asked: one behind a server, and the shipped one."""

import json
import re

import pytest
from tests.endpoints import Server, city_model
from tests.integration.served import served, short_waits
from tests.integration.test_engine_local import local, whole, without_timing

from callmark.errors import FingerprintMismatch
from callmark.records.samples import shard_of
from callmark.resources import shipped_model
from callmark.run.conclude import run

__all__ = ["short_waits"]


@pytest.mark.slow
def test_a_served_model_gives_the_bytes_and_the_report_of_one_process(project):
    with Server(city_model) as server:
        expected = whole(project, **served(server))
        local(project, 3, **served(server))
    assert project.out.read_bytes() == expected
    assert without_timing(project.report) == without_timing(project.folder / "whole.json")


def answers_of_two_servers(request):
    """Behind one address; which of them answers depends on the shard."""
    answer = city_model(request)
    number = re.findall(r"city (\d+)", json.dumps(request.messages))[0]
    answer.body["system_fingerprint"] = f"fp{shard_of(f's{int(number):03}', 2)}"
    return answer


@pytest.mark.slow
def test_shards_that_two_servers_answered_are_refused_before_anything_is_written(project):
    """In determinism mode; else results would stand there without a report that is theirs."""
    with Server(answers_of_two_servers) as server:
        with pytest.raises(FingerprintMismatch, match="do not agree in system_fingerprint"):
            local(project, 2, determinism_mode=True, **served(server))
        assert not project.out.exists()
        local(project, 2, restart=True, **served(server))
    warnings = json.loads(project.report.read_text("utf-8"))["warnings"]
    assert any("system_fingerprint" in warning for warning in warnings)


@pytest.mark.slow
def test_the_shipped_model_gives_the_bytes_and_the_report_of_one_process(tmp_path):
    pytest.importorskip("torch")
    paths = shipped_model()
    config = {
        "dataset": str(paths.dataset),
        "fixtures": str(paths.fixtures),
        "model": str(paths.folder),
        "runner": "hf_local",
        "max_tokens": 64,
        "limit": 12,
    }
    for name, how in (("whole", {}), ("parts", {"engine": "local", "num_shards": 2})):
        files = {"out": str(tmp_path / f"{name}.jsonl"), "report": str(tmp_path / f"{name}.json")}
        run({**config, **files, **how})
    assert (tmp_path / "parts.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert without_timing(tmp_path / "parts.json") == without_timing(tmp_path / "whole.json")
