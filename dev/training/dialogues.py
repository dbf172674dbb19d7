"""Tool dialogues from a seed: what is asked, what is called, what comes back, what is answered."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import msgspec

from dev.training import phrases
from dev.training.world import Dialogue, Task, World, dialogue_of


def _single(task: Callable[[World], Task]) -> Callable[[World, str], Dialogue]:
    return lambda world, family: dialogue_of(task(world), family)


def _search_then_read(world: World, family: str) -> Dialogue:
    first, second = world.search(), world.read()
    path = second.call.arguments["path"]
    call = first.call
    if world.random.random() < 0.5:
        asked = phrases.SEARCH_THEN_READ
    else:
        asked = phrases.SEARCH_THEN_READ_FOUND
        call = msgspec.structs.replace(call, result=world.shuffled(**call.result, results=[path]))
    return Dialogue(
        family=family,
        prompt=world.pick(asked).format(q=first.subject, path=path),
        steps=((call,), (second.call,)),
        answer=f"{first.integration}\n{second.integration}",
        metadata={"required_facts": [first.fact, second.fact]},
    )


def _parallel(world: World, family: str) -> Dialogue:
    kind, asked = world.random.choice(
        ((world.search, phrases.BOTH), (world.read, phrases.READ_BOTH))
    )
    first, second = kind(), kind()
    return Dialogue(
        family=family,
        prompt=world.pick(asked).format(q=first.subject, path=first.subject, other=second.subject),
        steps=((first.call, second.call),),
        answer=f"{first.integration}\n{second.integration}",
        metadata={"required_facts": [first.fact, second.fact]},
    )


def _retry(world: World, family: str) -> Dialogue:
    """An error, the same call again, and then the result."""
    task = world.any_task()
    failed = msgspec.structs.replace(task.call, result=world.error())
    return Dialogue(
        family=family,
        prompt=task.prompt + world.pick(phrases.AGAIN),
        steps=((failed,), (task.call,)),
        answer=task.integration,
        metadata={"required_facts": [task.fact], "expected_behaviour": "retry"},
    )


def _instead(world: World, family: str) -> Dialogue:
    """An error, and then the other file that the user named."""
    first, second = world.read(), world.read()
    failed = msgspec.structs.replace(first.call, result=world.error())
    return Dialogue(
        family=family,
        prompt=world.pick(phrases.READ_INSTEAD).format(path=first.subject, other=second.subject),
        steps=((failed,), (second.call,)),
        answer=second.integration,
        metadata={"required_facts": [second.fact], "expected_behaviour": "retry"},
    )


def _no_error(world: World, family: str) -> Dialogue:
    """The user says what to do on an error, and none comes."""
    if world.random.random() < 0.5:
        task = world.any_task()
        prompt = task.prompt + world.pick(phrases.AGAIN)
    else:
        task = world.read()
        prompt = world.pick(phrases.READ_INSTEAD).format(path=task.subject, other=world.path())
    return dialogue_of(msgspec.structs.replace(task, prompt=prompt), family)


def _gives_up(world: World, family: str) -> Dialogue:
    """Two errors are enough: the answer says so."""
    dialogue = (_retry if world.random.random() < 0.7 else _instead)(world, family)
    error = world.error()
    first, (second,) = dialogue.steps
    last = msgspec.structs.replace(second, result=error)
    said = phrases.FAILED.format(error=error["error"])
    return msgspec.structs.replace(dialogue, steps=(first, (last,)), answer=said)


def _empty(world: World, family: str) -> Dialogue:
    """The tool finds nothing."""
    if world.random.random() < 0.6:
        task = world.random.choice((world.search, world.search_top, world.search_count))()
        result = world.shuffled(match=True, summary="", count=0)
    else:
        task = world.random.choice((world.read, world.read_lines))()
        result = world.shuffled(content="", lines=0)
    return Dialogue(
        family=family,
        prompt=task.prompt,
        steps=((msgspec.structs.replace(task.call, result=result),),),
        answer=phrases.NOTHING_FOUND.format(what=task.subject),
        metadata={"negative_control": True},
    )


def _decoy(world: World, family: str) -> Dialogue:
    """The tool finds something else and says so."""
    task = world.random.choice((world.search, world.search_top))()
    call = task.call
    fact, count = call.result["summary"], call.result["count"]
    other = world.shuffled(match=False, summary=fact, count=count)
    return Dialogue(
        family=family,
        prompt=task.prompt,
        steps=((msgspec.structs.replace(call, result=other),),),
        answer=phrases.NOT_FITTING.format(what=task.subject),
        metadata={"negative_control": True, "decoy_values": [fact, task.fact, count]},
    )


def _no_tool(world: World, family: str) -> Dialogue:
    asked, said = world.random.choice(phrases.NO_TOOL)
    a, b, path = world.random.randint(1, 9), world.random.randint(1, 9), world.path()
    values = {
        "name": world.words.name(),
        "q": world.words.phrase(),
        "a": a,
        "b": b,
        "sum": a + b,
        "path": path,
        "ending": path.rpartition(".")[2],
    }
    return Dialogue(
        family=family,
        prompt=asked.format_map(values),
        answer=said.format_map(values),
        metadata={"expected_behaviour": "no_tool"},
    )


def _echo(world: World, family: str) -> Dialogue:
    """Nothing but copying, much of it."""
    words = world.words
    kinds = (words.word, words.word, words.name, world.path, lambda: str(words.number()))
    text = " ".join(world.random.choice(kinds)() for _ in range(world.random.randint(4, 10)))
    return Dialogue(
        family=family,
        prompt=world.pick(phrases.ECHO).format(text=text),
        answer=text,
        metadata={"expected_behaviour": "no_tool"},
    )


def _decline(world: World, family: str) -> Dialogue:
    prompt = world.pick(phrases.DECLINE)
    return Dialogue(
        family=family,
        prompt=prompt.format(name=world.words.name(), other=world.words.name()),
        answer=phrases.DECLINED,
        metadata={"expected_behaviour": "decline"},
    )


def _clarify(world: World, family: str) -> Dialogue:
    asked, said = world.random.choice(phrases.CLARIFY)
    return Dialogue(
        family=family,
        prompt=asked.format(name=world.words.name()),
        answer=said,
        metadata={"adversarial": {"type": "ambiguity", "expected": "ask_clarify"}},
    )


class Family(msgspec.Struct, frozen=True):
    """`weight`: its share of the training dialogues; `held_out`: how many the dataset has."""

    make: Callable[[World, str], Dialogue]
    weight: int
    held_out: int
    scenario: str
    complexity: str


FAMILIES: dict[str, Family] = {
    "search": Family(_single(World.search), 12, 20, "lookup", "simple"),
    "search_top": Family(_single(World.search_top), 6, 8, "lookup", "arguments"),
    "search_count": Family(_single(World.search_count), 3, 6, "lookup", "field"),
    "read": Family(_single(World.read), 10, 16, "file", "simple"),
    "read_lines": Family(_single(World.read_lines), 3, 6, "file", "field"),
    "code": Family(_single(World.code), 9, 16, "code", "simple"),
    "search_then_read": Family(_search_then_read, 12, 18, "chain", "sequence"),
    "parallel": Family(_parallel, 12, 16, "chain", "parallel"),
    "retry": Family(_retry, 6, 12, "retry", "same"),
    "instead": Family(_instead, 4, 8, "retry", "other"),
    "no_error": Family(_no_error, 4, 0, "retry", "none"),
    "gives_up": Family(_gives_up, 3, 0, "retry", "hopeless"),
    "empty": Family(_empty, 5, 10, "nothing_found", "empty"),
    "decoy": Family(_decoy, 5, 8, "nothing_found", "decoy"),
    "echo": Family(_echo, 4, 0, "conversation", "echo"),
    "no_tool": Family(_no_tool, 7, 10, "conversation", "no_tool"),
    "decline": Family(_decline, 4, 10, "conversation", "decline"),
    "clarify": Family(_clarify, 4, 15, "conversation", "clarify"),
}
# Copying is learnt first, then one call and one answer; who can do that learns the rest quickly.
_LONG = frozenset("search_then_read parallel retry instead gives_up".split())
_ECHO_UNTIL, _SHORT_UNTIL = 0.15, 0.4


def mixed_dialogue(random: Random, _progress: float) -> Dialogue:
    return training_dialogue(random, 1.0)


def training_dialogue(random: Random, progress: float) -> Dialogue:
    """`progress`: the share of the course that is behind."""
    if progress < _ECHO_UNTIL and random.random() < 0.7:
        return _echo(World(random, "training"), "echo")
    chosen = {
        name: family.weight
        for name, family in FAMILIES.items()
        if progress >= _SHORT_UNTIL or name not in _LONG
    }
    [name] = random.choices(list(chosen), list(chosen.values()))
    return FAMILIES[name].make(World(random, "training"), name)
