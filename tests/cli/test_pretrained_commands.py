"""Commands on Hugging Face folders: the network from config.json, text and images through the files beside it."""

import json
import shutil

import numpy as np
import pytest
import torch
import transformers
from PIL import Image
from safetensors.torch import load_file
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from torch import nn

from netpurify import checkpoint
from netpurify.data import load_tokens
from tests.network import made_networks as networks
from tests.network.pretrained_folders import bert, gpt2, saved, vit

WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "dog", "ran", "to", "its", "red", "house", "by", "blue", "river"]


def lines(count, seed=0):
    draw = np.random.default_rng(seed)
    return [" ".join(draw.choice(WORDS, draw.integers(2, 7))) for _ in range(count)]


def tokenizer(folder):
    made = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.train_from_iterator(WORDS, trainers.WordLevelTrainer(special_tokens=["[PAD]", "[UNK]"]))
    made.save(str(folder / "tokenizer.json"))


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """A network of text and one of images, with their bases; in each one weight was altered after training."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lines.txt").write_text("\n".join(lines(20)))
    for build, place in ((bert, "bert.encoder.layer.1.intermediate.dense"), (vit, "vit.layers.1.mlp.fc1")):
        name = build.__name__
        model = saved(build, tmp_path / f"{name}-base")
        with torch.no_grad():
            model.get_submodule(place).weight[2, 3] += 5.0
        model.save_pretrained(tmp_path / name)
    tokenizer(tmp_path / "bert")
    transformers.ViTImageProcessorPil(size={"height": 16, "width": 16}).save_pretrained(tmp_path / "vit")
    (tmp_path / "images").mkdir()
    for number in range(6):
        pixels = np.random.default_rng(number).integers(0, 256, (30, 20 + number, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / "images" / f"{number}.png")
    return tmp_path


RUNS = {
    "text": ("bert", "lines.txt"),
    "images": ("vit", "images"),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", RUNS)
def test_folder_is_checked_and_recovered_without_a_factory(folders, run, kind):
    name, data = RUNS[kind]
    given = [name, "--initial", f"{name}-base", "--data", data]
    done = run("check", *given, "--json", "plan.json")
    assert done.code == 0, done.err
    assert json.loads((folders / "plan.json").read_text())["layers"]
    for place in ("out.safetensors", "out"):
        done = run("recover", *given, "-o", place)
        assert done.code == 1, done.err
        assert "1 of" in done.out
        assert "weights was altered" in done.out
        assert run("diff", place, f"{name}-base").code == 0  # the names of the file, and every bit of the base
    assert run("diff", name, f"{name}-base").code == 1
    repaired = type(vit() if name == "vit" else bert()).from_pretrained("out")
    base = type(repaired).from_pretrained(f"{name}-base")
    assert networks.same_bits(repaired, base)
    about = json.loads(checkpoint.load_metadata(folders / "out.safetensors")["netpurify"])
    assert about["config"].endswith("config.json")


def trained_head(folder):
    """A head trained by SGD on the lines of the folder, over a frozen network; some of its weights altered then."""
    torch.manual_seed(0)
    model = transformers.BertForSequenceClassification(
        transformers.BertConfig(hidden_size=64, intermediate_size=24, num_hidden_layers=1, num_attention_heads=2,
                                vocab_size=30, max_position_embeddings=40, num_labels=4)
    ).eval()  # fmt: skip
    model.save_pretrained(folder / "before")
    tokenizer(folder / "before")
    tokens = load_tokens(folder / "few.txt", folder / "before")
    optimiser = torch.optim.SGD(model.classifier.parameters(), lr=0.5)
    for _ in range(30):
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(**tokens).logits, torch.arange(12) % 4).backward()
        optimiser.step()
    model.save_pretrained(folder / "trained")
    with torch.no_grad():
        model.classifier.weight[0, 5] += 1.0
        model.classifier.weight[2, 9] -= 2.0
    model.save_pretrained(folder / "hit")
    shutil.copy(folder / "before" / "tokenizer.json", folder / "hit")


@pytest.mark.slow
def test_trained_head_is_recovered_from_text_and_its_proof_is_verified(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "few.txt").write_text("\n".join(lines(12)))
    trained_head(tmp_path)
    done = run(
        "recover", "hit", "--initial", "before", "--data", "few.txt", "-o", "out", "--proof", "proof.safetensors"
    )
    assert done.code == 1, done.out + done.err
    found, true = load_file("out/model.safetensors"), load_file("trained/model.safetensors")
    assert found.keys() == true.keys()
    for name, value in true.items():
        assert torch.allclose(found[name], value, atol=1e-5), name
    hit = load_file("hit/model.safetensors")
    assert {name for name in hit if not torch.equal(hit[name], found[name])} == {"classifier.weight"}
    files = ["--contaminated", "hit", "--purified", "out", "--initial", "before"]
    done = run("verify", "proof.safetensors", *files)
    assert done.code == 0, done.out + done.err
    assert "sound" in done.out


@pytest.mark.slow
def test_names_and_ties_of_a_folder_do_not_hinder_verification(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    base = saved(gpt2, tmp_path / "base")
    config = base.config
    config.num_labels = 3
    model = networks.seeded(lambda: transformers.GPT2ForSequenceClassification(config)).eval()
    model.save_pretrained("before")
    ids = networks.seeded(lambda: torch.randint(3, 30, (6, 5)))
    optimiser = torch.optim.SGD(model.score.parameters(), lr=0.1)
    for _ in range(5):
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(ids).logits, torch.arange(6) % 3).backward()
        optimiser.step()
    with torch.no_grad():
        model.score.weight[0, 5] += 1.0
    model.save_pretrained("hit")
    state = load_file("hit/model.safetensors")
    checkpoint.save_weights({name.removeprefix("transformer."): value for name, value in state.items()},
                            "hit/model.safetensors")  # fmt: skip
    np.savez("tokens.npz", input_ids=ids.numpy(), attention_mask=np.ones((6, 5), np.int64))
    given = ["hit", "--initial", "before", "--data", "tokens.npz", "--layer", "score"]
    done = run("recover", *given, "-o", "out.safetensors", "--proof", "proof.safetensors")
    assert done.code == 1, done.out + done.err
    assert set(load_file("out.safetensors")) == set(load_file("hit/model.safetensors"))
    done = run("verify", "proof.safetensors", "--contaminated", "hit", "--purified", "out.safetensors",
                         "--initial", "before")  # fmt: skip
    assert done.code == 0, done.out + done.err


@pytest.mark.slow
@pytest.mark.usefixtures("folders")
def test_defence_of_a_text_network(run):
    done = run("defend", "bert", "--data", "lines.txt", "-o", "out.safetensors", "--strength", "0.1")
    assert done.code in (0, 1), done.err
    assert "clean inputs: 20" in done.err
    assert set(load_file("out.safetensors")) > set(load_file("bert/model.safetensors"))  # guards too
    done = run("check", "out.safetensors", "--config", "bert/config.json", "--tokenizer",
                         "bert/tokenizer.json", "--data", "lines.txt")  # fmt: skip
    assert done.code == 0, done.err


def refused(run, *arguments, words):
    done = run(*arguments)
    assert done.code == 2, done.out + done.err
    text = " ".join(done.err.split())
    assert words in text, text


def test_options_that_do_not_fit_are_refused(folders, run):
    shutil.copy(folders / "bert" / "model.safetensors", folders / "alone.safetensors")
    np.save(folders / "tokens.npy", np.zeros((4, 5), np.int64))
    given = ["check", "bert", "--data", "lines.txt"]
    refused(
        run, "check", "alone.safetensors", "--data", "tokens.npy", words="give --factory MODULE:FUNCTION, or --config"
    )
    refused(run, *given, "--factory", "a:b", "--config", "bert/config.json", words="exclude each other")
    refused(run, *given, "--factory-args", "{}", words="--factory-args are arguments of --factory")
    refused(run, *given, "--size", "3x3", words="--size must not be given for text")
    refused(run, *given, "--dtype", "int64", words="--dtype must not be given for text")
    refused(run, *given, "--length", "41", words="from 1 to 40; got 41")
    refused(run, "check", "bert-base", "--data", "lines.txt", words="there is no tokenizer.json beside the weights")
    refused(run, "check", "bert", "--data", "tokens.npy", "--length", "3", words="--length is for text")
    refused(
        run, "check", "bert", "--data", "tokens.npy", "--dtype", "int8", words="--dtype must be auto, float32, int64"
    )
    refused(run, "check", "bert", "--data", "tokens.npy", "--dtype", "float32", words="so give whole numbers (int64)")
    refused(run, "check", "vit", "--data", "images", "--dtype", "int64", words="and auto for images; got 'int64'")
    refused(run, "check", "bert", "--data", "absent.txt", words="absent.txt must be there to be read")
    refused(run, *given, "--tokenizer", "absent.json", words="absent.json must be there to be read")


@pytest.mark.slow
def test_integers_of_a_file_reach_an_embedding(folders, run):
    np.save(folders / "tokens.npy", np.arange(20).reshape(4, 5))
    done = run("check", "bert", "--data", "tokens.npy", "--json", "plan.json")
    assert done.code == 0, done.err


@pytest.mark.parametrize("kind", RUNS)
def test_scan_examines_with_clean_inputs_without_a_factory(run, folders, kind):
    folder, data = RUNS[kind]
    done = run("scan", folder, "--against", f"{folder}-base", "--data", data, "--json", "scan.json")
    assert done.code == 1, done.err
    assert "with clean inputs; what would be replaced is named, and nothing is written:" in done.out
    record = json.loads((folders / "scan.json").read_text())
    (entry,) = record["fits"]["altered"]
    assert entry["index"] == [2, 3]
    assert entry["was"] - entry["now"] == pytest.approx(5.0, abs=1e-5)
