"""Shards of one run in a folder, and ways to spoil them."""

import hashlib
import json
from pathlib import Path

import msgspec

from callmark.run.conclude import RunOutcome, run
from callmark.shards.merge import shard_names

Settings = dict[str, object]


def run_shard(config: Settings, folder: Path, number: int, index: int) -> RunOutcome:
    results, report = (str(folder / name) for name in shard_names(index))
    part = {"num_shards": number, "shard_index": index, "out": results, "report": report}
    return run({**config, **part})


def run_shards(config: Settings, folder: Path, number: int) -> list[Path]:
    """The results files of all shards of a run."""
    folder.mkdir(exist_ok=True)
    for index in range(number):
        run_shard(config, folder, number, index)
    return [folder / shard_names(index)[0] for index in range(number)]


def report_of(results: Path) -> Path:
    return results.with_name(results.name.replace("results", "report").removesuffix("l"))


def without_timing(path: Path) -> bytes:
    """The bytes of a report, but for what a clock measured."""
    report = json.loads(path.read_bytes())
    del report["timing"]
    return json.dumps(report).encode()


def change_report(results: Path, *path: str, value: object) -> None:
    file = report_of(results)
    report = json.loads(file.read_bytes())
    inner = report
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    file.write_bytes(msgspec.json.format(json.dumps(report).encode(), indent=2))


def rewrite(results: Path, lines: list[bytes], *, honest: bool = False) -> None:
    """Other lines in a shard; `honest`: its report says so too."""
    data = b"".join(lines)
    results.write_bytes(data)
    if honest:
        change_report(results, "shard", "results_sha256", value=hashlib.sha256(data).hexdigest())
        change_report(results, "shard", "results_lines", value=len(lines))
