"""The engine `ray`: a cluster of two nodes on this machine, one of which is killed at work."""

import json
import signal
import threading
from pathlib import Path

import pytest
from tests.engines import install_slow_runner
from tests.integration.test_engine_local import (
    journal_lines,
    start,
    wait_until,
    whole,
    without_timing,
)

from callmark.errors import Incomplete
from callmark.run.conclude import run

ray = pytest.importorskip("ray")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def slow(large_project, tmp_path, monkeypatch):
    install_slow_runner(tmp_path / "plugin", monkeypatch)
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    # Ray looks for an address that others can reach; these tests stay on the loopback.
    monkeypatch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    monkeypatch.setattr(ray._private.ray_constants, "ENABLE_RAY_CLUSTER", False)
    return large_project


@pytest.fixture
def cluster(slow, tmp_path, monkeypatch):
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("SLOW_LOG", str(tmp_path / "answered.log"))
    monkeypatch.setenv("SLOW_SECONDS", "0.2")
    nodes = {"num_cpus": 1, "include_dashboard": False, "node_ip_address": "127.0.0.1"}
    made = Cluster(initialize_head=True, head_node_args=nodes)
    made.second = made.add_node(num_cpus=1, node_ip_address="127.0.0.1")
    monkeypatch.setenv("RAY_ADDRESS", made.address)
    yield made
    made.shutdown()


def on_ray(project, **settings):
    return run(project.config(engine="ray", num_shards=4, runner="slow", **settings))


def test_a_lost_node_costs_only_its_unfinished_samples(cluster, slow, tmp_path, monkeypatch):
    seen_before: list[tuple[str, int]] = []

    def kill_one_node():
        wait_until(lambda: len(journal_lines(slow)) > 8, 120)
        cluster.remove_node(cluster.second, allow_graceful=False)
        seen_before.extend(journal_lines(slow))

    killer = threading.Thread(target=kill_one_node)
    killer.start()
    on_ray(slow)
    killer.join()
    answered = (tmp_path / "answered.log").read_text().splitlines()
    times = {name: answered.count(name) for name in set(answered)}
    twice = {name for name, count in times.items() if count > 1}
    assert not twice & {f"{sample} {trial}" for sample, trial in seen_before}
    assert 60 <= len(answered) < 80
    monkeypatch.setenv("SLOW_SECONDS", "0")
    expected = whole(slow, runner="slow")
    assert slow.out.read_bytes() == expected
    assert without_timing(slow.report) == without_timing(slow.folder / "whole.json")
    assert not Path(f"{slow.out}.journal").exists()


def test_a_cluster_that_is_not_there_is_said_at_once(slow, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with pytest.raises(Incomplete, match=r"no connection to 127.0.0.1:1: .*refused; start"):
        on_ray(slow)
    assert not Path(f"{slow.out}.journal").exists()


def test_ctrl_c_ends_the_run_and_keeps_what_is_finished(slow, monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("SLOW_SECONDS", "0.2")
    child = start(slow, engine="ray", runner="slow", num_shards=2)
    wait_until(lambda: len(journal_lines(slow)) > 5, 120)
    child.send_signal(signal.SIGINT)
    _, error = child.communicate(timeout=60)
    assert child.returncode == 130, error
    assert b"Traceback" not in error
    report = json.loads(slow.report.read_text("utf-8"))
    assert not report["complete"]
    assert report["counts"]["trials"] == len(journal_lines(slow)) < 60


def test_a_cluster_for_the_run_alone_and_resumed_by_processes(slow, monkeypatch):
    """Started and ended by the run; who resumes it may be another engine."""
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("SLOW_DEADLY", "s030")
    with pytest.raises(Incomplete, match=r"shard \d of 4: 3 times in a row"):
        on_ray(slow)
    assert not ray.is_initialized()
    assert not json.loads(slow.report.read_text("utf-8"))["complete"]
    finished = journal_lines(slow)
    assert len(finished) > 10
    monkeypatch.delenv("SLOW_DEADLY")
    expected = whole(slow, runner="slow")
    config = slow.config(engine="local", num_shards=2, runner="slow", resume=True)
    run(config)
    assert slow.out.read_bytes() == expected
