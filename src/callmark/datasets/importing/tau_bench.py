"""Results of tau-bench, a list of `{task_id, trial, reward, info, traj}` that holds no tools, and
of tau2, `{info, tasks, simulations}` in one JSON document."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal, TypeVar

import msgspec

from callmark.datasets.importing.conversation import Talk, function_call, imported_talk
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


T = TypeVar("T")

# The simulation failed, not the model: its own errors are answers like any other.
_FAILED = frozenset({"infrastructure_error", "unexpected_error", "user_error"})


class _Call(msgspec.Struct, frozen=True):
    name: str
    arguments: dict[str, Json] | None = None
    id: str | None = None
    requestor: Literal["assistant", "user"] = "assistant"


class _Message(msgspec.Struct, frozen=True):
    role: Literal["system", "user", "assistant", "tool"]
    content: str | None = None
    tool_calls: tuple[_Call, ...] | None = None
    id: str | None = None
    requestor: Literal["assistant", "user"] = "assistant"
    error: bool = False
    tool_messages: tuple[_Message, ...] | None = None


class _Reward(msgspec.Struct, frozen=True):
    reward: float | None = None


class _Simulation(msgspec.Struct, frozen=True):
    id: str
    task_id: str | int
    messages: tuple[_Message, ...] | None = None
    trial: Trial | None = None
    termination_reason: str | None = None
    reward_info: _Reward | None = None


class _Tau2Action(msgspec.Struct, frozen=True):
    name: str
    arguments: dict[str, Json] | None = None
    requestor: Literal["assistant", "user"] = "assistant"
    compare_args: tuple[str, ...] | None = None


class _Criteria(msgspec.Struct, frozen=True):
    actions: tuple[_Tau2Action, ...] | None = None
    communicate_info: tuple[str, ...] | None = None
    env_assertions: list[Json] | None = None
    nl_assertions: list[Json] | None = None


class _Tau2Task(msgspec.Struct, frozen=True):
    id: str | int
    evaluation_criteria: _Criteria | None = None


class _Signature(msgspec.Struct, frozen=True):
    doc: str | None = None
    params: dict[str, Json] | None = None


class _Environment(msgspec.Struct, frozen=True):
    domain_name: str | None = None
    policy: str | None = None
    tool_defs: dict[str, _Signature] | None = None


class _Tau2Info(msgspec.Struct, frozen=True):
    environment_info: _Environment = _Environment()


class _Frame(msgspec.Struct, frozen=True):
    tasks: tuple[_Tau2Task, ...] = ()
    info: _Tau2Info = _Tau2Info()


def read_tau2(records: Iterator[Record], desk: Desk) -> Iterator[Imported]:
    """The first record is the document without its simulations, each other one a simulation. As
    in tau-bench every trial is a sample, and a task is a cluster."""
    line, value = next(records)
    frame = _type(value, _Frame, desk.place(line))
    tasks = {str(task.id): task for task in frame.tasks}
    for line, value in records:
        run = _type(value, _Simulation, desk.place(line))
        imported = imported_talk(_talk(run, line, frame, tasks, desk), desk)
        if imported is not None:
            yield imported


def _talk(
    run: _Simulation, line: int, frame: _Frame, tasks: dict[str, _Tau2Task], desk: Desk
) -> Talk:
    environment = frame.info.environment_info
    reason = run.termination_reason
    reward = run.reward_info and run.reward_info.reward
    policy: list[Object] = []
    if environment.policy and not any(one.role == "system" for one in run.messages or ()):
        policy = [{"role": "system", "content": environment.policy}]
    task = tasks.get(str(run.task_id))
    criteria = (task and task.evaluation_criteria) or _Criteria()
    for _ in (*(criteria.env_assertions or ()), *(criteria.nl_assertions or ())):
        desk.notes.add("assertion", line, f"task {run.task_id}")
    return Talk(
        line=line,
        sample_id=f"task-{run.task_id}-trial-{run.trial or 0}",
        messages=[*policy, *_messages(run.messages or (), line, desk)],
        tools=_tools(environment.tool_defs),
        expects={"cluster": f"task-{run.task_id}", **_expect(criteria)},
        about={
            "format": "tau2",
            "simulation": run.id,
            "domain": environment.domain_name,
            "termination_reason": reason,
        },
        scores={} if reward is None else {"reward": reward},
        error=reason if reason in _FAILED else None,
    )


def _messages(messages: Sequence[_Message], line: int, desk: Desk) -> Iterator[Object]:
    for message in messages:
        if message.tool_messages is not None:
            yield from _messages(message.tool_messages, line, desk)
        elif message.role == "tool":
            if message.requestor == "assistant":
                yield {
                    "role": "tool",
                    "tool_call_id": message.id,
                    "content": _result(message.content, message.error),
                }
        elif message.role == "user":
            for call in message.tool_calls or ():
                desk.notes.add("user_call", line, call.name)
            if message.content is not None:
                yield {"role": "user", "content": message.content}
        else:
            calls = [
                function_call(call.name, call.arguments or {}, call.id)
                for call in message.tool_calls or ()
            ]
            spoken: Object = {"role": message.role, "content": message.content}
            yield {**spoken, "tool_calls": calls} if calls else spoken


def _result(content: str | None, is_error: bool) -> str:
    """An error is said to be one: tau2 marks it beside the text."""
    text = content or ""
    return json.dumps({"error": text or "error"}, ensure_ascii=False) if is_error else text


def _expect(criteria: _Criteria) -> Object:
    calls = [_call(one) for one in criteria.actions or () if one.requestor == "assistant"]
    return expect_calls(calls, criteria.communicate_info or ())


def _call(action: _Tau2Action) -> Object:
    """Arguments that tau2 does not compare may have any value, or none."""
    arguments = action.arguments or {}
    if action.compare_args is None:
        return {"name": action.name, "arguments": arguments}
    free = [name for name in arguments if name not in action.compare_args]
    kept = {name: value for name, value in arguments.items() if name not in free}
    call: Object = {"name": action.name, "arguments": kept}
    return {**call, "optional": free} if free else call


def _tools(given: dict[str, _Signature] | None) -> list[Json] | None:
    if given is None:
        return None
    return [
        {"name": name, "description": tool.doc or "", "parameters": tool.params or {}}
        for name, tool in given.items()
    ]


def _type(value: Json, kind: type[T], place: str) -> T:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise BadInput(f"{place}: {typed_problem(error)}") from None
