"""`callmark init`."""

from __future__ import annotations

from pathlib import Path

from callmark.cli.options import CommandParser
from callmark.errors import CannotWrite, UsageError


def build_parser() -> CommandParser:
    parser = CommandParser(
        "init",
        """
        Write a small evaluation that runs and passes: three tools, 18 samples,
        recorded tool results and answers.

        `callmark run` in that folder reads its callmark.yaml, which explains every
        setting. Replace the parts with your own, one by one. With --example, the
        larger bundled dataset takes their place; with --bare, only callmark.yaml is
        written. Existing files are never overwritten.
        """,
        """
        callmark init my-eval && cd my-eval && callmark run
        callmark init --bare
        """,
    )
    parser.add_argument("folder", nargs="?", type=Path, default=Path(), metavar="DIR")
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--example", action="store_true", help="copy the bundled dataset of 153 samples instead"
    )
    which.add_argument("--bare", action="store_true", help="write only callmark.yaml")
    return parser


def main(arguments: list[str]) -> int:
    options = build_parser().parse_args(arguments)

    from callmark.config import AUTOMATIC, write_template
    from callmark.resources import demo_paths, starter_paths

    folder: Path = options.folder
    shipped = demo_paths() if options.example else starter_paths()
    data = folder / "data"
    places = {
        shipped.dataset: (data / "eval.jsonl", "the samples: prompts, expected calls, facts"),
        shipped.fixtures: (data / "fixtures", "what the tools answer"),
        shipped.answers: (data / "answers.jsonl", "what a model said; runner: replay reads them"),
    }
    if shipped.registry is not None:
        places[shipped.registry] = (data / "tools.json", "the specs of the tools")
    if options.bare:
        places = {}
    for target, _ in places.values():
        if target.exists():
            raise UsageError(f"{target}: already exists and was left as it is")
    write_template(folder / AUTOMATIC, own_tools=data / "tools.json" in dict(places.values()))
    told = "enter where your files are" if options.bare else "every setting, with comments"
    print(f"{folder / AUTOMATIC}: {told}")
    for source, (target, what) in places.items():
        _copy(source, target)
        print(f"{target}: {what}")
    if places:
        there = "" if folder == Path() else f"cd {folder} && "
        print(f"next: {there}callmark run")
    return 0


def _copy(source: Path, target: Path) -> None:
    import shutil

    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copyfile(source, target)
    except OSError as error:
        raise CannotWrite(f"{target}: cannot be written: {error.strerror}") from None
