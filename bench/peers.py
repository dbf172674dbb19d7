"""What one served sample costs in other harnesses, in units of ours: the same questions, the same
server, the same number at once. Each lives in an environment of its own (`make bench-peers`)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

from bench.http import AT_ONCE, run_callmark, stub_server, used_by, write_files

OURS = (1_000, 6_000)
ROUNDS = 3
SCRIPTS = Path(__file__).parent / "peer_scripts"
VERSION = "import sys; from importlib.metadata import version; print(version(sys.argv[1]))"


class Peer(NamedTuple):
    """`sizes`: samples of the two runs whose difference counts; `beside`: what it is used with."""

    name: str
    sizes: tuple[int, int]
    beside: tuple[str, ...] = ()
    bound: str = ""


PEERS = (
    Peer("inspect-ai", (50, 350), ("openai",), ">= 30"),
    Peer("pydantic-evals", (100, 1_100), ("openai",)),
    Peer("lm-eval", (500, 3_500)),
)
NOTES = (
    "Each sample is a question, a call of a search, its result and an answer: two requests to one"
    f" stub server (`bench/stub_server.py`), {AT_ONCE} at once, and a score that compares the"
    " number in the answer. A figure is the difference of two runs of different size, so that what"
    f" it takes to start is left out on all sides; it is the median of {ROUNDS} rounds in which all"
    " take turns.",
    "`callmark run` offers six tools, the others one. It validates the arguments, answers them from"
    " fixtures, journals every trial, and scores grounding, calls, controls and privacy."
    " inspect-ai has its own loop, and writes its log. The loop of pydantic-evals is written by"
    " hand with the openai client (`bench/peer_scripts`). lm-eval has no loop of tools: it sends"
    " both requests, written beforehand, and never reads the first answer, so it does less than the"
    " others.",
    "To repeat it: `make bench-peers` installs each of them, at the version above, below `build/`"
    " and writes this section.",
)


def rows() -> Iterator[tuple[str, str, str]]:
    for peer in PEERS:
        if not python_of(peer).exists():
            sys.exit(f"{python_of(peer)} is not there: make bench-peers installs it")
    with TemporaryDirectory() as name, stub_server() as url:
        folder = Path(name)

        def ours(size: int) -> float:
            write_files(folder, size)
            return run_callmark(folder, url).cpu_seconds

        own: list[float] = []
        theirs: dict[str, list[float]] = {peer.name: [] for peer in PEERS}
        for _ in range(ROUNDS):
            own.append(_per_sample(ours, OURS))
            for peer in PEERS:
                theirs[peer.name].append(_per_sample(_cost_of(peer, url, folder), peer.sizes))
    for peer in PEERS:
        ratios = [one / two for one, two in zip(theirs[peer.name], own, strict=True)]
        what = f"CPU of a served sample: {_label(peer)} ÷ callmark"
        ratio = median(ratios)
        yield what, f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.1f}", peer.bound
        yield f"  ms per sample: {peer.name}", f"{median(theirs[peer.name]):.2f}", ""
    yield "  ms per sample: callmark run", f"{median(own):.3f}", ""


def python_of(peer: Peer) -> Path:
    return Path("build") / f"peers-{peer.name}" / "bin" / "python"


def _per_sample(cpu_seconds_of: Callable[[int], float], sizes: tuple[int, int]) -> float:
    """Milliseconds; what it takes to start is left out."""
    few, many = sizes
    return (cpu_seconds_of(many) - cpu_seconds_of(few)) / (many - few) * 1000


def _cost_of(peer: Peer, url: str, folder: Path) -> Callable[[int], float]:
    script = SCRIPTS / f"with_{peer.name.replace('-', '_')}.py"

    def cost(size: int) -> float:
        arguments = [url, folder / "logs", size, AT_ONCE]
        return used_by([str(word) for word in (python_of(peer), script, *arguments)]).cpu_seconds

    return cost


def _label(peer: Peer) -> str:
    """Its name and version, and those of what it is used with."""
    named = [f"{name} {_version(peer, name)}" for name in (peer.name, *peer.beside)]
    return named[0] + (f" ({', '.join(named[1:])})" if named[1:] else "")


def _version(peer: Peer, package: str) -> str:
    words = [str(python_of(peer)), "-c", VERSION, package]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
