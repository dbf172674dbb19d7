"""How answers are drawn, as the settings of a run say."""

from __future__ import annotations

from callmark.config import RunConfig
from callmark.core.results import Decoding

DEFAULT_MAX_TURNS = 8
# Runners whose trials end by themselves: without --max-turns nothing cuts them short.
OWN_LENGTH = frozenset({"replay"})


def decoding_of(config: RunConfig) -> Decoding:
    own_length = config.runner in OWN_LENGTH
    fixed = config.determinism_mode
    return Decoding(
        temperature=0.0 if fixed else config.temperature,
        top_p=1.0 if fixed else config.top_p,
        max_tokens=config.max_tokens,
        seed=config.seed,
        max_turns=config.max_turns or (None if own_length else DEFAULT_MAX_TURNS),
        tool_choice=config.tool_choice,
    )
