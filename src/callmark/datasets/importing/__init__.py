"""Datasets out of what others have: conversations, benchmark results, logs, tables."""

from typing import Literal, get_args

# Nothing else stands here: `dataset import --help` lists them and loads no reader.
Format = Literal[
    "openai",
    "anthropic",
    "responses",
    "atif",
    "claude-code",
    "codex",
    "gemini-cli",
    "mini-swe-agent",
    "langchain",
    "sharegpt",
    "tau-bench",
    "tau2",
    "bfcl",
    "inspect",
    "otel-genai",
    "openinference",
    "langfuse",
    "openai-agents",
    "jsonl",
]
CHOICES = ("auto", *get_args(Format), "parquet")
