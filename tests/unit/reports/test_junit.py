"""JUnit: what CI systems read. Two readers that are not ours take it, whatever a model wrote."""

import io
import re
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from junitparser import Error, Failure, JUnitXml, Skipped
from lxml import etree
from tests.builders import make_result, numbered
from tests.hostile import HOSTILE
from tests.unit.reports.finished_runs import finished, hostile_result, mixed, report_of

from callmark.reports.finished_run import LISTED_TRIALS, FinishedRun
from callmark.reports.junit import write_junit

# What the schemas of Jenkins (junit-10) and Surefire (3.0) both allow: element -> its attributes
# (those that must be there first) and the elements in it.
RULES: dict[str, tuple[set[str], set[str], set[str]]] = {
    "testsuites": (set(), {"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors", "skipped"},
        {"time", "hostname", "id", "package", "timestamp"},
        {"properties", "testcase", "system-out", "system-err"},
    ),
    "testcase": (
        {"name", "classname", "time"},
        {"group"},
        {"skipped", "failure", "error", "system-out", "system-err"},
    ),
    "failure": ({"type"}, {"message"}, set()),
    "error": ({"type"}, {"message"}, set()),
    "skipped": (set(), {"message", "type"}, set()),
    "system-out": (set(), set(), set()),
}


def written(run: FinishedRun) -> bytes:
    stream = io.BytesIO()
    write_junit(run, stream)
    return stream.getvalue()


def read(data: bytes) -> JUnitXml:
    return JUnitXml.fromstring(data)


def cases(data: bytes) -> dict[str, object]:
    """Name -> the kind of what happened, None: passed."""
    return {
        case.name: type(case.result[0]) if case.result else None
        for suite in read(data)
        for case in suite
    }


def check_schema(data: bytes) -> None:
    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False)
    for element in etree.fromstring(data, parser).iter():
        required, optional, children = RULES[element.tag]
        assert required <= set(element.attrib) <= required | optional, element.tag
        assert {child.tag for child in element} <= children, element.tag
        if element.tag == "testsuite":
            check_counts(element)
            tags = [child.tag for child in element]
            assert tags == sorted(tags, key=["testcase", "system-out"].index)


def check_counts(suite: etree._Element) -> None:
    found = suite.findall("testcase")
    assert int(suite.get("tests")) == len(found)
    for counted, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        assert int(suite.get(counted)) == sum(case.find(tag) is not None for case in found)


def test_a_case_for_each_gate_and_each_failing_sample(tmp_path: Path):
    run = finished(tmp_path, mixed())
    data = written(run)
    found = cases(data)
    statuses = {gate.name: gate.status for gate in run.gates}
    expected = {
        "pass": None,
        "warn": None,
        "fail": Failure,
        "inconclusive": Skipped,
        "n/a": Skipped,
    }
    assert {name: found[name] for name in statuses} == {
        name: expected[status] for name, status in statuses.items()
    }
    assert statuses["privacy_ok_rate"] == "fail"
    assert "n/a" in statuses.values()
    assert (found["s30"], found["s31"], found["s32"]) == (Failure, Failure, Error)
    assert "s0" not in found
    assert found["verdict"] is not None
    check_schema(data)


def test_the_reason_says_which_verdict_failed(tmp_path: Path):
    root = etree.fromstring(written(finished(tmp_path, mixed())))
    said = {case.get("name"): case[0].get("message") for case in root.iter("testcase") if len(case)}
    assert said["s30"] == "privacy"
    assert said["s31"] == "a control with a call or an integration"
    assert said["s32"] == "not scored: timeout"
    assert said["privacy_ok_rate"].startswith("privacy (privacy_ok_rate): ")
    assert "wanted exactly 1. Share of samples without personal data" in said["privacy_ok_rate"]


def test_open_gates_are_skipped_or_errors_and_never_passed(tmp_path: Path):
    few = numbered(make_result() for _ in range(3))
    assert cases(written(finished(tmp_path, few)))["integration_coverage"] is Skipped
    strict = finished(tmp_path, few, fail_on_inconclusive=True)
    assert cases(written(strict))["integration_coverage"] is Error
    assert cases(written(strict))["verdict"] is Error
    assert cases(written(strict))["clarify_ok_rate"] is Skipped  # n/a: nothing could be judged


def test_a_warning_passes_and_says_so(tmp_path: Path):
    results = numbered(make_result(strict=0.1) for _ in range(20))
    root = etree.fromstring(written(finished(tmp_path, results)))
    cases_ = {one.get("name"): one for one in root.iter("testcase")}
    case = cases_["integration_f1_macro_strict"]
    assert [child.tag for child in case] == ["system-out"]
    said = "warning: answers built on key fields (integration_f1_macro_strict): 0.100, wanted"
    assert case[0].text.startswith(said)


def test_f24_a_sample_that_only_a_warning_is_about_is_no_case(tmp_path: Path):
    results = numbered(make_result(recovered=False, strict=0.0) for _ in range(20))
    run = finished(tmp_path, results)
    for one in (run, FinishedRun(report=run.report)):
        assert not {name for name in cases(written(one)) if name.startswith("s")}


def test_f2_a_verdict_that_is_open_is_no_green_file(tmp_path: Path):
    controls = numbered(make_result(kind="control") for _ in range(20))
    run = finished(tmp_path, controls)
    assert run.report.verdict == "inconclusive"
    assert cases(written(run))["verdict"] is Error
    header = msgspec.structs.replace(run.report.header, num_shards=2)
    shard = msgspec.structs.replace(run.report, header=header)
    assert cases(written(FinishedRun(report=shard)))["verdict"] is Skipped  # judged after the merge


def test_an_unfinished_or_empty_run_is_no_green_file(tmp_path: Path):
    run = finished(tmp_path, numbered(make_result() for _ in range(20)))
    for verdict in ("incomplete", "empty"):
        report = msgspec.structs.replace(run.report, verdict=verdict, complete=False)
        assert cases(written(FinishedRun(report=report)))["verdict"] is Error


def test_without_trials_the_samples_behind_each_gate_are_named():
    found = cases(written(FinishedRun(report=report_of(mixed()))))
    assert (found["s30"], found["s31"], found["s32"]) == (Failure, Failure, Error)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_parses_with_two_readers(text: str, tmp_path: Path):
    results = [make_result(0, sample_id="good"), hostile_result(text, 1)]
    data = written(finished(tmp_path, results))
    assert re.fullmatch(r"[\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]*", data.decode())
    check_schema(data)
    samples = [suite for suite in read(data) if suite.name == "callmark.samples"]
    assert [len(suite) for suite in samples] == [1]
    assert len(data) < 60_000


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_is_one_case(text: str):
    report = report_of([hostile_result(text)])
    data = written(FinishedRun(report=report))
    check_schema(data)
    assert sum(suite.tests for suite in read(data)) == 1 + len(FinishedRun(report=report).gates) + 1


def many(count: int) -> Iterator[bytes]:
    line = msgspec.json.encode(make_result(f1=0.0))
    for index in range(count):
        yield line.replace(b'"s0"', b'"s%d"' % index) + b"\n"


@pytest.mark.slow
def test_a_hundred_thousand_failing_samples_are_listed_in_part_and_counted(tmp_path: Path):
    """A tenth of it here: what is kept does not grow with the number of trials."""
    path = tmp_path / "results.jsonl"
    with path.open("wb") as stream:
        stream.writelines(many(10_000))
    run = FinishedRun(report=report_of([make_result(f1=0.0)]), results=path)
    tracemalloc.start()
    try:
        data = written(run)
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
    finally:
        tracemalloc.stop()
    check_schema(data)
    [samples] = [suite for suite in read(data) if suite.name == "callmark.samples"]
    assert samples.tests == LISTED_TRIALS
    assert b"9000 more trials failed and are not listed here" in data


def test_equal_runs_give_equal_bytes(tmp_path: Path):
    assert written(finished(tmp_path, mixed())) == written(finished(tmp_path, mixed()))
