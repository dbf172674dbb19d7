"""What became of the mutants."""

from __future__ import annotations

from collections import Counter

import msgspec

from dev.campaign.reasons import UNEXPLAINED

EXAMPLES = 5


class Tally(msgspec.Struct):
    """By kind: how many changed the score as they must, and why the others did not."""

    lowered: Counter[str] = msgspec.field(default_factory=Counter)  # F1 fell
    killed: Counter[str] = msgspec.field(default_factory=Counter)
    survived: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter)
    unexplained: list[str] = msgspec.field(default_factory=list)
    examples: dict[tuple[str, str], list[str]] = msgspec.field(default_factory=dict)

    def note(self, kind: str, reason: str, shown: str) -> None:
        self.survived[kind, reason] += 1
        if reason.startswith(UNEXPLAINED):
            self.unexplained.append(f"{kind}: {shown} ({reason})")
        examples = self.examples.setdefault((kind, reason), [])
        if len(examples) < EXAMPLES:
            examples.append(shown)

    def total(self) -> int:
        return self.killed.total() + self.survived.total()

    def kinds(self) -> list[str]:
        return list(dict.fromkeys([*self.killed, *(kind for kind, _ in self.survived)]))

    def of(self, kind: str) -> int:
        return self.killed[kind] + sum(n for (k, _), n in self.survived.items() if k == kind)

    def add(self, other: Tally) -> None:
        self.lowered.update(other.lowered)
        self.killed.update(other.killed)
        self.survived.update(other.survived)
        self.unexplained += other.unexplained
        for key, examples in other.examples.items():
            self.examples.setdefault(key, []).extend(examples)
            del self.examples[key][EXAMPLES:]
