"""Makes the bundled sample of MNIST from the full data set: ``python tools/make_mnist_sample.py [FILE]``.

Which images: those whose numbers come first when ordered by SHA-256 of "netpurify/SPLIT/NUMBER". Hashes depend on no
library's random numbers, so the arrays are the same everywhere; the compressed file is, for the same zlib.
"""

import argparse
import hashlib
from pathlib import Path
from typing import Literal

import numpy as np

from netpurify import data

PER_DIGIT: dict[Literal["train", "test"], int] = {"train": 500, "test": 200}
TARGET = Path(__file__).parents[1] / "src" / "netpurify" / "data" / "mnist_sample.npz"


def chosen(labels: np.ndarray, split: str, count: int) -> np.ndarray:
    """The first ``count`` numbers of each digit by hash, in ascending order."""

    def key(number: int) -> bytes:
        return hashlib.sha256(f"netpurify/{split}/{number}".encode()).digest()

    members = [np.flatnonzero(labels == digit).tolist() for digit in range(10)]
    return np.sort([number for numbers in members for number in sorted(numbers, key=key)[:count]])


def main() -> None:
    """Writes the sample and prints its size and digest."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, default=TARGET)
    parser.add_argument("--root", type=Path, help="where the full data set is kept")
    options = parser.parse_args()
    data.fetch("mnist", root=options.root)
    arrays = {}
    for split, count in PER_DIGIT.items():
        images = data.load("mnist", split=split, root=options.root)
        indices = chosen(images.labels.numpy(), split, count)
        arrays[f"{split}_images"] = images.pixels.numpy()[indices]
        arrays[f"{split}_labels"] = images.labels.numpy()[indices].astype(np.uint8)
        arrays[f"{split}_indices"] = indices.astype(np.uint16)
    np.savez_compressed(options.file, allow_pickle=False, **arrays)
    content = options.file.read_bytes()
    print(f"{options.file}: {len(content)} bytes, SHA-256 {hashlib.sha256(content).hexdigest()}")


if __name__ == "__main__":
    main()
