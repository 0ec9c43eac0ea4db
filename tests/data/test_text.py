"""Lines of text as tokens, beside what transformers' own tokenizers give."""

import json
import sys

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from netpurify.data import load_tokens
from netpurify.errors import CheckpointError, DataError, InputError

LINES = ["the cat sat on the mat", "a dog", "the dog sat", "on the mat a cat", "cat"]


@pytest.fixture
def folder(tmp_path):
    made = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.WordLevelTrainer(special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[END]"])
    made.train_from_iterator(LINES, trainer)
    ends = [("[CLS]", made.token_to_id("[CLS]")), ("[SEP]", made.token_to_id("[SEP]"))]
    made.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    made.enable_padding(length=99)  # as some files have it; it must not count
    made.save(str(tmp_path / "tokenizer.json"))
    write(tmp_path, "config.json", {"max_position_embeddings": 40})
    (tmp_path / "lines.txt").write_text("\n".join(["", *LINES[:2], "   ", *LINES[2:], ""]))
    return tmp_path


def write(folder, name, content):
    (folder / name).write_text(json.dumps(content))


def load(folder, **options):
    return load_tokens(folder / "lines.txt", folder, **options)


def test_tokens_are_those_of_transformers(folder):
    other = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), pad_token="[PAD]")
    expected = other(LINES, padding=True, return_tensors="pt")
    found = load(folder)
    assert found.keys() == {"input_ids", "attention_mask"}
    for name, values in found.items():
        assert values.dtype == torch.int64
        assert torch.equal(values, expected[name])
    assert torch.equal(load(folder, limit=2)["input_ids"], expected["input_ids"][:2])
    cut = other(LINES, padding=True, truncation=True, max_length=4, return_tensors="pt")
    assert torch.equal(load(folder, length=4)["input_ids"], cut["input_ids"])


@pytest.mark.parametrize("batch", [1, 2, 32])
def test_batches_of_equal_length_need_no_padding(folder, batch):
    found = load(folder, batch=batch)
    assert all(bool((part["attention_mask"] == 1).all()) for part in found)
    assert max(len(part["input_ids"]) for part in found) <= batch
    together = load(folder)
    rows = [row[mask.bool()].tolist() for row, mask in zip(*together.values(), strict=True)]
    assert sorted(row for part in found for row in part["input_ids"].tolist()) == sorted(rows)


PADDING = {
    "by the tokenizer's settings": ({}, {"pad_token": "[END]"}, "[END]"),
    "as an object": ({}, {"pad_token": {"content": "[END]", "special": True}}, "[END]"),
    "by the network's settings": ({"pad_token_id": 3, "eos_token_id": 4}, {}, "[SEP]"),
    "the end": ({"eos_token_id": 4}, {}, "[END]"),
    "the first end": ({"eos_token_id": [4, 2], "pad_token_id": None}, {"pad_token": None}, "[END]"),
    "nothing": ({}, {"pad_token": "not there"}, "[PAD]"),
}


@pytest.mark.parametrize("case", PADDING)
def test_what_fills_short_lines_up(folder, case):
    config, about, token = PADDING[case]
    write(folder, "config.json", config)
    write(folder, "tokenizer_config.json", about)
    found = load(folder)
    filled = found["input_ids"][found["attention_mask"] == 0]
    assert filled.unique().tolist() == [Tokenizer.from_file(str(folder / "tokenizer.json")).token_to_id(token)]


@pytest.mark.parametrize(
    ("config", "about", "longest"),
    [
        ({"max_position_embeddings": 5}, {}, 5),
        ({"n_positions": 5}, {"model_max_length": 10**30}, 5),
        ({"text_config": {"max_position_embeddings": 5}}, {}, 5),
        ({"max_position_embeddings": 514}, {"model_max_length": 5}, 5),
        ({}, {}, 128),
    ],
)
def test_no_line_is_longer_than_the_network_takes(folder, config, about, longest):
    write(folder, "config.json", config)
    write(folder, "tokenizer_config.json", about)
    (folder / "lines.txt").write_text("cat " * 300)
    assert load(folder)["input_ids"].shape == (1, longest)
    assert load(folder, length=4)["input_ids"].shape == (1, 4)
    if longest < 128:
        with pytest.raises(InputError, match=f"from 1 to {longest}; got {longest + 1}"):
            load(folder, length=longest + 1)


def test_text_may_have_a_mark_and_ends_of_lines_of_windows(folder):
    (folder / "lines.txt").write_bytes(b"\xef\xbb\xbfthe cat\r\na\xc2\x85dog\r\n")
    assert load(folder, batch=9)[0]["input_ids"].shape == (2, 4)


def test_wrong_files_are_refused_by_name(folder, tmp_path):
    (tmp_path / "bad.txt").write_bytes(b"caf\xe9")
    with pytest.raises(DataError, match=r"bad\.txt: expected plain text in UTF-8; byte 3 is not"):
        load_tokens(tmp_path / "bad.txt", folder)
    (tmp_path / "blank.txt").write_text(" \n\t\n")
    with pytest.raises(DataError, match="got no line with text"):
        load_tokens(tmp_path / "blank.txt", folder)
    with pytest.raises(DataError, match=r"absent\.txt: expected a text file that can be read"):
        load_tokens(tmp_path / "absent.txt", folder)
    (tmp_path / "tokens.json").write_text("{}")
    with pytest.raises(DataError, match=r"tokens\.json: the tokenizer is damaged or foreign"):
        load_tokens(folder / "lines.txt", tmp_path / "tokens.json")
    with pytest.raises(DataError, match=r"none\.json: expected a tokenizer that can be read; .*save_pretrained"):
        load_tokens(folder / "lines.txt", tmp_path / "none.json")
    with pytest.raises(InputError, match="from 1 to 40; got 0"):
        load(folder, length=0)
    with pytest.raises(InputError, match="length must be above 2, since the tokenizer adds so many marks"):
        load(folder, length=2)
    (folder / "config.json").write_text("[" * 100_000)
    with pytest.raises(CheckpointError, match=r"config\.json: expected a JSON object; it is damaged"):
        load(folder)


def test_without_the_library_the_message_says_what_to_install(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(DataError, match=r"pip install 'netpurify\[hf\]'"):
        load(folder)
