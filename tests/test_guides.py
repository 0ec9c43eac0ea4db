"""Every block of Python in the guides runs, in the order of its page, with the reader's own things made up here.

README, method.md and paper.md are executed by test_readme.py, evidence.md and extend.md by tests of their names.
"""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from netpurify import checkpoint
from netpurify.contaminate import Normal
from tests.network import made_networks, pretrained_folders
from tests.test_ci import write_adapter

DOCS = Path(__file__).parents[1] / "docs"
ELSEWHERE = {"method", "paper", "evidence", "extend"}


def blocks(name):
    text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def run(name, names, only=slice(None)):
    """Execute the blocks of a page one after the other; what they leave."""
    found = blocks(name)[only]
    assert found
    for code in found:
        exec(compile(code, f"docs/{name}.md", "exec"), names)
    return names


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def altered_head():
    """A head that SGD trained and somebody altered: (network, initial, inputs)."""
    network, initial, inputs = made_networks.head()
    return made_networks.altered(network, Normal(), 0.05)[0], initial, inputs


def small():
    """A network for images of 8 x 8."""
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3))


def pictures(count=60):
    return torch.rand(count, 1, 8, 8, generator=torch.Generator().manual_seed(0))


def words(folder):
    """A tokenizer and some lines of text beside a network of transformers."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    lines = ["the cat sat", "a dog sat", "the dog", "on the mat", "a cat"]
    known = {word: place for place, word in enumerate(["[PAD]", "[UNK]", "the", "a", "cat", "dog", "sat", "on", "mat"])}
    tokenizer = Tokenizer(models.WordLevel(known, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    Path("lines.txt").write_text("\n".join(lines))


def test_every_guide_with_code_is_executed():
    guides = {page.stem for page in DOCS.glob("*.md") if blocks(page.stem)} - ELSEWHERE
    assert guides == {"network", "defence", "hunt", "report", "lad", "data", "checkpoints"}


@pytest.mark.slow
def test_network(tmp_path):
    model, initial, inputs = altered_head()
    names = run("network", {"model": model, "initial": initial, "inputs": inputs}, slice(1))
    assert names["plan"].repairable
    assert len(names["result"].altered) > 100
    assert names["result"].verify().sound

    draw = torch.Generator().manual_seed(0)
    base = {"layer.weight": torch.randn(160, 160, generator=draw) / 10}
    change = torch.randn(160, 2, generator=draw) @ torch.randn(2, 160, generator=draw) / 100
    merged = {"layer.weight": base["layer.weight"] + change}
    merged["layer.weight"][3, 4] += 1.0
    found = run("network", {"merged": merged, "base": base}, slice(1, 2))["found"]
    assert found.rank == 2
    assert found.index.tolist() == [3 * 160 + 4]

    base = {"a.weight": torch.randn(20, 30, generator=draw)}
    write_adapter(base, tmp_path, name="adapter-folder")
    merged = checkpoint.load_weights("merged.safetensors")
    assert run("network", {"merged": merged, "base": base}, slice(2, 3))["result"].agrees

    for place in ("folder", "base-folder"):
        pretrained_folders.saved(pretrained_folders.bert, tmp_path / place)
    words(tmp_path / "folder")
    names = {}
    exec("import netpurify", names)
    assert len(run("network", names, slice(3, 4))["result"].altered) == 0


@pytest.mark.slow
def test_defence():
    names = run("defence", {"model": made_networks.seeded(small), "inputs": pictures(), "build": small})
    assert names["result"].chosen.inputs == 12
    assert torch.equal(names["again"](pictures()), names["result"].model(pictures()))


@pytest.mark.slow
def test_hunt():
    names = run("hunt", {"model": made_networks.seeded(small).eval(), "images": pictures()})
    assert names["result"].bound < 1
    assert checkpoint.load_weights("repaired.safetensors").keys() == names["model"].state_dict().keys()


@pytest.mark.slow
def test_report():
    model, initial, inputs = altered_head()
    names = run("report", {"model": model, "initial": initial, "inputs": inputs}, slice(1))
    assert "altered" in names["report"].summarise(names["result"]).headline
    assert len(json.loads(Path("report.json").read_text())["altered"]) == len(names["result"].altered)
    assert Path("report.sarif").exists()
    images = pictures()
    run(
        "report", names | {"model": made_networks.seeded(small).eval(), "inputs": images, "images": images}, slice(1, 4)
    )
    assert json.loads(Path("report.json").read_text())["schema_name"] == "unlearning"
    context = SimpleNamespace(files={"contaminated": "model.pt"})
    assert run("report", names, slice(4, None))["text"](names["result"], context) == "0 in model.pt\n"


@pytest.mark.slow
def test_lad():
    draw = np.random.default_rng(0)
    design = draw.standard_normal((60, 6))
    names = run("lad", {"A": design, "B": design @ draw.standard_normal((6, 3))})
    assert names["certificate"].certified.all()
    assert 0 < names["odds"].largest_share(probability=0.95).value < 1


def test_data(tmp_path):
    from PIL import Image

    names = run("data", {}, slice(1))
    assert names["inputs"].shape == (99, 784)
    # The second block reads the real data sets, as tests/data/test_data_fetch.py does.
    assert "fetch" in blocks("data")[1]
    np.save("clean.npy", np.random.default_rng(0).random((300, 3, 32, 32), dtype=np.float32))
    (tmp_path / "images").mkdir()
    Image.fromarray(np.full((40, 40, 3), 99, np.uint8)).save("images/a.png")
    names = run("data", names, slice(2, 3))
    assert names["inputs"].shape == (1, 3, 32, 32)
    pretrained_folders.saved(pretrained_folders.bert, tmp_path / "folder")
    words(tmp_path / "folder")
    settings = {"image_processor_type": "ViTImageProcessor", "size": {"height": 16, "width": 16}}
    (tmp_path / "folder" / "preprocessor_config.json").write_text(json.dumps(settings))
    names = run("data", names, slice(3, 4))
    assert names["tokens"]["input_ids"].shape == (5, 3)
    assert sorted(len(batch["input_ids"]) for batch in names["batches"]) == [2, 3]
    assert names["images"].shape == (1, 3, 16, 16)


def test_checkpoints(tmp_path, capsys):
    torch.save({"weight": torch.ones(2)}, "model.pt")
    names = run("checkpoints", {}, slice(1))
    assert checkpoint.load_metadata("model.safetensors") == {"source": checkpoint.digest(names["state"])}
    options = {"max_shard_size": "10KB"}
    model = pretrained_folders.saved(pretrained_folders.llama, tmp_path / "folder", **options)
    pretrained_folders.saved(pretrained_folders.llama, tmp_path / "base", seed=1, **options)
    weight = torch.ones_like(model.lm_head.weight)
    run("checkpoints", names | {"weight": weight}, slice(1, 2))
    assert "lm_head.weight" in capsys.readouterr().out
    assert torch.equal(checkpoint.load_weights("repaired")["lm_head.weight"], weight)
