"""`callmark init`."""

from __future__ import annotations

from pathlib import Path

from callmark.cli.options import CommandParser
from callmark.errors import CannotWrite, UsageError


def build_parser() -> CommandParser:
    parser = CommandParser(
        "init",
        """
        Write a commented callmark.yaml, which `callmark run` reads when you call it
        in that folder.

        With --example, the bundled dataset, fixtures and recorded answers are copied
        next to it. `callmark run` then works right away, and you can replace them one
        by one. Existing files are never overwritten.
        """,
        """
        callmark init
        callmark init my-eval --example && cd my-eval && callmark run
        """,
    )
    parser.add_argument("folder", nargs="?", type=Path, default=Path(), metavar="DIR")
    parser.add_argument("--example", action="store_true", help="also copy the bundled example")
    return parser


def main(arguments: list[str]) -> int:
    options = build_parser().parse_args(arguments)

    from callmark.config import AUTOMATIC, write_template
    from callmark.resources import demo_paths

    folder: Path = options.folder
    demo = demo_paths()
    places = {
        demo.dataset: folder / "data" / "eval.jsonl",
        demo.answers: folder / "data" / "answers.jsonl",
        demo.fixtures: folder / "data" / "fixtures",
    }
    if options.example:
        for target in places.values():
            if target.exists():
                raise UsageError(f"{target}: already exists and was left as it is")
    write_template(folder / AUTOMATIC)
    print(f"{folder / AUTOMATIC}: settings; enter where your files are")
    if options.example:
        for source, target in places.items():
            _copy(source, target)
            print(f"{target}")
        print("next: callmark run")
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
