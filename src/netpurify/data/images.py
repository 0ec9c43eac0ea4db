"""Labelled images, subsets that know where they came from, and the way to network inputs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from netpurify.errors import InputError

_LUMA = (299, 587, 114)
"""ITU-R BT.601 weights of red, green and blue, in thousandths."""


@dataclass(frozen=True, slots=True, eq=False)
class Images:
    """Images of one split of a data set, with labels and the record of which ones they are.

    ``len(images)`` is their number.

    Attributes:
        pixels: uint8 as stored, or floats in [0, 1] after ``grey``; shape [n, h, w], or [n, h, w, 3] in colour.
        labels: int64, shape [n].
        indices: int64, shape [n]: the place of each image in the original split. For ``"mnist-sample"`` that is the
            split of the full MNIST. Name, split and indices say exactly which images were used.
        name: The data set.
        split: ``"train"`` or ``"test"``.
    """

    pixels: Tensor
    labels: Tensor
    indices: Tensor
    name: str
    split: str

    def __post_init__(self) -> None:
        if not (self.pixels.dtype == torch.uint8 or self.pixels.is_floating_point()):
            raise InputError(f"pixels must be uint8, or floats in [0, 1]; got {self.pixels.dtype}")
        shape = tuple(self.pixels.shape)
        if len(shape) not in (3, 4) or (len(shape) == 4 and shape[3] != 3) or math.prod(shape) == 0:
            raise InputError(f"pixels must be [n, h, w] or [n, h, w, 3], with at least one image; got {list(shape)}")
        for part, values in (("labels", self.labels), ("indices", self.indices)):
            if values.dtype != torch.int64 or tuple(values.shape) != shape[:1]:
                raise InputError(
                    f"{part} must be int64, one for each of {shape[0]} images; "
                    f"got {values.dtype}, shape {list(values.shape)}"
                )

    def __len__(self) -> int:
        return self.labels.numel()


def take(images: Images, positions: Tensor | Sequence[int]) -> Images:
    """The images at ``positions`` (0 to n - 1), in that order.

    Raises:
        InputError: There are none, or one lies outside.
    """
    chosen = torch.as_tensor(positions)
    if chosen.ndim != 1 or not chosen.numel() or chosen.dtype not in (torch.int64, torch.int32):
        raise InputError(
            f"positions must be a list of whole numbers, at least one; got {chosen.dtype}, shape {list(chosen.shape)}"
        )
    if chosen.min() < 0 or chosen.max() >= len(images):
        raise InputError(
            f"positions must lie between 0 and {len(images) - 1}; got {int(chosen.min())} to {int(chosen.max())}"
        )
    return replace(images, pixels=images.pixels[chosen], labels=images.labels[chosen], indices=images.indices[chosen])


def classes(images: Images, kept: Sequence[int]) -> Images:
    """Only the images of the classes ``kept``, relabelled 0, 1, 2... in the order in which the classes are given.

    The images keep their order.

    Raises:
        InputError: No class is given, one is given twice, or one has no image.
    """
    if not kept or len(set(kept)) != len(kept):
        raise InputError(f"the classes to keep must be at least one, each named once; got {list(kept)}")
    present = set(images.labels.unique().tolist())
    absent = [label for label in kept if label not in present]
    if absent:
        raise InputError(
            f"every class to keep must have an image in {images.name} {images.split}; {absent} have none; "
            f"the classes there are {sorted(present)}"
        )
    matches = images.labels[:, None] == torch.tensor(list(kept))
    chosen = matches.any(dim=1).nonzero()[:, 0]
    return replace(take(images, chosen), labels=matches[chosen].int().argmax(dim=1))


def balanced(images: Images, count: int, *, generator: torch.Generator) -> Images:
    """``count`` images drawn at random without replacement, as evenly over the classes as can be; see ``draw``."""
    return draw(images, (count,), generator=generator)[0]


def draw(images: Images, counts: Sequence[int], *, generator: torch.Generator) -> tuple[Images, ...]:
    """Disjoint random subsets of ``counts`` images, each as evenly over the classes as can be.

    For example ``train, clean = draw(images, (99, 99), generator=generator)`` for training images and clean inputs from
    outside of them. If a count is not divisible by the number of classes, the lowest labels have one image more.

    Within a subset the classes take turns (0, 1, 2, 0, 1, 2...), so that its first n images are balanced too.
    The draw is made once: ``indices`` of each subset is the record of it.

    Args:
        images: What to draw from; the classes are the labels that occur.
        counts: How many images in each subset, each at least 1.
        generator: Where chance comes from; on the CPU.

    Raises:
        InputError: A count is below 1, a class has too few images, or the generator is not on the CPU.
    """
    if not isinstance(generator, torch.Generator) or generator.device.type != "cpu":
        raise InputError(f"generator must be a torch.Generator on the CPU, so that draws repeat; got {generator!r}")
    if not counts or any(type(count) is not int or count < 1 for count in counts):
        raise InputError(f"counts must be whole numbers of at least 1, one for each subset; got {counts!r}")
    labels = images.labels.unique().tolist()
    quotas = [
        [count // len(labels) + (place < count % len(labels)) for place in range(len(labels))] for count in counts
    ]
    pools = []
    for place, label in enumerate(labels):
        pool = (images.labels == label).nonzero()[:, 0]
        needed = sum(quota[place] for quota in quotas)
        if needed > pool.numel():
            raise InputError(
                f"subsets of {list(counts)} images need {needed} of class {label}; {images.name} {images.split} has "
                f"{pool.numel()} here; ask for fewer images or leave out that class"
            )
        shuffled = pool[torch.randperm(pool.numel(), generator=generator)]
        pools.append(shuffled[:needed].split([quota[place] for quota in quotas]))
    return tuple(take(images, _in_turns(parts)) for parts in zip(*pools, strict=True))


def grey(images: Images, *, dtype: torch.dtype = torch.float64) -> Images:
    """Colour images in grey: 0.299 red + 0.587 green + 0.114 blue (ITU-R BT.601), as floats in [0, 1].

    Raises:
        InputError: The images are not uint8 in colour, or ``dtype`` is not a float.
    """
    _require_float(dtype)
    if images.pixels.ndim != 4 or images.pixels.dtype != torch.uint8:
        raise InputError(
            f"grey needs uint8 colour images [n, h, w, 3]; got {images.pixels.dtype}, {list(images.pixels.shape)}"
        )
    # In whole numbers up to the one division, so that white is exactly 1.
    channels = images.pixels.unbind(dim=-1)
    thousandths = sum(weight * channel.to(torch.int32) for weight, channel in zip(_LUMA, channels, strict=True))
    return replace(images, pixels=(torch.as_tensor(thousandths).to(torch.float64) / 255_000).to(dtype))


def to_inputs(
    images: Images, *, centre: tuple[float, float] | None = None, dtype: torch.dtype = torch.float64
) -> Tensor:
    """Network inputs [n, d]: pixels in [0, 1], flattened row by row (in colour: red, green, blue of each pixel).

    Args:
        images: uint8 pixels are divided by 255; floats are taken as they are.
        centre: ``(mean, scale)`` gives (x - mean) / scale; our figures on CIFAR-10 use (0.48, 0.25), about which
            the paper says nothing.
        dtype: Of the answer.

    Raises:
        InputError: ``dtype`` is not a float, or ``scale`` is not a positive number.
    """
    _require_float(dtype)
    flat = images.pixels.flatten(start_dim=1)
    inputs = flat.to(dtype) / 255 if flat.dtype == torch.uint8 else flat.to(dtype)
    if centre is None:
        return inputs
    mean, scale = centre
    if not (math.isfinite(mean) and math.isfinite(scale) and scale > 0):
        raise InputError(f"centre must be (mean, scale), both finite and scale above 0; got {centre}")
    return (inputs - mean) / scale


def _in_turns(parts: Sequence[Tensor]) -> Tensor:
    """Entries of all parts: the first of each, then the second of each, and so on."""
    turns = torch.cat([torch.arange(part.numel()) for part in parts])
    return torch.cat(list(parts))[turns.argsort(stable=True)]


def _require_float(dtype: torch.dtype) -> None:
    if not dtype.is_floating_point:
        raise InputError(f"dtype must be a float, such as torch.float64; got {dtype}")
