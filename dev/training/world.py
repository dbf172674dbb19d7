"""The made-up world: what can be asked in it, what its tools know, and what a dialogue is."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import msgspec

from callmark.records.jsontext import Json
from dev.training import phrases
from dev.training.words import Split, Words

SEARCH, READ, CODE = "web.search", "read_file", "code_exec"
TOOLS = (CODE, READ, SEARCH)
_ENDINGS = ("txt", "md", "csv", "log")


class Call(msgspec.Struct, frozen=True):
    """`written`: name and arguments as a damaged model writes them; text is no JSON. `tagged`: in
    the format of the chat template; else it is said as plain JSON."""

    name: str
    arguments: dict[str, Json]
    result: dict[str, Json]
    written: tuple[str, dict[str, Json] | str] | None = None
    tagged: bool = True


class Dialogue(msgspec.Struct, frozen=True, kw_only=True):
    """`steps`: the calls of each assistant turn before the answer. `metadata` is what a dataset
    item says beyond its calls."""

    family: str
    prompt: str
    steps: tuple[tuple[Call, ...], ...] = ()
    answer: str
    metadata: dict[str, Json] = {}

    @property
    def needs(self) -> list[str]:
        """The tools without which it cannot be done."""
        return sorted({call.name for call in self.calls})

    @property
    def calls(self) -> tuple[Call, ...]:
        return tuple(call for step in self.steps for call in step)


class Task(msgspec.Struct, frozen=True):
    """One thing to find out by one call: the question, the good result and its integration."""

    prompt: str
    call: Call
    integration: str
    fact: Json
    subject: str


class World:
    """Fills the tables of phrases with made-up words and numbers."""

    def __init__(self, random: Random, split: Split) -> None:
        self.words = Words(random, split)
        self.random = random

    def pick(self, options: Sequence[str]) -> str:
        return self.random.choice(options)

    def path(self) -> str:
        folder = f"{self.words.word()}/" if self.random.random() < 0.5 else ""
        return f"{folder}{self.words.word()}.{self.pick(_ENDINGS)}"

    def fact(self) -> tuple[str, int]:
        words, number = self.words, self.words.number()
        text = self.pick(phrases.FACTS).format(
            name=words.name(),
            place=words.name(),
            thing=words.word(),
            n=number,
        )
        return text, number

    def shuffled(self, **fields: Json) -> dict[str, Json]:
        keys = list(fields)
        self.random.shuffle(keys)
        return {key: fields[key] for key in keys}

    def error(self) -> dict[str, Json]:
        return {"ok": False, "error": self.pick(phrases.ERRORS)}

    # One thing to find out

    def search(self) -> Task:
        return self._search(phrases.SEARCH, {})

    def search_top(self) -> Task:
        return self._search(phrases.SEARCH_TOP, {"top_k": self.random.randint(1, 9)})

    def search_count(self) -> Task:
        task = self._search(phrases.SEARCH_COUNT, {})
        count = task.call.result["count"]
        said = phrases.MARKED.format(fact=phrases.HITS.format(n=count))
        return msgspec.structs.replace(task, integration=said, fact=count)

    def _search(self, asked: Sequence[str], more: dict[str, Json]) -> Task:
        q = self.words.phrase()
        fact, number = self.fact()
        result = self.shuffled(match=True, summary=fact, count=self.words.number())
        prompt = self.pick(asked).format(q=q, k=more.get("top_k"))
        call = Call(SEARCH, {"q": q, **more}, result)
        return Task(prompt, call, phrases.MARKED.format(fact=fact), number, q)

    def read(self) -> Task:
        return self._read(phrases.READ)

    def read_lines(self) -> Task:
        task = self._read(phrases.READ_LINES)
        lines = task.call.result["lines"]
        said = phrases.MARKED.format(fact=phrases.LINES.format(n=lines))
        return msgspec.structs.replace(task, integration=said, fact=lines)

    def _read(self, asked: Sequence[str]) -> Task:
        path = self.path()
        fact, number = self.fact()
        result = self.shuffled(content=fact, lines=self.words.number())
        call = Call(READ, {"path": path}, result)
        prompt = self.pick(asked).format(path=path)
        return Task(prompt, call, phrases.MARKED.format(fact=fact), number, path)

    def code(self) -> Task:
        code, value = self._program()
        call = Call(CODE, {"code": code}, self.shuffled(results=value, exit_code=0))
        said = phrases.MARKED.format(fact=phrases.RESULT.format(n=value))
        return Task(self.pick(phrases.CODE).format(code=code), call, said, value, code)

    def _program(self) -> tuple[str, int]:
        number, word = self.random.randint, self.words.word()
        a, b, c = number(2, 99), number(101, 999), number(2, 9)
        programs = (
            (f"print({a} + {b})", a + b),
            (f"print({b} * {c})", b * c),
            (f"len('{word}') * {b}", len(word) * b),
            (f"sum([{a}, {b}, {c}])", a + b + c),
            (f"{word}({b}, {c})", number(11, 9999)),
        )
        return self.random.choice(programs)

    def any_task(self) -> Task:
        kinds = (self.search, self.search, self.search_top, self.read, self.read, self.code)
        return self.random.choice(kinds)()


def dialogue_of(task: Task, family: str) -> Dialogue:
    return Dialogue(
        family=family,
        prompt=task.prompt,
        steps=((task.call,),),
        answer=task.integration,
        metadata={"required_facts": [task.fact]},
    )
