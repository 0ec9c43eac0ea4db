"""Inputs to train and purify with: a bundled sample of MNIST, full MNIST and CIFAR-10, or your own files.

    data.fetch("cifar10")                      once, into the cache; every file is checked against a pinned digest
    images = data.load("cifar10")              tensors, and which images they are; "mnist-sample" needs no fetch
    images = data.classes(images, [0, 1, 2])   three classes, relabelled 0, 1, 2
    train, clean = data.draw(images, (99, 99), generator=generator)    disjoint, balanced, drawn once, recorded
    inputs = data.to_inputs(data.grey(train), centre=(0.48, 0.25))     [99, 1024], float64
    clean = data.load_inputs("clean.npy")      or .npz, .pt, .safetensors, or a folder of images
    clean = data.load_tokens("lines.txt", "folder")        text, by the tokenizer.json of a Hugging Face folder
    clean = data.load_processed("images", "folder")        images, by its preprocessor_config.json

Nothing in a file is ever run as code. If you have the files of a data set, ``fetch`` takes them from your folder.
"""

from netpurify.data.datasets import Split, cache_folder, digests, fetch, load, names
from netpurify.data.images import Images, balanced, classes, draw, grey, take, to_inputs
from netpurify.data.inputs import load_inputs, load_processed, load_tokens, normalise, read_npy

__all__ = [
    "Images", "Split", "balanced", "cache_folder", "classes", "digests", "draw", "fetch", "grey", "load", "load_inputs",
    "load_processed", "load_tokens", "names", "normalise", "read_npy", "take", "to_inputs",
]  # fmt: skip
