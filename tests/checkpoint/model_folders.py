"""Folders of weights as others write them, and shards by hand."""

import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

INDEX = "model.safetensors.index.json"


def bert() -> nn.Module:
    from transformers import BertConfig, BertModel  # late, because many tests need none of it

    return BertModel(BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
                                intermediate_size=32, max_position_embeddings=20))  # fmt: skip


def gpt2() -> nn.Module:
    """Its output weights are its embedding: one tensor, of which the files hold one copy."""
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(GPT2Config(vocab_size=50, n_positions=20, n_embd=16, n_layer=2, n_head=2))


def llama() -> nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(vocab_size=50, hidden_size=16, intermediate_size=32, num_hidden_layers=2,
                         num_attention_heads=2, num_key_value_heads=1, tie_word_embeddings=False)  # fmt: skip
    return LlamaForCausalLM(config).to(torch.bfloat16)


MODELS = {"bert": bert, "gpt2": gpt2, "llama": llama}


def own_state(model: nn.Module) -> dict[str, Tensor]:
    """The state, each tied tensor once under its first name, as a folder has it."""
    places, state = set(), {}
    for name, value in model.state_dict().items():
        if value.data_ptr() not in places:
            places.add(value.data_ptr())
            state[name] = value
    return state


def write_shards(folder: Path, shards: dict[str, dict[str, Tensor]], **changes: object) -> Path:
    """Shards by the library of the format, and an index of them; ``changes`` are entries of its weight_map."""
    folder.mkdir(exist_ok=True)
    weight_map: dict[str, object] = {}
    for file, state in shards.items():
        save_file(state, folder / file, metadata={"format": "pt"})
        weight_map |= dict.fromkeys(state, file)
    index = {"metadata": {"total_size": 0}, "weight_map": weight_map | changes}
    (folder / INDEX).write_text(json.dumps(index, indent=2))
    return folder


def two_shards(folder: Path, **changes: object) -> Path:
    generator = torch.Generator().manual_seed(0)
    first = {"a.weight": torch.randn(6, 5, generator=generator), "a.bias": torch.zeros(6).to(torch.bfloat16)}
    second = {"b.weight": torch.randn(4, 3, generator=generator), "count": torch.tensor(3), "none": torch.empty(0, 3)}
    return write_shards(folder, {"one.safetensors": first, "two.safetensors": second}, **changes)
