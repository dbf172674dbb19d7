"""What every runner is made from."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import msgspec

from callmark.records.jsontext import Json
from callmark.records.results import Decoding
from callmark.records.seams import Runner


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """Where a protocol is spoken below a base URL, and what lets us in: the header of the key (as a
    bearer's, if it is Authorization) and headers that every request has. `folder`: what base URLs
    are mostly given without. The variables are those of the environment."""

    path: str
    folder: str = ""
    key_header: str = "Authorization"
    headers: dict[str, str] = {}
    url_variable: str = "OPENAI_BASE_URL"
    key_variable: str = "OPENAI_API_KEY"
    example: str = "https://api.openai.com/v1"


# The runners that ask a server: for them a model is a name.
SERVED: dict[str, Address] = {
    "openai_http": Address(path="/chat/completions"),
    "openai_responses": Address(path="/responses"),
    "anthropic_messages": Address(
        path="/messages",
        folder="/v1",
        key_header="x-api-key",
        headers={"anthropic-version": "2023-06-01"},
        url_variable="ANTHROPIC_BASE_URL",
        key_variable="ANTHROPIC_API_KEY",
        example="https://api.anthropic.com",
    ),
}


class ServedOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How to talk to a served model. `max_connections` None: adapts to what the server bears.
    Values of `api_key` and `headers` are secrets: already resolved, never written anywhere.
    `secrets`: all that came out of the environment; `extra_body_written`: without that."""

    base_url: str | None = None
    api_key: str | None = None
    headers: dict[str, str] = {}
    extra_body: dict[str, Json] = {}
    extra_body_written: dict[str, Json] = {}
    secrets: tuple[str, ...] = ()
    max_connections: int | None = None
    request_timeout: float = 120.0
    max_retries: int = 5
    model_revision: str | None = None

    def __repr__(self) -> str:
        return "Served(…)"


class LocalOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How to load and run a local checkpoint. `batch_size` None: chosen by length."""

    adapter: str | None = None
    dtype: str = "float32"
    device: str = "cpu"
    batch_size: int | None = None


class RunnerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`model` is a name or a path, as the runner understands it. `raw_prompt`: the text of the
    only user message is the exact prompt, no chat template goes around it. `asked` says which
    samples it will be asked about; None: about any."""

    model: str | None
    decoding: Decoding
    tool_registry_sha256: str
    tools: tuple[dict[str, Json], ...] = ()
    parse_text: str = "auto"
    determinism_mode: bool = False
    raw_prompt: bool = False
    served: ServedOptions = ServedOptions()
    local: LocalOptions = LocalOptions()
    asked: Callable[[str], bool] | None = None


# A runner's entry point: a context manager, so that files and connections are closed at the end.
RunnerFactory = Callable[[RunnerOptions], AbstractContextManager[Runner]]
