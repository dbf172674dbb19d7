"""Batches never decide: the same tokens as one prompt at a time, drawn or not."""

import pytest
import torch
from tests.local_models import make_tokenizer, small_config
from tests.pace import few
from transformers import AutoModelForCausalLM, LlamaForCausalLM, MistralConfig, MistralForCausalLM

from callmark.runners.hf.generate import Generator, Passes, Prompt, TokenChoice

ENDS = frozenset({2, 3, *range(40, 60)})


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return LlamaForCausalLM(small_config(make_tokenizer())).eval()


def draws(*shape, seed=0):
    return torch.randint(4, 260, shape, generator=torch.Generator().manual_seed(seed)).tolist()


def prompts(count=16, *, prefix=40, limit=12):
    """One beginning, tails of every length."""
    beginning = draws(prefix)
    return [
        Prompt(beginning + draws(3 + 5 * number % 31, seed=number), limit, seed=number)
        for number in range(count)
    ]


def one_at_a_time(model, choice, given):
    generator = generator_of(model, choice, "equal")
    return [generator.generate([prompt], 1)[0] for prompt in given]


def generator_of(model, choice, batching=None):
    return Generator(model, choice, draws(32), batching)


CHOICES = {
    "greedy": TokenChoice(end_ids=ENDS),
    "drawn": TokenChoice(end_ids=ENDS, temperature=0.9),
    "nucleus": TokenChoice(end_ids=ENDS, temperature=1.3, top_p=0.7),
}


@pytest.mark.parametrize("choice", few(CHOICES.values()), ids=CHOICES)
def test_outputs_equal_those_of_one_prompt_at_a_time(model, choice):
    given = prompts()
    alone = one_at_a_time(model, choice, given)
    for batching, size in (("prefix", None), ("prefix", 8), ("padded", None), ("equal", 8)):
        assert generator_of(model, choice, batching).generate(given, size) == alone
    assert len({one.ids for one in alone}) > 8
    assert {one.ended for one in alone} == {True, False}


def test_a_family_of_prompts_computes_its_beginning_once(model):
    given = prompts(16, prefix=40)
    generator = generator_of(model, CHOICES["greedy"], "prefix")
    generator.generate(given)
    assert generator.computed == 40 + sum(len(one.ids) - 40 for one in given)


@pytest.mark.slow
def test_several_beginnings_side_by_side(model):
    given = (
        prompts(10) + [Prompt([*draws(60, seed=7), n], 9) for n in range(9)] + prompts(2, prefix=5)
    )
    found = generator_of(model, CHOICES["greedy"], "prefix").generate(given)
    assert found == one_at_a_time(model, CHOICES["greedy"], given)


def test_a41_the_same_seed_draws_the_same_and_another_one_does_not(model):
    given = prompts(6)
    generator = generator_of(model, TokenChoice(end_ids=ENDS, temperature=1.0), "prefix")
    first = generator.generate(given)
    torch.rand(7)  # whatever else draws in between
    assert generator.generate(given) == first
    assert generator.generate(list(reversed(given))) == list(reversed(first))
    others = [Prompt(one.ids, one.limit, one.seed + 1) for one in given]
    assert generator.generate(others) != first


def test_draws_follow_the_models_probabilities(model):
    ids = draws(12)
    with torch.inference_mode():
        wanted = model(torch.tensor([ids])).logits[0, -1].div(1.5).softmax(-1)
    count = 3000
    generator = generator_of(model, TokenChoice(end_ids=ENDS, temperature=1.5), "prefix")
    drawn = generator.generate([Prompt(ids, 1, seed) for seed in range(count)])
    seen = torch.bincount(torch.tensor([one.ids[0] for one in drawn]), minlength=len(wanted))
    assert (seen / count - wanted).abs().max() < 5 * (wanted.max() / count) ** 0.5


def test_a_small_nucleus_is_greedy(model):
    given = prompts(8)
    narrow = TokenChoice(end_ids=ENDS, temperature=1.0, top_p=1e-6)
    assert generator_of(model, narrow, "padded").generate(given) == one_at_a_time(
        model, CHOICES["greedy"], given
    )


def nearly_tied():
    """Every token has a twin whose logit differs by rounding only."""
    torch.manual_seed(0)
    model = LlamaForCausalLM(small_config(make_tokenizer())).eval()
    with torch.no_grad():
        weight = model.lm_head.weight
        weight[4::2] = weight[5::2].flip(1).flip(1) * (1 + 3e-8 * torch.randn(weight[5::2].shape))
    return model


@pytest.mark.slow
def test_near_ties_are_not_decided_by_the_batch():
    model, given = nearly_tied(), prompts(16, limit=12)
    found = generator_of(model, CHOICES["greedy"], "prefix").generate(given)
    assert found == one_at_a_time(model, CHOICES["greedy"], given)
    careless = TokenChoice(end_ids=ENDS, settles=False)
    assert generator_of(model, careless, "prefix").generate(given) != one_at_a_time(
        model, careless, given
    )


def test_ends_and_limits_are_kept(model):
    for one, prompt in zip(
        generator_of(model, CHOICES["greedy"], "prefix").generate(given := prompts()),
        given,
        strict=True,
    ):
        assert one.ended == (one.ids[-1] in ENDS)
        assert one.ended or len(one.ids) == prompt.limit
        assert not ENDS & set(one.ids[:-1])


def test_no_prompts_no_answers(model):
    assert generator_of(model, CHOICES["greedy"], "prefix").generate([]) == []


def test_how_a_model_bears_batches_is_found_by_trying(model):
    assert Passes(model, draws(9)).bears() == "prefix"


def test_a_sliding_window_shares_no_beginning_and_stays_exact():
    tokenizer = make_tokenizer()
    settings = {
        key: value
        for key, value in small_config(tokenizer).to_dict().items()
        if key in ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers")
        or key in ("num_attention_heads", "num_key_value_heads", "initializer_range")
    }
    torch.manual_seed(0)
    config = MistralConfig(**settings, sliding_window=16, pad_token_id=0)
    window = MistralForCausalLM(config).eval()
    generator = generator_of(window, CHOICES["greedy"])
    assert generator.batching in ("padded", "equal")
    given = prompts(12)
    assert generator.generate(given) == one_at_a_time(window, CHOICES["greedy"], given)


ARCHITECTURES = {
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 4},
    "bloom": {"hidden_size": 32, "n_layer": 2, "n_head": 4},
    "gpt_neox": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48},
    "qwen3": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48, "head_dim": 8, "num_key_value_heads": 2},
    "gemma3_text": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48, "head_dim": 8, "num_key_value_heads": 2, "sliding_window": 16},
    "mamba": {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 4},  # another memory
    "opt": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 48, "word_embed_proj_dim": 32},
}  # fmt: skip


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_other_architectures_are_exact_too(kind):
    from transformers import AutoConfig

    torch.manual_seed(0)
    config = AutoConfig.for_model(
        kind, vocab_size=260, pad_token_id=0, bos_token_id=1, eos_token_id=2, **ARCHITECTURES[kind]
    )
    model = AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.mul_(8)
    generator = generator_of(model, CHOICES["greedy"])
    given = prompts(6, prefix=12, limit=5)
    found = generator.generate(given)
    assert found == one_at_a_time(model, CHOICES["greedy"], given)
    for prompt, one in zip(given, found, strict=True):
        whole = torch.tensor([[*prompt.ids, *one.ids[:-1]]])
        with torch.inference_mode():
            likeliest = model(whole).logits[0].argmax(-1).tolist()
        assert likeliest[len(prompt.ids) - 1 :] == list(one.ids)


class Cramped(LlamaForCausalLM):
    """A model on a device that holds four prompts at once, and none of more than 60 tokens."""

    def forward(self, input_ids=None, **inputs):
        past = inputs.get("past_key_values")
        length = input_ids.shape[1] + (0 if past is None else past.get_seq_length())
        if len(input_ids) > 4 or length > 60:
            raise torch.OutOfMemoryError("out of memory")
        return super().forward(input_ids=input_ids, **inputs)


def test_what_does_not_fit_into_memory_is_tried_in_parts():
    torch.manual_seed(0)
    model = Cramped(small_config(make_tokenizer())).eval()
    given = [*prompts(11, prefix=10, limit=5), Prompt(draws(80), 5)]
    *found, too_long = generator_of(model, CHOICES["greedy"], "padded").generate(given, 12)
    assert too_long is None
    assert found == one_at_a_time(model, CHOICES["greedy"], given[:-1])
