"""Random adapters: as large as the trained one, in directions that mean nothing, equal for ever."""

import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.local_models import make_adapter, random_model

from callmark.probe.local_views import Factors, NullAdapters, match_spectrum, seed_of, spectrum
from callmark.probe.spec import NullAdapterSpec
from callmark.probe.views import NullRun
from callmark.runners.hf.loading import adapter_folder, load_model, model_folder, quiet_libraries

TRAINED = "adapter"
IDS = list(range(30, 60))


@pytest.fixture(scope="module", autouse=True)
def quiet():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with quiet_libraries():
        yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return random_model(tmp_path_factory.mktemp("models") / "base")


def loaded_with(base, folder):
    loaded = load_model(model_folder(str(base)), dtype="float32", device=torch.device("cpu"))
    loaded.add_adapter(TRAINED, adapter_folder(str(folder)))
    return loaded


@pytest.fixture(scope="module")
def loaded(base):
    folder = make_adapter(
        base.parent / "adapter", base, scale=0.5, lora_alpha=16, rank_pattern={"v_proj": 2}
    )
    return loaded_with(base, folder)


@pytest.fixture(scope="module")
def nulls(loaded):
    return NullAdapters(loaded, TRAINED)


def null(number=1, *, seed=0, multiplier=1.0, **spec):
    return NullRun(
        spec=NullAdapterSpec(**spec), seed=seed, number=number, rank_multiplier=multiplier
    )


def updates(loaded, adapter):
    """{module: scaling · B · A} of one adapter."""
    return {
        name: layer.get_delta_weight(adapter).detach().clone()
        for name, layer in loaded.model.named_modules()
        if hasattr(layer, "lora_A") and adapter in layer.lora_A
    }


def singular_values(update, count):
    return torch.linalg.svdvals(update.double())[:count]


def test_a_null_has_the_structure_of_the_trained_adapter(loaded, nulls):
    slot = nulls.switched_to(null())
    config, trained = loaded.peft.peft_config[slot], loaded.peft.peft_config[TRAINED]
    assert (config.r, config.lora_alpha) == (trained.r, trained.lora_alpha)
    assert config.rank_pattern == trained.rank_pattern
    ours, theirs = updates(loaded, slot), updates(loaded, TRAINED)
    assert ours.keys() == theirs.keys()
    assert len(ours) == 4
    for name, layer in loaded.model.named_modules():
        if name in ours:
            assert layer.lora_A[slot].weight.shape == layer.lora_A[TRAINED].weight.shape
            assert layer.scaling[slot] == layer.scaling[TRAINED]


def test_matched_nulls_keep_every_singular_value_and_no_direction(loaded, nulls):
    slot = nulls.switched_to(null())
    trained = updates(loaded, TRAINED)
    for name, update in updates(loaded, slot).items():
        own, theirs = singular_values(update, 6), singular_values(trained[name], 6)
        assert torch.allclose(own, theirs, rtol=1e-4, atol=1e-5), name
        assert not torch.allclose(update, trained[name], atol=0.01)


def test_init_scale_draws_both_factors(loaded, nulls):
    slot = nulls.switched_to(null(method="init_scale", init_scale=0.02))
    drawn = torch.cat(
        [
            weight.detach().flatten()
            for name, layer in loaded.model.named_modules()
            if hasattr(layer, "lora_A") and slot in layer.lora_A
            for weight in (layer.lora_A[slot].weight, layer.lora_B[slot].weight)
        ]
    )
    assert 0.017 < float(drawn.std()) < 0.023
    assert abs(float(drawn.mean())) < 0.004


def test_nulls_are_really_applied_and_each_is_another(loaded, nulls):
    seen = []
    for run in (null(1), null(2), null(1, seed=1), null(1, method="init_scale", init_scale=0.5)):
        slot = nulls.switched_to(run)
        assert loaded.changes(slot, IDS)
        with loaded.adapter(slot):
            seen.append(loaded.logits(IDS))
    for at, one in enumerate(seen):
        assert not any(torch.equal(one, other) for other in seen[at + 1 :])


def test_the_same_null_again_whatever_came_before(loaded, nulls, base):
    """Seeded by index and module: neither other nulls nor the state of any generator matter."""
    made = {n: updates(loaded, nulls.switched_to(null(n))) for n in (1, 2, 3)}
    torch.manual_seed(99)
    other = loaded_with(base, base.parent / "adapter")
    again = NullAdapters(other, TRAINED)
    for number in (3, 1):
        fresh = updates(other, again.switched_to(null(number)))
        assert all(torch.equal(fresh[name], update) for name, update in made[number].items())


def test_seeds_differ_by_everything_that_names_a_null():
    runs = [null(n, seed=s, multiplier=m, method=k) for n in (1, 2) for s in (0, 1)
            for m in (1.0, 2.0) for k in ("matched", "init_scale")]  # fmt: skip
    seeds = {seed_of(run, module) for run in runs for module in ("layers.0.q", "layers.1.q")}
    assert len(seeds) == 2 * len(runs)


@pytest.mark.parametrize(("multiplier", "rank"), [(0.5, 2), (2.0, 8), (0.01, 1)])
def test_other_ranks_keep_the_size_of_the_update(loaded, nulls, multiplier, rank):
    slot = nulls.switched_to(null(multiplier=multiplier))
    assert loaded.peft.peft_config[slot].r == rank
    trained = updates(loaded, TRAINED)
    for name, update in updates(loaded, slot).items():
        assert float(update.norm()) == pytest.approx(float(trained[name].norm()), rel=1e-4)


def test_switching_back_leaves_base_and_trained_as_they_were(loaded, nulls):
    before = loaded.logits(IDS)
    with loaded.adapter(TRAINED):
        tuned = loaded.logits(IDS)
    with loaded.adapter(nulls.switched_to(null(7, multiplier=3.0))):
        assert not torch.equal(loaded.logits(IDS), before)
    assert torch.equal(loaded.logits(IDS), before)
    with loaded.adapter(TRAINED):
        assert torch.equal(loaded.logits(IDS), tuned)


@pytest.mark.filterwarnings("ignore:Setting `save_embedding_layers`")
def test_embeddings_and_saved_modules_take_nulls_too(base, tmp_path):
    folder = make_adapter(
        tmp_path / "adapter", base, scale=0.5, target_modules=["q_proj", "embed_tokens"],
        modules_to_save=["norm"], lora_dropout=0.5,
    )  # fmt: skip
    loaded = loaded_with(base, folder)
    made = NullAdapters(loaded, TRAINED)
    assert made.why_not() is None
    slot = made.switched_to(null())
    assert loaded.changes(slot, IDS)
    with loaded.adapter(slot):  # no dropout
        assert torch.equal(loaded.logits(IDS), loaded.logits(IDS))


@pytest.mark.parametrize(
    ("config", "why"), [({"use_dora": True}, "DoRA")], ids=["dora"]
)  # fmt: skip
def test_structures_without_nulls_say_why(base, tmp_path, config, why):
    loaded = loaded_with(base, make_adapter(tmp_path / "adapter", base, **config))
    assert why in NullAdapters(loaded, TRAINED).why_not()


def test_other_kinds_of_adapters_have_no_nulls(base, tmp_path):
    from peft import IA3Config, get_peft_model
    from transformers import AutoModelForCausalLM

    config = IA3Config(
        target_modules=["k_proj"], feedforward_modules=[], task_type="CAUSAL_LM"
    )  # fmt: skip
    get_peft_model(AutoModelForCausalLM.from_pretrained(base), config).save_pretrained(
        tmp_path / "ia3"
    )
    loaded = loaded_with(base, tmp_path / "ia3")
    assert "IA3" in NullAdapters(loaded, TRAINED).why_not()


sizes = st.integers(1, 12)


@given(
    out=sizes, into=sizes, rank=sizes, other=sizes, seed=st.integers(0, 2**32), flat=st.booleans()
)
def test_spectrum_and_matched_agree_with_a_full_decomposition(out, into, rank, other, seed, flat):
    """Any shape, also ranks beyond the matrix: the small QR path gives the values of the product,
    and what is made from them has them (or, at another rank, the same size)."""
    draw = torch.Generator().manual_seed(seed)
    scaling = random.Random(seed).choice([0.25, 1.0, 4.0])
    b = torch.randn(out, rank, generator=draw) * (0 if flat else 1)
    trained = Factors(b, torch.randn(rank, into, generator=draw), scaling)
    values = spectrum(trained)
    whole = torch.linalg.svdvals(scaling * trained.b.double() @ trained.a.double())
    assert torch.allclose(values, whole[: len(values)], atol=1e-9)
    for size in (rank, other):
        place = Factors(torch.empty(out, size), torch.empty(size, into), scaling)
        made_b, made_a = match_spectrum(values, place, draw)
        product = scaling * made_b @ made_a
        assert made_b.isfinite().all()
        assert float(product.norm()) == pytest.approx(float(whole.norm()), abs=1e-9)
        if size == rank:
            assert torch.allclose(torch.linalg.svdvals(product), whole, atol=1e-9)


def test_an_adapter_without_scale_gives_a_null_without_effect():
    trained = Factors(torch.ones(3, 2), torch.ones(2, 3), 0.0)
    b, a = match_spectrum(spectrum(trained), trained, torch.Generator().manual_seed(1))
    assert float((b @ a).norm()) == 0
