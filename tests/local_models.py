"""Small checkpoints made on the spot: random ones, and one that says what it is told to say."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

SPECIAL = ("<|pad|>", "<|start|>", "<|end|>", "<|stop|>")

# Renders tools, calls and results, ends turns with <|end|>.
FULL_TEMPLATE = """\
{%- if tools %}<|start|>system
{% if messages[0].role == 'system' %}{{ messages[0].content }}
{% endif %}Tools:{% for tool in tools %} {{ tool | tojson }}{% endfor %}<|end|>
{% elif messages[0].role == 'system' %}<|start|>system
{{ messages[0].content }}<|end|>
{% endif %}
{%- for message in messages %}{% if message.role != 'system' %}<|start|>{{ message.role }}
{{ message.content }}{% for call in message.tool_calls or [] %}<tool_call>
{"name": {{ call.function.name | tojson }}, "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{% endfor %}<|end|>
{% endif %}{% endfor %}
{%- if add_generation_prompt %}<|start|>assistant
{% endif %}"""
# Knows neither tools nor calls, as many templates in the wild.
PLAIN_TEMPLATE = """\
{%- for message in messages %}<|start|>{{ message.role }}
{{ message.content }}<|end|>
{% endfor %}{% if add_generation_prompt %}<|start|>assistant
{% endif %}"""
RESPONSE_TEMPLATE = {
    "defaults": {"role": "assistant"},
    "start_anchor": "<|start|>assistant\n",
    "fields": {
        "reasoning_content": {"open": "<think>", "close": "</think>", "content": "text"},
        "tool_calls": {
            "open_pattern": r"\s*<tool_call>",
            "close": "</tool_call>",
            "repeats": True,
            "content": "json",
            "transform": {"type": "function", "function": "{content}"},
        },
        "content": {"close_pattern": r"\s*<\|end\|>", "content": "text"},
    },
}


def make_tokenizer(
    template: str | None = FULL_TEMPLATE,
    *,
    words: Sequence[str] = (),
    response_template: dict | None = None,
):
    """Every byte is a token; beside them the special tokens, and whole `words` if given."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: at for at, token in enumerate((*SPECIAL, *alphabet))}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(SPECIAL))
    tokenizer.add_tokens([AddedToken(word, normalized=False, special=False) for word in words])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=SPECIAL[0],
        eos_token=SPECIAL[3],
        clean_up_tokenization_spaces=False,
        chat_template=template,
        response_template=response_template,
    )


def small_config(tokenizer, **changes):
    from transformers import LlamaConfig

    settings = {
        "vocab_size": len(tokenizer),
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 8192,
        "initializer_range": 0.4,  # far from even: otherwise every choice is a near tie
        "bos_token_id": None,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": 0,
    }
    return LlamaConfig(**{**settings, **changes})


def random_model(folder: Path, *, tokenizer=None, seed: int = 0, **config) -> Path:
    """A model that babbles, in a folder as anybody would save it."""
    import torch
    from transformers import LlamaForCausalLM

    tokenizer = tokenizer or make_tokenizer()
    torch.manual_seed(seed)
    LlamaForCausalLM(small_config(tokenizer, **config)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def chain_model(folder: Path, chain: Mapping[str, str], **tokens) -> Path:
    """A model that says after each token the one that `chain` names, and <|end|> after all
    others. Its layers add nothing, so that only the last token counts."""
    import torch
    from transformers import LlamaForCausalLM

    words = {*chain, *chain.values()} - set(SPECIAL)
    tokenizer = make_tokenizer(words=sorted(words), **tokens)
    size = len(tokenizer)
    config = small_config(
        tokenizer, hidden_size=size + size % 2, num_attention_heads=1, num_key_value_heads=1
    )
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.fill_(1.0 if "norm" in name else 0.0)
        model.model.embed_tokens.weight[:, :size] = torch.eye(size)
        ids = tokenizer.convert_tokens_to_ids
        model.lm_head.weight[ids("<|end|>")] = 1.0
        for before, after in chain.items():
            model.lm_head.weight[ids(after), ids(before)] = 2.0
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def make_adapter(folder: Path, base: Path, *, scale: float = 1.0, seed: int = 1, **config) -> Path:
    """A LoRA adapter of random numbers; with `scale` 0 it changes nothing."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(base)
    torch.manual_seed(seed)
    settings = {"r": 4, "target_modules": ["q_proj", "v_proj"], "task_type": "CAUSAL_LM", **config}
    adapted = get_peft_model(model, LoraConfig(**settings))
    with torch.no_grad():
        for name, weight in adapted.named_parameters():
            if "lora_B" in name:
                weight.normal_(0, scale)
    adapted.save_pretrained(folder)
    return folder


def edit_json(path: Path, **changes) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **changes}), "utf-8")
