"""`--num-shards auto`: which shard this process is, as the cluster that started it says."""

from __future__ import annotations

import os
from collections.abc import Mapping

from callmark.errors import UsageError


def shard_of_this_process(environment: Mapping[str, str] = os.environ) -> tuple[int, int]:
    """(num_shards, shard_index) from a SLURM array or an indexed Kubernetes job."""
    if "SLURM_ARRAY_TASK_ID" in environment:
        return _shard_of_array(environment)
    if "JOB_COMPLETION_INDEX" in environment:
        # Kubernetes tells a pod its index but not how many there are.
        return _number(environment, "JOB_COMPLETIONS"), _number(environment, "JOB_COMPLETION_INDEX")
    raise UsageError(
        "--num-shards auto: neither SLURM_ARRAY_TASK_ID nor JOB_COMPLETION_INDEX is set; "
        "give --num-shards N --shard-index I"
    )


def _shard_of_array(environment: Mapping[str, str]) -> tuple[int, int]:
    count = _number(environment, "SLURM_ARRAY_TASK_COUNT")
    first = _number(environment, "SLURM_ARRAY_TASK_MIN", 0)
    step = max(1, _number(environment, "SLURM_ARRAY_TASK_STEP", 1))
    last = _number(environment, "SLURM_ARRAY_TASK_MAX", first + step * (count - 1))
    task = _number(environment, "SLURM_ARRAY_TASK_ID")
    # Tasks of an earlier array that are submitted anew are not all the shards there are.
    if last != first + step * (count - 1) or (count == 1 and first > 0):
        raise UsageError(
            f"--num-shards auto: this array of {count} (tasks {first} to {last}) is a part of one:"
            f" submit the whole array, or give --num-shards N --shard-index {task}"
        )
    return count, (task - first) // step


def _number(environment: Mapping[str, str], name: str, default: int | None = None) -> int:
    text = environment.get(name)
    if text is None and default is not None:
        return default
    if text is None or not text.isascii() or not text.isdigit():
        found = "is not set" if text is None else f"is {text!r}"
        raise UsageError(f"--num-shards auto: {name} {found}; it must be a whole number")
    return int(text)
