"""Hugging Face folders as ``transformers`` writes them, joined as it would join them."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from netpurify.checkpoint import digest, load_metadata, load_weights, open_weights, save_weights
from netpurify.errors import CheckpointError
from tests.checkpoint.model_folders import INDEX, MODELS, own_state, two_shards


@pytest.mark.slow
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("size", ["50GB", "3KB"])
def test_folders_of_transformers_hold_the_weights_of_the_network(tmp_path, kind, size):
    model = MODELS[kind]()
    model.save_pretrained(tmp_path, max_shard_size=size)
    assert (tmp_path / INDEX).exists() == (size == "3KB")
    state = load_weights(tmp_path)
    assert digest(state) == digest(own_state(model))
    if size == "3KB":
        assert len(list(tmp_path.glob("model-*.safetensors"))) > 2
        assert digest(load_weights(tmp_path / INDEX)) == digest(state)
    with open_weights(tmp_path) as weights:
        assert weights.digest() == digest(state)
    assert load_metadata(tmp_path) == {"format": "pt"}


def test_the_digest_of_shards_is_that_of_one_file(tmp_path):
    folder = two_shards(tmp_path / "folder")
    state = load_weights(folder)
    save_weights(state, tmp_path / "whole.safetensors")
    assert sorted(state) == ["a.bias", "a.weight", "b.weight", "count", "none"]
    assert digest(load_weights(tmp_path / "whole.safetensors")) == digest(state)
    joined = load_file(folder / "one.safetensors") | load_file(folder / "two.safetensors")
    assert digest(joined) == digest(state)


def test_shards_are_mapped_and_may_be_replaced_meanwhile(tmp_path):
    state = load_weights(two_shards(tmp_path))
    before = state["a.weight"].clone()
    state["b.weight"].zero_()
    assert load_file(tmp_path / "two.safetensors")["b.weight"].ne(0).any()
    save_weights({"a.weight": torch.ones(6, 5)}, tmp_path / "one.safetensors")
    assert state["a.weight"].equal(before)


def test_the_order_in_which_weights_are_looked_for(tmp_path):
    def write(name: str, value: float) -> None:
        content = {"a": torch.full((1,), value)}
        (torch.save if name.endswith(".bin") else save_file)(content, tmp_path / name)

    for value, name in enumerate(("any.safetensors", "diffusion_pytorch_model.safetensors", "pytorch_model.bin",
                                  "model.safetensors")):  # fmt: skip
        write(name, value)
        assert load_weights(tmp_path)["a"].item() == value
    (tmp_path / "model.safetensors").unlink()
    shutil.copy(tmp_path / "any.safetensors", tmp_path / "one.safetensors")
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": {"a": "one.safetensors"}}))
    assert load_weights(tmp_path)["a"].item() == 0
    with open_weights(tmp_path) as weights:
        assert weights.others == ("any.safetensors", "diffusion_pytorch_model.safetensors", "pytorch_model.bin")


def test_pickled_shards_are_joined_too(tmp_path):
    torch.save({"module.a": torch.ones(2)}, tmp_path / "pytorch_model-1.bin")
    torch.save({"module.b": torch.zeros(3).t()}, tmp_path / "pytorch_model-2.bin")
    index = {"module.a": "pytorch_model-1.bin", "module.b": "pytorch_model-2.bin"}
    (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": index}))
    state = load_weights(tmp_path)
    assert digest(state) == digest({"a": torch.ones(2), "b": torch.zeros(3)})
    assert load_metadata(tmp_path) == {}


def test_links_are_followed_as_caches_of_models_need_it(tmp_path):
    blobs = two_shards(tmp_path / "blobs")
    snapshot = tmp_path / "snapshot"
    snapshot.mkdir()
    for path in blobs.iterdir():
        path.rename(blobs / f"{path.name}-blob")
        (snapshot / path.name).symlink_to(f"../blobs/{path.name}-blob")
    assert len(load_weights(snapshot)) == 5
    (tmp_path / "link").symlink_to("snapshot")
    assert len(load_weights(tmp_path / "link")) == 5


def test_a_prefix_that_all_shards_share_is_taken_off_and_no_other(tmp_path):
    index = {}
    for number, name in enumerate(("module.a", "module.module.b")):
        save_file({name: torch.ones(1)}, tmp_path / f"{number}.safetensors")
        index[name] = f"{number}.safetensors"
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": index}))
    assert list(load_weights(tmp_path)) == ["a", "module.b"]


def test_metadata_of_a_folder_are_what_all_shards_say(tmp_path):
    folder = two_shards(tmp_path)
    for name, other in (("one", "left"), ("two", "right")):
        state = load_file(folder / f"{name}.safetensors")
        save_file(state, folder / f"{name}.safetensors", metadata={"format": "pt", "side": other, other: "here"})
    assert load_metadata(folder) == {"format": "pt"}


def test_folders_without_weights_say_what_they_hold(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"model.safetensors, pytorch_model.bin.*it holds config.json; give a"):
        load_weights(tmp_path)
    for name in ("x", "y"):
        save_file({"a": torch.ones(1)}, tmp_path / f"{name}.safetensors")
    with pytest.raises(CheckpointError, match=r"it holds config.json, x.safetensors, y.safetensors; name the file"):
        open_weights(tmp_path)
    with pytest.raises(CheckpointError, match=r"this is a JSON text; give the folder"):
        load_weights(tmp_path / "config.json")


def test_an_index_beside_a_whole_file_is_refused_unless_they_are_one(tmp_path):
    folder = two_shards(tmp_path)
    whole = load_weights(folder)
    save_weights(whole, folder / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"weights must be in one place; model.safetensors and model"):
        load_weights(folder)
    assert digest(load_weights(folder / INDEX)) == digest(whole) == digest(load_weights(folder / "model.safetensors"))
    (folder / INDEX).write_text(json.dumps({"weight_map": dict.fromkeys(whole, "model.safetensors")}))
    assert digest(load_weights(folder)) == digest(whole)
