"""What is probed: the records of a spec. `spec_reading` makes them from plain values."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from callmark.core.jsontext import Json

SchemaMode = Literal["full", "minimal"]

_Positive = Annotated[int, msgspec.Meta(ge=1)]
_Name = Annotated[str, msgspec.Meta(min_length=1)]
_Seed = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
MAX_NULLS = 1000


class ToolUseCase(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One prompt, the tool that its call is checked against (an OpenAI-style function, plain or
    wrapped), and the tool that should be called."""

    prompt: str
    tool_spec: dict[str, Json]
    gold_tool_name: _Name
    max_new_tokens: _Positive = 256

    @property
    def function(self) -> dict[str, Json]:
        inner = self.tool_spec.get("function")
        return inner if isinstance(inner, dict) else self.tool_spec

    @property
    def parameters(self) -> dict[str, Json]:
        return self.function.get("parameters") or {}


class FidelitySpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`kind: tool_use_fidelity`. `allowed_tools` None: each call must name its case's own tool;
    a list (also an empty one) is the whole surface. `schema`: `full` is JSON Schema and any call
    format, `minimal` required keys and plain type tags of a JSON object with a name and an object
    of `arguments`. `ordered_lists`: lists with another order disagree."""

    kind: Literal["tool_use_fidelity"] = "tool_use_fidelity"
    name: _Name = "tool_use_fidelity"
    cases: tuple[ToolUseCase, ...] = ()
    allowed_tools: tuple[str, ...] | None = None
    assert_validity_delta_gte: Annotated[float, msgspec.Meta(ge=-1, le=1)] = -0.05
    assert_hallucination_lte: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.10
    assert_z_gte: float = 3.0
    weight: Annotated[float, msgspec.Meta(ge=0)] = 1.0
    schema: SchemaMode = "full"
    ordered_lists: bool = False


class NullAdapterSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`kind: null_adapter`. How many random adapters of the trained one's shape are made, for
    each multiple of its rank, and how: `matched` keeps the singular values of each update with
    random directions, `init_scale` draws both factors from N(0, init_scale)."""

    kind: Literal["null_adapter"] = "null_adapter"
    name: _Name = "null_adapter"
    runs: Annotated[int, msgspec.Meta(ge=1, le=MAX_NULLS)] = 5
    method: Literal["matched", "init_scale"] = "matched"
    init_scale: Annotated[float, msgspec.Meta(gt=0)] = 0.02
    rank_multipliers: tuple[Annotated[float, msgspec.Meta(gt=0)], ...] = (1.0,)


SuiteEntry = FidelitySpec | NullAdapterSpec
KINDS: dict[str, type[SuiteEntry]] = {
    "null_adapter": NullAdapterSpec,
    "tool_use_fidelity": FidelitySpec,
}


class ModelSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One view's model. `hf`: a local checkpoint, `adapter` on top of it if there is one;
    `openai`: the model of that name behind `endpoint`."""

    kind: Literal["hf", "openai"] = "hf"
    base: _Name
    adapter: _Name | None = None
    endpoint: _Name | None = None


class Models(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    base: ModelSpec
    ft: ModelSpec


class Defaults(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    seed: _Seed = 0


class ProbeSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole spec file."""

    version: Literal[1]
    models: Models
    defaults: Defaults = Defaults()
    suite: tuple[SuiteEntry, ...] = ()


def calibration_spec() -> FidelitySpec:
    """Two trivial cases, for nulls where the user has no cases of his own."""
    query = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
    number = {"type": "number"}
    sum_of = {
        "type": "object",
        "properties": {"a": number, "b": number},
        "required": ["a", "b"],
    }
    return FidelitySpec(
        name="_calibration",
        cases=(
            ToolUseCase(
                prompt="Search the web for the capital of France.",
                tool_spec={"name": "search_web", "parameters": query},
                gold_tool_name="search_web",
            ),
            ToolUseCase(
                prompt="Add 2 and 2.",
                tool_spec={"name": "calculator", "parameters": sum_of},
                gold_tool_name="calculator",
            ),
        ),
    )
