"""`callmark completion`: a static script, made from the same parsers that read the options."""

from __future__ import annotations

from importlib import import_module

from callmark.cli import MODULES
from callmark.cli.options import CommandParser


def build_parser() -> CommandParser:
    parser = CommandParser(
        "completion",
        """
        Print a script that completes commands and options in your shell.
        """,
        """
        eval "$(callmark completion bash)"
        callmark completion zsh > ~/.zfunc/_callmark
        callmark completion fish > ~/.config/fish/completions/callmark.fish
        """,
    )
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))
    return parser


def main(arguments: list[str]) -> int:
    shell = build_parser().parse_args(arguments).shell
    print({"bash": _bash, "zsh": _zsh, "fish": _fish}[shell]())
    return 0


def words_by_command() -> dict[str, list[str]]:
    """What may follow each command: its options; for a family, its members."""
    words: dict[str, list[str]] = {}
    for name, module in MODULES.items():
        family, _, member = name.partition(" ")
        if member:
            words.setdefault(family, []).append(member)
        parser: CommandParser = import_module(module).build_parser()
        words[name] = sorted(parser._option_string_actions)
    return words


def _first_words() -> list[str]:
    return sorted({name.partition(" ")[0] for name in MODULES})


def _bash() -> str:
    cases = "\n".join(
        f'    "{name}") words="{" ".join(words)}" ;;' for name, words in words_by_command().items()
    )
    pairs = "|".join(f'"{name}"' for name in MODULES if " " in name)
    return f"""_callmark() {{
  local words current="${{COMP_WORDS[COMP_CWORD]}}" command="${{COMP_WORDS[1]}}"
  local pair="$command ${{COMP_WORDS[2]}}"
  case "$pair" in {pairs}) command="$pair" ;; esac
  if [ "$COMP_CWORD" -eq 1 ]; then words="{" ".join(_first_words())}"; else
  case "$command" in
{cases}
  esac; fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _callmark callmark"""


def _zsh() -> str:
    return f"#compdef callmark\nautoload -U +X bashcompinit && bashcompinit\n{_bash()}"


def _fish() -> str:
    lines = [f"complete -c callmark -n __fish_use_subcommand -a '{' '.join(_first_words())}'"]
    for name, words in words_by_command().items():
        seen = " and ".join(f"__fish_seen_subcommand_from {part}" for part in name.split())
        condition = seen.replace(" and ", "; and ")
        for word in words:
            what = f"-l {word[2:]}" if word.startswith("--") else f"-a '{word}'"
            if not word.startswith("-") or word.startswith("--"):
                lines.append(f"complete -c callmark -n '{condition}' {what}")
    return "\n".join(lines)
