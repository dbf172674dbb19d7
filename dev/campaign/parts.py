"""The parts of the campaign, cut into jobs that can run beside each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from dev.campaign.tally import Tally
from dev.campaign.trials import GENERATED, REAL

PARTS = ("answers", "calls", "statements", "faults", "endpoint", "attacks", "determinism", "kills")
HELD, REFUSED = "held", "refused by name"


class Size(msgspec.Struct, frozen=True):
    """How much of each: mutants of each source, files of each kind, and so on."""

    answers: int
    calls: int
    statements: int  # of each kind in each half of a source
    episodes: int | None  # of each source that these are planted in; None: all
    samples: int
    slices: int
    files: int
    endpoint: int
    attacks: bool
    repeated: int
    settings: int
    kills: int
    killed: int  # samples of a run that is killed


WHOLE = Size(
    answers=6_000, calls=4_200, statements=50, episodes=None, samples=400, slices=2, files=2_020,
    endpoint=2_000, attacks=True, repeated=200, settings=8, kills=200, killed=10_000,
)  # fmt: skip
QUICK = Size(
    answers=240, calls=120, statements=3, episodes=20, samples=120, slices=1, files=2,
    endpoint=50, attacks=False, repeated=20, settings=2, kills=4, killed=200,
)  # fmt: skip


class Job(msgspec.Struct, frozen=True):
    part: str
    name: str
    number: int
    seed: str
    size: Size
    real: str | None


class Part(msgspec.Struct):
    """What one job found. `ends` are counts by what became of an input."""

    part: str
    name: str
    tally: Tally | None = None
    ends: dict[str, Counter[str]] = {}
    problems: list[str] = []


class Findings(msgspec.Struct):
    """Everything, in the order of the jobs."""

    tallies: dict[tuple[str, str], Tally] = msgspec.field(default_factory=dict)
    ends: dict[str, dict[str, Counter[str]]] = msgspec.field(default_factory=dict)
    problems: list[str] = msgspec.field(default_factory=list)

    def add(self, part: Part) -> None:
        if part.tally is not None:
            self.tallies.setdefault((part.part, part.name), Tally()).add(part.tally)
        for name, ends in part.ends.items():
            self.ends.setdefault(part.part, {}).setdefault(name, Counter()).update(ends)
        self.problems += part.problems


def jobs_of(size: Size, seed: int, real: str | None, parts: Sequence[str]) -> list[Job]:
    return [
        Job(part, name, number, f"{seed} {at}", size, real)
        for part in PARTS
        if part in parts
        for name, number, at in _jobs_of_part(part, size, real)
    ]


def _jobs_of_part(part: str, size: Size, real: str | None) -> Iterator[tuple[str, int, int]]:
    """The name of each job, how much it does, and which of several alike it is."""
    match part:
        case "answers" | "calls":
            number = size.answers if part == "answers" else size.calls
            for source in (GENERATED, REAL) if real else (GENERATED,):
                yield from ((source, number // size.slices, at) for at in range(size.slices))
        case "statements":
            from dev.campaign.statements import SOURCES

            yield from ((source, size.statements, 0) for source in SOURCES if real)
        case "faults":
            from dev.campaign.faults import kinds

            yield from ((kind, size.files, 0) for kind in kinds())
        case "endpoint":
            yield "endpoint", size.endpoint, 0
        case "attacks":
            from dev.campaign.redteam import CASES

            yield from ((group, len(CASES[group]), 0) for group in CASES if size.attacks)
        case "determinism":
            yield "processes", size.repeated, 0
        case _:
            each = size.kills // size.slices
            yield from (("the end of a run", each, at) for at in range(size.slices))


def parts_done(job: Job) -> Part:
    match job.part:
        case "answers" | "calls":
            return _mutated(job)
        case "statements":
            return _misstated(job)
        case "faults" | "endpoint":
            return _spoilt(job)
        case "attacks":
            return _attacked(job)
        case "kills":
            return _killed(job)
        case _:
            return _repeated(job)


def _mutated(job: Job) -> Part:
    from dev.campaign.answers import mutate_answers
    from dev.campaign.calls import mutate_calls
    from dev.campaign.trials import generated_trials, real_trials

    if job.name == REAL and job.real is not None:
        trials = real_trials(Path(job.real))
    else:
        trials = generated_trials(job.size.samples, int(job.seed.split()[0]))
    mutate = mutate_answers if job.part == "answers" else mutate_calls
    tally = mutate(trials, job.number, f"{job.name} {job.seed}")
    return Part(job.part, job.name, tally, problems=list(tally.unexplained))


def _misstated(job: Job) -> Part:
    from dev.campaign.statements import mutate_source

    tally = mutate_source(Path(job.real or ""), job.name, job.number, job.size.episodes)
    return Part(job.part, job.name, tally, problems=list(tally.unexplained))


def _spoilt(job: Job) -> Part:
    from dev.campaign.faults import try_endpoint, try_files

    seed = int(job.seed.split()[0])
    if job.part == "endpoint":
        attempts = [try_endpoint(job.number, seed)]
    else:
        attempts = list(try_files(job.number, seed * 1_000_000, [job.name]))
    ends = {attempt.name: attempt.ends for attempt in attempts}
    problems = [failure for attempt in attempts for failure in attempt.failures]
    return Part("faults", job.name, ends=ends, problems=problems)


def _attacked(job: Job) -> Part:
    from dev.campaign.redteam import CASES, attack

    part = Part("attacks", job.name, ends={job.name: Counter()}, problems=[])
    for name in CASES[job.name]:
        end = attack(job.name, name)
        if end in (HELD, REFUSED):
            part.ends[job.name][end] += 1
        else:
            part.problems.append(f"{job.name}, {name}: {end}")
    return part


def _repeated(job: Job) -> Part:
    from dev.campaign.determinism import check_determinism

    found = check_determinism(job.number, int(job.seed.split()[0]), job.size.settings)
    counts = Counter({"settings": found.settings, "files": found.files})
    problems = [f"{one.file} differs with {one.setting}" for one in found.differing]
    return Part("determinism", job.name, ends={job.name: counts}, problems=problems)


def _killed(job: Job) -> Part:
    from dev.campaign.kills import check_kills

    found = check_kills(job.number, job.size.killed, job.seed)
    return Part("kills", job.name, ends={job.name: found.ends}, problems=found.problems)
