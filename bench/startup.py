"""How much CPU `callmark --help`, a command's `--help` and `import callmark` cost, in units of
`python -c pass`."""

from __future__ import annotations

import resource
import subprocess
import sys
from statistics import median

ROUNDS = 21
COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "callmark --help": ["-m", "callmark", "--help"],
    "callmark --version": ["-m", "callmark", "--version"],
    "import callmark": ["-c", "import callmark"],
    "callmark run --help": ["-m", "callmark", "run", "--help"],
}
BOUNDS = {"callmark --help": 3.0, "callmark run --help": 6.0}


def cpu_seconds(arguments: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)


def measure(rounds: int = ROUNDS) -> dict[str, float]:
    """Median CPU seconds of each command. They take turns, so that a busy moment hits all alike."""
    seen: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(rounds):
        for name, arguments in COMMANDS.items():
            seen[name].append(cpu_seconds(arguments))
    return {name: median(times) for name, times in seen.items()}


def rows() -> list[tuple[str, str, str]]:
    """(what, ratio, bound) for the table."""
    times = measure()
    unit = times["python -c pass"]
    return [
        (
            f"{name} ÷ python -c pass (CPU)",
            f"{seconds / unit:.2f}",
            f"<= {BOUNDS[name]:g}" if name in BOUNDS else "",
        )
        for name, seconds in times.items()
        if name != "python -c pass"
    ]
