"""Adapters in PEFT's format: folders are written here as PEFT writes them, and sums are made by torch in float64."""

import json

import pytest
import torch
from safetensors.torch import save_file

from netpurify.errors import CheckpointError, InputError
from netpurify.network import check_merged, expected_merge, load_adapter

CONFIG = {
    "peft_type": "LORA", "r": 4, "lora_alpha": 16, "use_rslora": False, "use_dora": False, "fan_in_fan_out": False,
    "bias": "none", "modules_to_save": None, "rank_pattern": {}, "alpha_pattern": {}, "init_lora_weights": True,
}  # fmt: skip
PREFIX = "base_model.model."


def drawn(*shape, seed=0, size=0.1):
    return size * torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.fixture
def folder(tmp_path):
    """Writes an adapter's folder."""

    def write(tensors, **config):
        (tmp_path / "adapter_config.json").write_text(json.dumps(CONFIG | config))
        save_file({PREFIX + name: value for name, value in tensors.items()}, tmp_path / "adapter_model.safetensors")
        return tmp_path

    return write


def base():
    return {
        "layer.attention.weight": drawn(48, 32, seed=1), "layer.attention.bias": drawn(48, seed=2),
        "layer.conv1d.weight": drawn(32, 40, seed=3), "layer.square.weight": drawn(32, 32, seed=4),
        "conv.weight": drawn(8, 3, 3, 3, seed=5), "embedding.weight": drawn(50, 32, seed=6),
        "head.weight": drawn(5, 40, seed=7), "head.bias": drawn(5, seed=8), "norm.running": torch.arange(4),
    }  # fmt: skip


def factors(name, inputs, outputs, rank=4):
    return {f"{name}.lora_A.weight": drawn(rank, *inputs, seed=9),
            f"{name}.lora_B.weight": drawn(outputs, rank, *(1 for _ in inputs[1:]), seed=10)}  # fmt: skip


def product(tensors, name):
    down, up = tensors[f"{name}.lora_A.weight"].double(), tensors[f"{name}.lora_B.weight"].double()
    return torch.einsum("or,r...->o...", up.flatten(1), down)


CASES = {
    "linear": ("layer.attention", (32,), 48, {}, lambda p: 4.0 * p),
    "rank-stabilised": ("layer.attention", (32,), 48, {"use_rslora": True}, lambda p: 8.0 * p),
    "alpha by name": ("layer.attention", (32,), 48, {"alpha_pattern": {"attention": 2}}, lambda p: 0.5 * p),
    "alpha of another module": ("layer.attention", (32,), 48, {"alpha_pattern": {"tention": 2}}, lambda p: 4.0 * p),
    "Conv1D of transformers": ("layer.conv1d", (32,), 40, {"fan_in_fan_out": True}, lambda p: 4.0 * p.T),
    "Conv1D by its shape": ("layer.conv1d", (32,), 40, {}, lambda p: 4.0 * p.T),
    "square": ("layer.square", (32,), 32, {}, lambda p: 4.0 * p),
    "square, transposed": ("layer.square", (32,), 32, {"fan_in_fan_out": True}, lambda p: 4.0 * p.T),
    "convolution": ("conv", (3, 3, 3), 8, {}, lambda p: 4.0 * p),
}


@pytest.mark.parametrize("case", CASES)
def test_merged_weights_are_the_sum_that_torch_makes(folder, case):
    name, inputs, outputs, config, change = CASES[case]
    tensors, start = factors(name, inputs, outputs), base()
    adapter = load_adapter(folder(tensors, **config))
    merged = dict(expected_merge(start, adapter))
    assert merged.keys() == start.keys()
    truth = start[f"{name}.weight"].double() + change(product(tensors, name))
    assert torch.equal(merged[f"{name}.weight"], truth.float())
    assert all(merged[other] is start[other] for other in start if other != f"{name}.weight")
    assert check_merged(merged, start, adapter).agrees


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_merges_in_any_order_of_rounding_agree_and_single_entries_stand_out(folder, dtype):
    start = {name: value.to(dtype) if value.is_floating_point() else value for name, value in base().items()}
    tensors = factors("layer.attention", (32,), 48)
    where = folder(tensors)
    name = "layer.attention.weight"
    delta = 4.0 * (tensors["layer.attention.lora_B.weight"] @ tensors["layer.attention.lora_A.weight"])
    orders = [
        start[name] + delta.to(dtype),
        (start[name].float() + delta).to(dtype),
        start[name] + 4.0 * (delta / 4.0).to(dtype),
    ]
    for merged in orders:
        assert check_merged(start | {name: merged}, start, where).agrees
        dirty = merged.clone()
        dirty[3, 5] += 0.05
        dirty[0, 0] = torch.nan
        result = check_merged(start | {name: dirty}, start, where)
        (found,) = result.differences
        assert (found.tensor, found.shape, found.adapted, result.differing) == (name, (48, 32), True, 2)
        assert found.index.tolist() == [0, 3 * 32 + 5]
        assert found.was[1] == float(dirty[3, 5])
        assert found.expected[1] == pytest.approx(float(merged[3, 5]), rel=2.0 * torch.finfo(dtype).eps)


def test_embeddings_biases_and_whole_modules(folder):
    start = base()
    embedding = {
        "embedding.lora_embedding_A": drawn(4, 50, seed=11),
        "embedding.lora_embedding_B": drawn(32, 4, seed=12),
    }
    whole = {"head.weight": drawn(5, 40, seed=13), "layer.attention.base_layer.bias": drawn(48, seed=14)}
    where = folder(embedding | whole, modules_to_save=["head"], bias="lora_only")
    result = dict(expected_merge(start, load_adapter(where)))
    rows = 4.0 * (embedding["embedding.lora_embedding_B"].double() @ embedding["embedding.lora_embedding_A"].double()).T
    assert torch.equal(result["embedding.weight"], (start["embedding.weight"].double() + rows).float())
    assert torch.equal(result["head.weight"], whole["head.weight"])
    assert torch.equal(result["layer.attention.bias"], whole["layer.attention.base_layer.bias"])
    assert check_merged(result, start, where).agrees
    changed = check_merged(start, start, where)
    assert {found.tensor for found in changed.differences} == set(changed.adapted)


def test_bias_of_the_second_factor_is_scaled_too(folder):
    tensors = factors("layer.attention", (32,), 48) | {"layer.attention.lora_B.bias": drawn(48, seed=15)}
    start = base()
    merged = dict(expected_merge(start, load_adapter(folder(tensors, lora_bias=True))))
    truth = start["layer.attention.bias"].double() + 4.0 * tensors["layer.attention.lora_B.bias"].double()
    assert torch.equal(merged["layer.attention.bias"], truth.float())


def test_rank_by_name(folder):
    tensors = factors("layer.attention", (32,), 48, rank=6)
    start = base()
    where = folder(tensors, rank_pattern={"^layer.attention": 6})
    merged = dict(expected_merge(start, load_adapter(where)))
    truth = start["layer.attention.weight"].double() + 16 / 6 * product(tensors, "layer.attention")
    assert torch.allclose(merged["layer.attention.weight"].double(), truth, rtol=0.0, atol=1e-7)
    with pytest.raises(InputError, match="its factors have rank 6"):
        load_adapter(folder(tensors))


def test_what_the_adapter_does_not_touch_must_have_the_bits_of_the_base(folder):
    start = base()
    where = folder(factors("layer.attention", (32,), 48))
    merged = {name: value.clone() for name, value in expected_merge(start, load_adapter(where))}
    merged["head.bias"][2] = torch.nextafter(merged["head.bias"][2], torch.tensor(9.0))
    merged["norm.running"][1] = 7
    del merged["conv.weight"]
    merged["head.weight"] = merged["head.weight"][:, :3]
    merged["new"] = torch.zeros(2)
    result = check_merged(merged, start, where)
    found = {one.tensor: (one.index.tolist(), one.adapted) for one in result.differences}
    assert found == {"head.bias": ([2], False), "norm.running": ([1], False)}
    assert result.unmatched.keys() == {"conv.weight", "head.weight", "new"}
    assert not result.agrees
    assert result.tensors == 7


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"peft_type": "IA3"}, "only adapters of the type LORA can be checked; this one is 'IA3'"),
        ({"peft_type": "LOHA"}, "this one is 'LOHA'"),
        ({"peft_type": None}, "this one is None"),
        ({"use_dora": True}, "use_dora"),
        ({"trainable_token_indices": [1]}, "trainable_token_indices"),
        ({"init_lora_weights": "pissa"}, "init_lora_weights='pissa'"),
        ({"init_lora_weights": []}, r"init_lora_weights=\[\]"),
        ({"alpha_pattern": {".*attention": 2}}, "is a pattern"),
        ({"lora_alpha": "16"}, "lora_alpha is '16'"),
        ({"lora_alpha": True}, "lora_alpha is True"),
    ],
)
def test_other_kinds_are_refused_by_name(folder, config, message):
    with pytest.raises(InputError, match=message):
        load_adapter(folder(factors("layer.attention", (32,), 48), **config))


def test_odd_tensors_and_other_bases_are_refused(folder):
    good = factors("layer.attention", (32,), 48)
    half = {name: value for name, value in good.items() if "lora_A" in name}
    for tensors, message in (
        (good | {"layer.attention.lora_magnitude_vector": drawn(48)}, "lora_magnitude_vector is no part"),
        (good | {"embedding.token_adapter.trainable_tokens_delta": drawn(2, 32)}, "is no part"),
        (half, "must have two factors"),
        (factors("layer.attention", (32,), 48) | {"layer.attention.lora_B.weight": drawn(48, 3)}, "two factors"),
        (good | {"head.weight": torch.arange(3)}, "floating dtype"),
    ):
        with pytest.raises(InputError, match=message):
            load_adapter(folder(tensors))
    for tensors in (
        factors("layer.attention", (30,), 48),
        factors("elsewhere", (32,), 48),
        {"head.weight": drawn(2, 2)},
    ):
        with pytest.raises(InputError, match="adapter of another base"):
            check_merged(base(), base(), folder(tensors))


def test_damaged_folders(tmp_path, folder):
    with pytest.raises(CheckpointError, match="cannot be read"):
        load_adapter(tmp_path / "nowhere")
    where = folder(factors("layer.attention", (32,), 48))
    config = where / "adapter_config.json"
    for text, message in (("{", "must be JSON"), ("[1]", "one JSON object"), ("[" * 10**5, "must be JSON"),
                          (" " * (1 << 20) + "{}", "at most 1048576 bytes")):  # fmt: skip
        config.write_text(text)
        with pytest.raises(CheckpointError, match=message):
            load_adapter(where)
    config.write_text(json.dumps(CONFIG | {"alpha_pattern": [1]}))
    with pytest.raises(CheckpointError, match="alpha_pattern must give a number"):
        load_adapter(where)
    config.write_text(json.dumps(CONFIG))
    (where / "adapter_model.safetensors").rename(where / "adapter_model.bin")
    with pytest.raises(CheckpointError, match="safe_serialization"):
        load_adapter(where)
