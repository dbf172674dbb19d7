"""What a marked test asks for: its items, one run for all of them, and what each of them says."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Literal, assert_never

import msgspec
import pytest

from callmark.errors import CallmarkError, UsageError
from callmark.records.jsontext import Json, digest
from callmark.records.report import GateOutcome, Report
from callmark.resources import default_gates
from callmark.summary.gates import GATES, is_measure

VERDICT = "verdict"
RESULTS, REPORT = "results.jsonl", "report.json"
_GATE = "gate:"
_PATHS = ("dataset", "fixtures", "registry", "allowlist", "prompt_wrapper", "config")
_PATHS_OR_NAMES = ("model", "adapter")
_WRITTEN = ("out", "report", "resume", "restart", "dry_run", "baseline")


class GateRuling(msgspec.Struct, frozen=True):
    status: Literal["pass", "warn", "skip", "fail"]
    text: str


def items_of(mark: pytest.Mark) -> list[str]:
    """One for each gate and one for the verdict; known without a run, and the same everywhere.
    `gates` as a list of names: only those, and the verdict on them."""
    known = [name for name in default_gates() if not GATES[name].of_dataset]
    given = mark.kwargs.get("gates", {})
    if not isinstance(given, list | tuple | dict):
        raise UsageError("gates: must be a list of names, or an object {gate: bound}")
    for name in given:
        if name not in known and not is_measure(str(name)):
            raise UsageError(f"gates: there is no gate {name!r}; there is: {', '.join(known)}")
    if isinstance(given, dict):
        return [*(f"{_GATE}{name}" for name in dict.fromkeys((*known, *given))), VERDICT]
    return [*(f"{_GATE}{name}" for name in dict.fromkeys(given)), VERDICT]


def ruling_of(report: Report, item: str, mark: pytest.Mark) -> GateRuling:
    """What one item says about a run. A run that is not whole has not passed anything."""
    if report.verdict in ("incomplete", "empty"):
        return GateRuling("fail", f"the run is {report.verdict}: {report.verdict_reason}")
    budget = report.timing.perf_budget
    outcomes = {gate.name: gate for gate in (*report.gates, *([budget] if budget else []))}
    for name in mark.kwargs.get("gates", {}):
        if name not in outcomes:
            raise UsageError(f"gates: nothing is asked of {name!r}: give it a bound")
    if item != VERDICT:
        return _of_gate(outcomes[item.removeprefix(_GATE)], report)
    chosen = mark.kwargs.get("gates", {})
    if isinstance(chosen, dict):
        return _of_verdict(report)
    return _of_chosen([outcomes[name] for name in dict.fromkeys(chosen)])


def _of_verdict(report: Report) -> GateRuling:
    """Items that were skipped fail nothing: this one does, unless the run has passed."""
    if report.verdict == "pass":
        return GateRuling("pass", report.verdict_reason)
    return GateRuling("fail", f"{report.verdict}: {report.verdict_reason}")


def _of_chosen(gates: Sequence[GateOutcome]) -> GateRuling:
    """Whoever names gates is told only of these; but of one at least."""
    failed = [gate.name for gate in gates if gate.status == "fail"]
    judged = [gate.name for gate in gates if gate.status in ("pass", "warn")]
    if failed:
        return GateRuling("fail", f"failed: {', '.join(failed)}")
    if not judged:
        return GateRuling("fail", "inconclusive: none of the chosen gates could be judged")
    return GateRuling("pass", f"judged: {', '.join(judged)}")


def _of_gate(gate: GateOutcome, report: Report) -> GateRuling:
    from callmark.reports.terminal import gate_text

    text = gate_text(gate)
    match gate.status:
        case "pass":
            return GateRuling("pass", text)
        case "warn":
            return GateRuling("warn", text)
        case "inconclusive":
            return GateRuling("skip", f"inconclusive: {text}")
        case "n/a":
            return GateRuling("skip", f"n/a: {gate.reason}")
        case "fail":
            failing = report.failing.get(gate.name)
            ids = () if failing is None else failing.sample_ids[:10]
            return GateRuling("fail", "\n".join((text, *(f"  {name}" for name in ids))))
        case _:
            assert_never(gate.status)


class MarkedRun:
    """The run that a mark describes. Whoever comes first makes it, in a folder that all processes
    of the test run share; the others wait and read."""

    def __init__(self, mark: pytest.Mark, root: Path, folder: Path) -> None:
        self._settings = _settings_of(mark, root)
        self._folder = folder / f"callmark-{digest(self._settings)[:16]}"

    def report(self) -> Report:
        return _report_in(self._folder, msgspec.json.encode(self._settings))


def shared_folder(config: pytest.Config) -> Path:
    """The same for all workers of one test run, and new for each."""
    factory: pytest.TempPathFactory = config._tmp_path_factory  # type: ignore[attr-defined]
    base = factory.getbasetemp()
    return base.parent if hasattr(config, "workerinput") else base


@lru_cache(maxsize=16)
def _report_in(folder: Path, settings: bytes) -> Report:
    folder.mkdir(parents=True, exist_ok=True)
    made, failed = folder / REPORT, folder / "error.txt"
    with _lock(folder / "lock"):
        if not made.is_file() and not failed.is_file():
            _run(msgspec.json.decode(settings), folder, failed)
        if failed.is_file():
            raise UsageError(failed.read_text("utf-8"))
        return msgspec.json.decode(made.read_bytes(), type=Report)


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    with path.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _run(settings: dict[str, Json], folder: Path, failed: Path) -> None:
    from callmark.config import load_config
    from callmark.plugins import plugin_scope
    from callmark.run.conclude import INTERRUPTED, run

    file = settings.pop("config", os.devnull)
    if not isinstance(file, str | os.PathLike):
        raise UsageError(f"config: must be the path of a settings file, not {file!r}")
    written = {"out": str(folder / RESULTS), "report": str(folder / REPORT), "restart": True}
    try:
        with plugin_scope():
            outcome = run(load_config(Path(file), {**settings, **written}))
    except CallmarkError as error:
        failed.write_text(str(error), "utf-8")
        return
    if outcome.exit_code == INTERRUPTED:
        raise KeyboardInterrupt


def _settings_of(mark: pytest.Mark, root: Path) -> dict[str, Json]:
    """The keys of a callmark.yaml. Paths are taken from the root folder of the tests."""
    if mark.args:
        raise UsageError("the mark takes names only: dataset=…, fixtures=…, answers=…")
    given = {name: str(one) if isinstance(one, Path) else one for name, one in mark.kwargs.items()}
    for name in _WRITTEN:
        if name in given:
            raise UsageError(f"{name}: has no place in a mark")
    if "answers" in given:
        if "runner" in given or "model" in given:
            raise UsageError("answers: are replayed; give them, or runner and model")
        given |= {"runner": "replay", "model": given.pop("answers")}
    for name in (*_PATHS, *_PATHS_OR_NAMES):
        if isinstance(given.get(name), str):
            path = root / given[name]
            given[name] = str(path) if name in _PATHS or path.exists() else given[name]
    if isinstance(plugins := given.get("plugins"), str | list | tuple):
        files = [plugins] if isinstance(plugins, str) else plugins
        given["plugins"] = [str(root / file) for file in files]
    gates = given.pop("gates", None)
    if isinstance(gates, dict):
        given["gates"] = {
            name: {"bound": one} if isinstance(one, int | float) else one
            for name, one in gates.items()
        }
    try:
        return dict(sorted(msgspec.to_builtins(given).items()))
    except (TypeError, ValueError) as error:
        raise UsageError(f"the mark takes plain values only: {error}") from None
