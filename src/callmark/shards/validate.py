"""`callmark validate-sharding`: run a dataset once as a whole and once in shards, each in a process
of its own whose environment leaves nothing to chance, and compare what they wrote."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import msgspec

from callmark.config import RunConfig, load_config
from callmark.core.jsontext import Json, plain
from callmark.errors import CallmarkError, UsageError
from callmark.running.offers import open_registry
from callmark.shards.files import shard_names
from callmark.shards.validation import ATOL, BASELINE, RTOL, Validation, validate_files
from callmark.store.files import atomic_writer, check_writable, make_folder
from callmark.store.problems import typed_problem

OUTPUT = "sharding_validation.json"
NUM_SHARDS = 4
DIFFERS = 1
# What a run ends with that wrote its results: passed, a gate failed, inconclusive.
FINISHED = frozenset({0, 1, 5})
ENVIRONMENT = {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
_SOURCES = Path(__file__).parents[2]
_NotNegative = Annotated[float, msgspec.Meta(ge=0)]

Say = Callable[[str], None]


class ShardingConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`config`: a settings file for all runs; what is named here wins over it."""

    dataset: str
    model: str | None = None
    runner: str | None = None
    num_shards: Annotated[int, msgspec.Meta(ge=1)] = NUM_SHARDS
    fixtures: str | None = None
    prompt_wrapper: str | None = None
    config: str | None = None
    seed: int | None = None
    atol: _NotNegative = ATOL
    rtol: _NotNegative = RTOL
    output: str = OUTPUT
    temp_dir: str | None = None


class ValidationOutcome(msgspec.Struct, frozen=True):
    validation: Validation
    exit_code: int


class RunFailed(CallmarkError):
    """A child process wrote no results: there is nothing to compare."""

    def __init__(self, what: str, code: int, said: str) -> None:
        super().__init__(f"{what} failed with exit code {code}: {said}")
        self.exit_code = code


def validate_sharding(
    config: ShardingConfig | Mapping[str, Json], *, say: Say | None = None
) -> ValidationOutcome:
    """The report is written in any case; exit code 0: equal, 1: not, or a gate failed; else that of
    the run that failed."""
    if not isinstance(config, ShardingConfig):
        config = sharding_config(config)
    if config.dataset == "-":
        raise UsageError("--dataset: must be a file: standard input can be read only once")
    check_writable(Path(config.output))
    code = DIFFERS
    try:
        with _folder(config) as folder:
            _run_all(config, folder, say)
            validation = validate_files(
                folder,
                config.num_shards,
                atol=config.atol,
                rtol=config.rtol,
                registry=open_registry(_settings_of(config).registry),
            )
    except CallmarkError as error:
        code = error.exit_code
        validation = Validation(num_shards=config.num_shards, reasons=(str(error),))
    text = msgspec.json.format(msgspec.json.encode(validation), indent=2)
    with atomic_writer(Path(config.output)) as stream:
        stream.write(text + b"\n")
    return ValidationOutcome(validation, 0 if validation.ok else code)


def sharding_config(settings: Mapping[str, Json]) -> ShardingConfig:
    try:
        return msgspec.convert(dict(settings), ShardingConfig)
    except msgspec.ValidationError as error:
        raise UsageError(f"validate-sharding: {typed_problem(error)}") from None


def validate_plainly(config: Mapping[str, Json]) -> dict[str, Json]:
    found: dict[str, Json] = plain(validate_sharding(config).validation)
    return found


@contextmanager
def _folder(config: ShardingConfig) -> Iterator[Path]:
    """Where the runs write: the named folder, which stays, or one that goes."""
    if config.temp_dir is None:
        with TemporaryDirectory(prefix="callmark-sharding-") as name:
            yield Path(name)
        return
    folder = Path(config.temp_dir)
    try:
        make_folder(folder)
    except OSError as error:
        raise UsageError(f"--temp-dir: {folder}: cannot be made: {error.strerror}") from None
    yield folder


def _run_all(config: ShardingConfig, folder: Path, say: Say | None) -> None:
    # Also for the baseline: a settings file may name a number of shards, or an engine.
    _run_one(config, folder, "the baseline", BASELINE, _part(1, 0), say)
    for index in range(config.num_shards):
        part = _part(config.num_shards, index)
        what = f"shard {index} of {config.num_shards}"
        _run_one(config, folder, what, shard_names(index), part, say)


def _settings_of(config: ShardingConfig) -> RunConfig:
    """As the runs read them: the named file, or the one in this folder."""
    return load_config(None if config.config is None else Path(config.config), {})


def _part(num_shards: int, index: int) -> tuple[str, ...]:
    return ("--num-shards", str(num_shards), "--shard-index", str(index))


def _run_one(
    config: ShardingConfig,
    folder: Path,
    what: str,
    names: tuple[str, str],
    part: tuple[str, ...],
    say: Say | None,
) -> None:
    if say is not None:
        say(f"running {what}")
    results, report = (folder / name for name in names)
    for old in (results, report):
        old.unlink(missing_ok=True)  # what an earlier run left must not speak for this one
    written = ("--out", str(results), "--report", str(report), "--no-html", "--restart", "--quiet")
    finished = subprocess.run(  # noqa: S603 - this very program, with the user's own file names
        [sys.executable, "-m", "callmark", "run", *run_flags(config), *part, *written],
        env=child_environment(os.environ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if finished.returncode not in FINISHED:
        said = finished.stderr.partition("callmark: error: ")[2].strip()  # warnings come before
        verdict = " ".join(finished.stdout.split())
        why = said or verdict or finished.stderr.strip() or "it said nothing"
        raise RunFailed(what, finished.returncode, why)


def run_flags(config: ShardingConfig) -> list[str]:
    """What the runs of the baseline and of each shard have in common."""
    named = {
        "--in": config.dataset,
        "--model": config.model,
        "--runner": config.runner,
        "--fixtures": config.fixtures,
        "--prompt-wrapper": config.prompt_wrapper,
        "--config": config.config,
        "--seed": config.seed,
    }
    given = [word for flag, value in named.items() if value is not None for word in (flag, value)]
    # With a cache the shards would only show that they read the same file as the baseline.
    return [*map(str, given), "--determinism-mode", "--no-cache"]


def child_environment(ours: Mapping[str, str]) -> dict[str, str]:
    """Ours, with one thread and one hash seed, this very package before any other, and no place for
    summaries: these runs are nobody's step."""
    paths = filter(None, (str(_SOURCES), ours.get("PYTHONPATH")))
    kept = {name: value for name, value in ours.items() if name != "GITHUB_STEP_SUMMARY"}
    return {**kept, **ENVIRONMENT, "PYTHONPATH": os.pathsep.join(paths)}
