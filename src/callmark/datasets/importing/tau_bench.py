"""Results of tau-bench: a list of `{task_id, trial, reward, info, traj}`. They hold no tools."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

import msgspec

from callmark.datasets.importing.conversation import Talk, imported_talk
from callmark.datasets.importing.desk import Desk, Imported, Object, Record
from callmark.errors import BadInput
from callmark.records.jsontext import Json, want_list, want_object
from callmark.records.problems import typed_problem

Trial = Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]


class Message(msgspec.Struct, frozen=True):
    """Only what is needed to be sure that a message is one."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]


class _Action(msgspec.Struct, frozen=True):
    name: str
    kwargs: dict[str, Json] = {}


class _Task(msgspec.Struct, frozen=True):
    actions: tuple[_Action, ...] = ()
    outputs: tuple[str, ...] = ()
    instruction: str | None = None
    user_id: str | None = None


class _Info(msgspec.Struct, frozen=True):
    task: _Task | None = None


class _Run(msgspec.Struct, frozen=True):
    task_id: str | int
    traj: tuple[Message, ...]
    trial: Trial | None = None
    reward: float | None = None
    info: _Info | None = None


def read_tau_bench(records: Iterator[Record], desk: Desk) -> Iterator[Imported]:
    """Every trial is a sample of its own: the simulated user says something else each time. The
    trials of one task are a cluster."""
    for line, value in records:
        try:
            run = msgspec.convert(value, _Run)
        except msgspec.ValidationError as error:
            raise BadInput(f"{desk.place(line)}: {typed_problem(error)}") from None
        task = (run.info and run.info.task) or _Task()
        trial = run.trial or 0
        talk = Talk(
            line=line,
            sample_id=f"task-{run.task_id}-trial-{trial}",
            messages=list(map(want_object, want_list(want_object(value)["traj"]))),
            expects={
                "cluster": f"task-{run.task_id}",
                **expect_calls(
                    [{"name": one.name, "arguments": one.kwargs} for one in task.actions],
                    task.outputs,
                ),
            },
            about={
                "format": "tau-bench",
                "task_id": run.task_id,
                "trial": trial,
                "instruction": task.instruction,
                "user_id": task.user_id,
            },
            scores={} if run.reward is None else {"reward": run.reward},
        )
        imported = imported_talk(talk, desk)
        if imported is not None:
            yield imported


def expect_calls(calls: Sequence[Object], facts: Sequence[str]) -> Object:
    """What a task asks for: these calls among others, and these values in the answer."""
    metadata: Object = {}
    if calls:
        metadata |= {"call_sequence": list(calls), "call_match": "superset"}
    if facts:
        metadata["required_facts"] = list(facts)
    return metadata
