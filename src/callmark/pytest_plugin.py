"""The pytest plugin: `@pytest.mark.callmark(…)` makes one test item of each gate.

It is loaded by every pytest of everybody who has callmark installed, so it imports nothing of
callmark before a test has the mark."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

if TYPE_CHECKING:
    from callmark.pytest_runs import MarkedRun

Value = TypeVar("Value")

MARK = "callmark"
PARAMETER = "callmark_gate"
_HELP = (
    "callmark(dataset, fixtures, answers or runner and model, config, gates, **settings): "
    "evaluate a model once; one test item for each gate"
)


class GateWarning(pytest.PytestWarning):
    """A gate that only warns is not kept."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _HELP)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    mark = metafunc.definition.get_closest_marker(MARK)
    if mark is None:
        return
    from callmark.pytest_runs import items_of

    if PARAMETER not in metafunc.fixturenames:
        metafunc.fixturenames.append(PARAMETER)
    names = _or_fail(lambda: items_of(mark))
    metafunc.parametrize(PARAMETER, names, ids=names, indirect=True)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Before the body of the test: what the gate of this item says."""
    mark = item.get_closest_marker(MARK)
    if mark is None:
        return
    callspec = getattr(item, "callspec", None)
    if callspec is None or PARAMETER not in callspec.params:
        pytest.fail("the callmark mark needs a plain test function or method", pytrace=False)
    from callmark.pytest_runs import ruling_of

    run = _run_of(item)
    ruling = ruling_of(_or_fail(run.report), callspec.params[PARAMETER], mark)
    match ruling.status:
        case "fail":
            pytest.fail(ruling.text, pytrace=False)
        case "skip":
            pytest.skip(ruling.text)
        case "warn":
            warnings.warn(GateWarning(ruling.text), stacklevel=1)


@pytest.fixture
def callmark_gate(request: pytest.FixtureRequest) -> str:
    """Which item of a marked test this is: `gate:NAME`, or `verdict`."""
    return str(getattr(request, "param", ""))


@pytest.fixture
def callmark_report(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The report of the run that the mark describes, as in report.json."""
    if request.node.get_closest_marker(MARK) is None:
        pytest.fail("callmark_report: the test has no callmark mark", pytrace=False)
    from callmark.records.jsontext import plain_object

    return plain_object(_or_fail(_run_of(request.node).report))


def _run_of(item: pytest.Item) -> MarkedRun:
    from callmark.pytest_runs import MarkedRun, shared_folder

    mark = item.get_closest_marker(MARK)
    assert mark is not None  # noqa: S101 - both callers have looked
    return _or_fail(lambda: MarkedRun(mark, item.config.rootpath, shared_folder(item.config)))


def _or_fail(compute: Callable[[], Value]) -> Value:
    """What is wrong with a mark or with its files is a sentence, not a traceback."""
    from callmark.errors import CallmarkError

    try:
        return compute()
    except CallmarkError as error:
        said = str(error)
    pytest.fail(f"callmark: {said}", pytrace=False)  # out here: one exception, one sentence
