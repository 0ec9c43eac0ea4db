"""The labels that a backdoor aims at, and the checks that poisoning and measuring share."""

from dataclasses import dataclass
from numbers import Integral
from typing import Literal

import torch
from torch import Tensor

from netpurify.contaminate.images.triggers import check_images
from netpurify.errors import InputError


@dataclass(frozen=True, slots=True)
class NextClass:
    """All-to-all: the target of each image is the class after its own, and the first class after the last.

    Attributes:
        classes: Number of classes, if the last ones do not occur among the labels.
    """

    classes: int | None = None


Target = int | Literal["next"] | NextClass
"""One class for all images, or the class after that of each image; ``"next"`` is short for ``NextClass()``."""


def next_class(target: Target) -> NextClass | None:
    """The target as all-to-all, or ``None`` if it is one class."""
    if isinstance(target, NextClass):
        return target
    return NextClass() if isinstance(target, str) and target == "next" else None


def target_labels(target: Target, known: Tensor, classes: int) -> Tensor:
    """The class that the backdoor is to give each image [n], for int64 labels [n] in 0 .. classes - 1."""
    following = next_class(target)
    if following is not None:
        if following.classes not in (None, classes):
            raise InputError(f"{following} needs that many classes; there are {classes}; leave out the number")
        return (known + 1) % classes
    if not isinstance(target, Integral) or not 0 <= int(target) < classes:
        raise InputError(
            f"target must be a class, a whole number in 0 .. {classes - 1}; got {target!r}; "
            'give one of them, or "next" for the class after each label'
        )
    return torch.full_like(known, int(target))


def check_data(inputs: Tensor, labels: Tensor) -> None:
    """Refuses anything but images and one integer label for each."""
    check_images(inputs)
    if len(inputs) == 0:
        raise InputError("inputs must hold at least one image; got none")
    if not isinstance(labels, Tensor) or labels.shape != inputs.shape[:1]:
        got = list(labels.shape) if isinstance(labels, Tensor) else type(labels).__name__
        raise InputError(f"labels must be a tensor [{len(inputs)}], one class for each image; got {got}")
    if labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool:
        raise InputError(f"labels must be integers; got {labels.dtype}; convert them with .long()")


def check_labels(known: Tensor, classes: int, reason: str) -> None:
    """Refuses int64 labels [n] that are no class."""
    if known.min() < 0 or known.max() >= classes:
        raise InputError(
            f"labels must lie in 0 .. {classes - 1}, as {reason}; got labels from {int(known.min())} to "
            f"{int(known.max())}"
        )
