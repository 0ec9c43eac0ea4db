"""Inputs to train and purify with: a bundled sample of MNIST, full MNIST and CIFAR-10, or your own files.

    data.fetch("cifar10")                      once: into the cache, every file checked against a pinned digest
    images = data.load("cifar10")              tensors, and which images they are; "mnist-sample" needs no fetch
    images = data.classes(images, [0, 1, 2])   three classes, relabelled 0, 1, 2
    train, clean = data.draw(images, (99, 99), generator=generator)    disjoint, balanced, drawn once, recorded
    inputs = data.to_inputs(data.grey(train), centre=(0.48, 0.25))     [99, 1024], float64
    clean = data.load_inputs("clean.npy")      or .npz, .pt, .safetensors, or a folder of images

No code in any file is ever run. ``fetch`` takes the files from a folder too, if you have them.
"""

from netpurify.data.catalogue import names
from netpurify.data.fetching import fetch
from netpurify.data.files import load_inputs, normalise
from netpurify.data.images import Images, balanced, classes, draw, grey, take, to_inputs
from netpurify.data.loading import load
from netpurify.data.store import cache_folder

__all__ = [
    "Images", "balanced", "cache_folder", "classes", "draw", "fetch", "grey", "load", "load_inputs", "names",
    "normalise", "take", "to_inputs",
]  # fmt: skip
