"""What a server says instead of an answer, and whose business it is."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callmark.errors import CallmarkError, Incomplete, UsageError
from callmark.records.seams import Reply
from callmark.runners.http.trouble import Refused, Retry, Situation, complaint_of, judge_complaint

SITUATION = Situation(
    where="http://host/v1",
    model="m",
    fields=frozenset({"model", "messages", "tools", "temperature", "seed", "top_k"}),
    listed=("a", "b"),
    has_key=True,
    has_answered=False,
)
ANSWERED = Situation(
    where="http://host/v1",
    model="m",
    fields=SITUATION.fields,
    listed=(),
    has_key=False,
    has_answered=True,
)


def verdict(status, body, situation=SITUATION, asked=None):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return judge_complaint(complaint_of(status, data), situation, asked)


def said(message, **more):
    return {"error": {"message": message, **more}}


OVERFLOWS = {
    "openai": (400, said("This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens. Please reduce the length of the messages.", param="messages", code="context_length_exceeded")),
    "vllm": (400, {"object": "error", "message": "This model's maximum context length is 2048 tokens. However, you requested 3000 tokens (1976 in the messages, 1024 in the completion).", "type": "BadRequestError", "param": None, "code": 400}),
    "vllm new": (400, said("'max_tokens' or 'max_completion_tokens' is too large: 1024. This model's maximum context length is 2048 tokens and your request has 1500 input tokens", code=400)),
    "vllm decoder": (400, said("The decoder prompt (length 5000) is longer than the maximum model length of 4096.")),
    "vllm negative": (400, said("max_tokens must be at least 1, got -120.")),
    "llama.cpp": (400, said("the request exceeds the available context size, try increasing it", code=400, type="exceed_context_size_error")),
    "llama.cpp old": (500, said("context size has been exceeded")),
    "tgi": (422, {"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens and 1024 `max_new_tokens`", "error_type": "validation"}),
    "tgi inputs": (422, {"error": "Input validation error: `inputs` must have less than 1024 tokens. Given: 2000"}),
    "sglang": (400, said("The input (5000 tokens) is longer than the model's context length (4096 tokens).")),
    "sglang requested": (400, said("Requested token count exceeds the model's maximum context length of 4096 tokens.")),
    "anthropic": (400, said("prompt is too long: 210000 tokens > 200000 maximum", type="invalid_request_error")),
    "anthropic sum": (400, said("input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000")),
    "mistral": (400, {"object": "error", "message": "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length", "type": "invalid_request_prompt", "code": "3051"}),
    "gemini": (400, [said("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", code=400, status="INVALID_ARGUMENT")]),
    "groq": (400, said("Please reduce the length of the messages or completion.", code="context_length_exceeded", param="messages")),
    "cohere": (400, {"message": "too many tokens: total number of tokens in the prompt cannot exceed 4081"}),
    "bedrock": (400, {"message": "Input is too long for requested model."}),
    "fireworks": (400, said("The prompt is too long: 5000, model maximum context length: 4096")),
    "xai": (400, {"code": "Client specified an invalid argument", "error": "This model's maximum prompt length is 131072 but the request contains 140000 tokens."}),
    "moonshot": (400, said("Invalid request: Your request exceeded model token limit: 8192", type="invalid_request_error")),
    "qwen": (400, said("Range of input length should be [1, 30720]", code="invalid_parameter_error")),
    "minimax": (400, said("context window exceeds limit (2013)")),
    "lm studio": (400, {"error": "Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough."}),
    "ollama": (400, said("input length exceeds the context length")),
    "openrouter": (400, said("This endpoint's maximum context length is 32768 tokens. However, you requested about 40000 tokens", code=400)),
}  # fmt: skip


@pytest.mark.parametrize("server", OVERFLOWS)
def test_a_conversation_that_is_too_long_is_the_models_outcome(server):
    assert verdict(*OVERFLOWS[server]) == Reply(text="", finish="context_exceeded")


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (
            429,
            said(
                "Rate limit reached: tokens per min. Limit 30000. Your prompt is too long for it."
            ),
        ),
        (503, said("the model's context window is being loaded")),
        (401, said("no access to the maximum context length tier")),
    ],
)
def test_lengths_in_other_troubles_are_no_overflow(status, body):
    try:
        outcome = verdict(status, body)
    except UsageError:
        return
    assert not isinstance(outcome, Reply)


@pytest.mark.parametrize(
    ("status", "body", "named"),
    [
        (
            400,
            said("Web search options not supported with this model.", param="web_search_options"),
            "web_search_options",
        ),
        (
            400,
            said("Unsupported value: 'temperature' does not support 0.0 with this model."),
            "temperature",
        ),
        (
            422,
            {
                "detail": [
                    {
                        "type": "extra_forbidden",
                        "loc": ["body", "seed"],
                        "msg": "Extra inputs are not permitted",
                    }
                ]
            },
            "seed",
        ),
        (
            400,
            {
                "object": "error",
                "message": "[{'type': 'extra_forbidden', 'loc': ('body', 'top_k')}]",
            },
            "top_k",
        ),
        (400, said("Invalid value for seed", param="seed"), "seed"),
    ],
)
def test_a_refusal_that_names_a_parameter_stops_the_run(status, body, named):
    with pytest.raises(UsageError, match=rf"^http://host/v1: .*{named!r}.*null in callmark.yaml"):
        verdict(status, body, ANSWERED)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (
            404,
            said(
                "The model `m` does not exist or you do not have access to it.",
                code="model_not_found",
            ),
        ),
        (404, {"object": "error", "message": "The model `m` does not exist.", "param": "model"}),
        (404, said('model "m" not found, try pulling it first')),
        (400, {"message": "Invalid model: m", "type": "invalid_model", "code": "1500"}),
        (404, said("models/m is not found for API version v1main")),
        (404, {"type": "error", "error": {"type": "not_found_error", "message": "model: m"}}),
        (400, said("m is not a valid model ID", code=400)),
    ],
)
def test_an_unknown_model_stops_the_run_and_names_those_there(status, body):
    with pytest.raises(UsageError, match=r"^--model: http://host/v1 has no 'm'.*it has: a, b$"):
        verdict(status, body)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, said("registry.ollama.ai/library/gemma:2b does not support tools", type="api_error")),
        (
            404,
            said(
                "No endpoints found that support tool use. To learn more visit: https://x", code=404
            ),
        ),
        (
            400,
            said(
                '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
            ),
        ),
        (400, said("`tool calling` is not supported with this model", param="tools")),
        (400, said("Function calling is not supported")),
    ],
)
def test_a_model_that_cannot_do_tools_stops_the_run(status, body):
    with pytest.raises(UsageError, match="does not do tools"):
        verdict(status, body)


def test_a_wrong_key_and_no_key_are_told_apart():
    with pytest.raises(UsageError, match=r"does not accept the key.*OPENAI_API_KEY"):
        verdict(401, said("Incorrect API key provided"))
    with pytest.raises(UsageError, match="none was given"):
        verdict(403, b"", ANSWERED)


def test_a_wrong_path_is_noticed_at_the_start_and_a_gap_later_on():
    with pytest.raises(UsageError, match=r"no /chat/completions.*looks like .*/v1"):
        verdict(404, b"<html>404</html>")
    assert verdict(404, b"404 page not found", ANSWERED) == Retry("404: 404 page not found")


def test_a_redirect_is_not_followed():
    with pytest.raises(UsageError, match="--base-url"):
        verdict(308, b"")


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529])
def test_what_may_pass_is_tried_again(status):
    outcome = verdict(status, said("later"), asked=3.0)
    assert outcome == Retry(f"{status}: later", 3.0, overloaded=status in (429, 503, 529))


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (402, said("Insufficient credits")),
        (429, said("You exceeded your current quota", code="insufficient_quota")),
    ],
)
def test_an_empty_account_ends_the_run_for_now(status, body):
    with pytest.raises(Incomplete, match="--resume"):
        verdict(status, body)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (
            400,
            said(
                "The response was filtered due to the prompt triggering content management policy.",
                code="content_filter",
            ),
        ),
        (403, said("input was flagged", metadata={"flagged_input": "x", "reasons": ["y"]})),
        (
            400,
            said("Output data may contain inappropriate content.", code="data_inspection_failed"),
        ),
    ],
)
def test_a_content_filter_is_the_models_outcome(status, body):
    assert verdict(status, body) == Reply(text="", finish="content_filter")


def test_what_the_model_wrote_is_its_answer_even_if_the_server_did_not_like_it():
    written = '{"name": "web_search", "arguments": {"foo": "bar"}}'
    body = said("Tool call validation failed", code="tool_use_failed", failed_generation=written)
    assert verdict(400, body) == Reply(text=written)


def test_a_refusal_of_one_request_is_not_tried_again():
    assert verdict(400, said("image is broken"), ANSWERED) == Refused("400: image is broken")
    assert verdict(413, b"") == Refused("413")


def test_a_quote_of_the_server_is_one_short_line():
    outcome = verdict(500, said("a\nb" * 1000))
    assert "\n" not in outcome.reason
    assert len(outcome.reason) < 400


@given(
    st.integers(300, 599),
    st.binary(max_size=60)
    | st.from_regex(r'\{"(error|detail|message)": [^\n]{0,30}\}').map(str.encode),
)
def test_no_error_body_whatever_raises_anything_unexpected(status, body):
    try:
        outcome = verdict(status, body)
    except CallmarkError:
        return
    assert isinstance(outcome, Reply | Retry | Refused)


@pytest.mark.parametrize(
    "place", [5, None, True, 1.5, {}, {"a": 1}, [], [[]], [5, {}, None], "body"]
)
def test_f13_a_place_of_any_shape_is_read(place):
    body = {"detail": [{"loc": place, "msg": "x"}]}
    assert verdict(422, body, ANSWERED) == Refused("422: x")


@pytest.mark.parametrize("code", ["9" * 5000, 10**4000, [], {}, -1, 1e300])
def test_f13_a_code_of_any_size_is_read(code):
    assert isinstance(verdict(400, said("x", code=code), ANSWERED), Refused)
    assert isinstance(verdict(400, b'{"error": {"code": ' + b"9" * 5000 + b"}}", ANSWERED), Refused)


def test_a_redirect_of_a_server_that_has_answered_costs_one_trial():
    assert isinstance(verdict(302, b"", ANSWERED), Refused)


def test_f11_of_a_body_that_is_no_error_message_nothing_is_read():
    outcome = verdict(500, b"x" * (2 << 20), ANSWERED)
    assert outcome == Retry("500: a body of 2,097,152 bytes")
