"""Networks from config.json: the same as transformers' own, and nothing of a model's own code."""

import json
import sys

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import nn

import netpurify
from netpurify.errors import CheckpointError, InputError
from netpurify.network import Recover, Seeded, check, from_config, load_pretrained, names_in, purify
from tests.network import made_networks as networks
from tests.network.pretrained_folders import BUILDS, bert, gpt2, llama, resnet, saved, vit


def same(found, expected):
    mine, other = found.state_dict(), expected.state_dict()
    assert mine.keys() == other.keys()
    for name, value in other.items():
        assert mine[name].dtype == value.dtype, name
        assert torch.equal(mine[name], value), name
    own = dict(expected.named_buffers())
    for name, value in found.named_buffers():
        assert torch.equal(value, own[name].to(value.dtype)), name


@pytest.mark.parametrize("build", BUILDS)
def test_network_is_that_of_transformers(tmp_path, build):
    saved(build, tmp_path)
    expected = build().__class__.from_pretrained(tmp_path)
    found = netpurify.load_pretrained(tmp_path)
    assert type(found) is type(expected)
    assert not found.training
    same(found, expected)
    assert not any(value.is_meta for value in (*found.parameters(), *found.buffers()))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_weights_keep_the_dtype_of_the_file(tmp_path, dtype):
    model = networks.seeded(llama).to(dtype)
    model.save_pretrained(tmp_path)
    found = load_pretrained(tmp_path)
    assert {value.dtype for value in found.parameters()} == {dtype}
    inputs = torch.arange(12).reshape(2, 6)
    expected = transformers.LlamaForCausalLM.from_pretrained(tmp_path, dtype=dtype)
    assert torch.equal(found(inputs).logits, expected(inputs).logits)


def test_shards_and_files_beside_the_settings(tmp_path):
    expected = saved(bert, tmp_path / "shards", max_shard_size="4KB")
    assert len(list((tmp_path / "shards").glob("*.safetensors"))) > 2
    same(load_pretrained(tmp_path / "shards"), expected)
    saved(bert, tmp_path / "whole")
    same(load_pretrained(tmp_path / "whole" / "model.safetensors"), expected)
    moved = (tmp_path / "whole" / "config.json").rename(tmp_path / "settings.json")
    same(load_pretrained(tmp_path / "whole", config=moved), expected)
    with pytest.raises(CheckpointError, match=r"config\.json: expected settings that can be read"):
        load_pretrained(tmp_path / "whole")


def test_tied_weights_are_one_tensor(tmp_path):
    expected = saved(gpt2, tmp_path)
    state = load_file(tmp_path / "model.safetensors")
    assert "lm_head.weight" not in state
    found = load_pretrained(tmp_path)
    assert found.lm_head.weight is found.transformer.wte.weight
    twice = state | {"lm_head.weight": state["transformer.wte.weight"].clone()}
    save_file(twice, tmp_path / "model.safetensors")
    found = load_pretrained(tmp_path)
    same(found, expected)
    assert found.lm_head.weight is found.transformer.wte.weight
    twice["lm_head.weight"][3, 4] += 1.0
    save_file(twice, tmp_path / "model.safetensors")
    with pytest.raises(InputError, match=r"tied weights once, or twice alike; .* differ in the file"):
        load_pretrained(tmp_path)


def test_names_of_other_versions_and_prefixes(tmp_path):
    for build, old in (
        (gpt2, lambda name: name.removeprefix("transformer.")),
        (bert, lambda name: name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("Norm.bias", "Norm.beta")),
        (vit, lambda name: name),  # this version of transformers writes names that its networks do not have
    ):
        folder = tmp_path / build.__name__
        expected = saved(build, folder)
        state = {old(name): value for name, value in load_file(folder / "model.safetensors").items()}
        state["h.0.attn.bias"] = torch.ones(1, 1, 4, 4)  # a table that old versions saved
        save_file(state, folder / "model.safetensors")
        found = load_pretrained(folder)
        same(found, expected)
        names = names_in(found, state)
        assert {names[name] for name in state} >= {name for name in found.state_dict() if name != "lm_head.weight"}


@pytest.mark.slow
def test_initial_weights_of_a_folder_have_its_names(tmp_path):
    initial = saved(vit, tmp_path)
    dirty = networks.seeded(vit).eval()
    with torch.no_grad():
        dirty.get_submodule("vit.layers.1.mlp.fc1").weight[2, 3] += 5.0
    images = networks.seeded(lambda: torch.rand(6, 3, 16, 16))
    assert set(load_file(tmp_path / "model.safetensors")) != set(initial.state_dict())
    found = purify(dirty, images, policy=Recover(tmp_path, proof=False))
    assert networks.positions(found.altered) == {("vit.layers.1.mlp.fc1.weight", 35)}
    same(found.model, initial)


def test_weights_made_again_from_a_seed(tmp_path):
    saved(bert, tmp_path)
    made = Seeded(lambda: from_config(tmp_path / "config.json"), 7).build()
    for name, value in networks.seeded(bert, seed=7).state_dict().items():
        assert torch.equal(made.state_dict()[name], value), name


def test_no_values_are_drawn_and_nothing_is_left_behind(tmp_path):
    saved(bert, tmp_path)
    state, register = torch.get_rng_state(), nn.Module.register_parameter
    load_pretrained(tmp_path)
    assert torch.equal(torch.get_rng_state(), state)
    assert nn.Module.register_parameter is register


def edit(folder, **changes):
    path = folder / "config.json"
    content = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({name: value for name, value in content.items() if value is not None}))


def test_settings_cannot_run_or_fetch_code(tmp_path, monkeypatch):
    expected = saved(bert, tmp_path)
    (tmp_path / "modeling_trap.py").write_text("raise SystemExit('run')")
    trap = {"AutoConfig": "modeling_trap.Trap", "AutoModel": "modeling_trap.Trap"}
    edit(tmp_path, auto_map=trap, attn_implementation="someone/kernel", _attn_implementation="someone/kernel")
    same(load_pretrained(tmp_path), expected)  # transformers has the network itself

    import socket

    monkeypatch.setattr(socket, "socket", lambda *_: pytest.fail("asks the network"))
    edit(tmp_path, architectures=["Trap"])
    with pytest.raises(InputError, match=r"architectures must name one network .*\(auto_map\) is not run"):
        load_pretrained(tmp_path)
    edit(tmp_path, model_type="trap")
    with pytest.raises(InputError, match=r"model_type must be one that transformers .*\(auto_map\) is not run"):
        load_pretrained(tmp_path)
    assert "modeling_trap" not in sys.modules


BAD = {
    "no network": ({"architectures": ["AutoModel"]}, "architectures must name one network"),
    "a function": ({"architectures": ["pipeline"]}, "architectures must name one network"),
    "a path": ({"architectures": ["models.bert.BertModel"]}, "architectures must name one network"),
    "hidden": ({"architectures": ["__spec__"]}, "architectures must name one network"),
    "two": ({"architectures": ["BertModel", "BertForMaskedLM"]}, "architectures must name one network"),
    "no text": ({"architectures": [7]}, "architectures must name one network"),
    "no list": ({"architectures": {"a": 1}}, "architectures must name one network"),
    "of another kind": ({"architectures": ["GPT2Model"]}, "GPT2Model is not of 'bert'"),
    "no kind": ({"model_type": None}, "model_type must be one that transformers"),
    "a list as kind": ({"model_type": ["bert"]}, "model_type must be one that transformers"),
    "another head": ({"architectures": ["BertForMaskedLM"]}, "missing: cls.predictions.*unexpected|missing: cls.pred"),
    "another width": ({"hidden_size": 18}, r"mis-shaped: .*\[30, 16\] instead of \[30, 18\]"),
    "a width of no network": ({"hidden_size": 17}, "must describe a network that transformers can build"),
    "a width of a text": ({"hidden_size": "wide"}, "must describe a network that transformers can build"),
    "layers without end": ({"num_hidden_layers": 10**12}, "num_hidden_layers must be at most"),
    "more layers": ({"num_hidden_layers": 3}, "missing: bert.encoder.layer.2"),
    "absurd vocabulary": ({"vocab_size": 10**15}, r"mis-shaped: .*\[30, 16\] instead of \[1000000000000000, 16\]"),
    "absurd positions": ({"max_position_embeddings": 10**13}, "mis-shaped"),
    "quantised": ({"quantization_config": {"bits": 4}}, "quantization_config; purify the model before"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_settings_that_do_not_fit_are_refused(tmp_path, case):
    saved(bert, tmp_path)
    changes, words = BAD[case]
    edit(tmp_path, **changes)
    with pytest.raises(InputError, match=words):
        load_pretrained(tmp_path)


def test_without_architectures_the_body_is_built(tmp_path):
    model = networks.seeded(bert).bert.eval()
    model.save_pretrained(tmp_path)
    edit(tmp_path, architectures=None)
    same(load_pretrained(tmp_path), model)


def test_packed_weights_are_refused(tmp_path):
    saved(bert, tmp_path)
    state = load_file(tmp_path / "model.safetensors")
    state["classifier.qweight"] = torch.zeros(3, 16, dtype=torch.int32)
    save_file(state, tmp_path / "model.safetensors")
    with pytest.raises(InputError, match=r"classifier.qweight is of a quantised layer; .*netpurify diff"):
        load_pretrained(tmp_path)


def test_without_the_library_the_message_says_what_to_install(tmp_path, monkeypatch):
    saved(bert, tmp_path)
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(InputError, match=r"transformers, which is not installed; pip install 'netpurify\[hf\]'"):
        load_pretrained(tmp_path)


def test_networks_of_a_folder_are_checked(tmp_path):
    saved(resnet, tmp_path)
    plan = check(load_pretrained(tmp_path), torch.rand(4, 3, 32, 32), initial=tmp_path)
    assert len(plan.layers) == 7
    assert all(layer.frozen for layer in plan.layers)
