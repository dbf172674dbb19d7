"""`callmark tools`."""

from __future__ import annotations

from pathlib import Path

from callmark.cli.options import LIVE, CommandParser, add_groups, live_options
from callmark.errors import UsageError


def build_parser() -> CommandParser:
    parser = CommandParser(
        "tools",
        """
        Write the tool specs that --registry reads, from Python functions, an MCP
        server or an OpenAPI document.

        No tool is called. Types, defaults and docstrings become JSON Schema. An
        operation of an OpenAPI document becomes a tool with its parameters and the
        fields of its JSON body. Tools that the file already has are replaced, others
        are kept.
        """,
        """
        callmark tools tools.json --python shop:find_order --python shop:cancel_order
        callmark tools tools.json --mcp "uvx mcp-server-time"
        callmark tools tools.json --openapi openapi.yaml
        """,
    )
    parser.add_argument("file", metavar="FILE", type=Path, help="registry to write")
    parser.add_argument(
        "--openapi", type=Path, metavar="FILE", help="OpenAPI 3 document, JSON or YAML"
    )
    add_groups(parser, {"live tools": LIVE})
    return parser


def main(arguments: list[str]) -> int:
    options = build_parser().parse_args(arguments)
    live = live_options(options)
    if options.openapi is None and live.mcp is None and not live.python:
        raise UsageError(
            "which tools? Give --python MODULE:NAME, --mcp COMMAND|URL or --openapi FILE"
        )
    if options.openapi is not None and (live.mcp is not None or live.python):
        raise UsageError("--openapi: give it alone; a second call adds other tools to the file")

    from callmark.calls.registry import Registry
    from callmark.live.openapi import read_openapi
    from callmark.live.record import open_live
    from callmark.live.recorder import read_specs, write_specs
    from callmark.store.files import check_writable

    check_writable(options.file)
    if options.openapi is not None:
        found = read_openapi(options.openapi)
    else:
        with open_live(live) as tools:
            found = [dict(spec) for spec in tools.specs]
    names = [str(spec["name"]) for spec in found]
    kept = [spec for spec in read_specs(options.file) if spec["name"] not in names]
    Registry.from_specs([*kept, *found], where=str(options.file))
    write_specs(options.file, [*kept, *found])
    others = f", {len(kept)} kept" if kept else ""
    written = f"{len(found)} tool{'s' * (len(found) != 1)} written{others}"
    print(f"{options.file}: {written}: {', '.join(sorted(names))}")
    print(f"next: callmark dataset new DATASET --registry {options.file} --prompt TEXT --call …")
    return 0
