"""Backdoors: training data poisoned with a trigger, and how well the backdoor works in a network."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral
from typing import Literal

import torch
from torch import Tensor, nn

from netpurify.contaminate.draw import check_generator, check_share, shuffle
from netpurify.contaminate.trigger import Trigger, check_images, stamped
from netpurify.errors import InputError

Model = nn.Module | Callable[[Tensor], Tensor]
"""Anything that gives scores [n, classes] for inputs [n, ...]; the largest score is the prediction."""


@dataclass(frozen=True, slots=True)
class Poisoned:
    """Poisoned training data.

    Attributes:
        inputs: All images, in their order; the poisoned ones are stamped.
        labels: All labels; those of the poisoned images are the target.
        indices: Which images were poisoned [m], ascending, on the CPU.
    """

    inputs: Tensor
    labels: Tensor
    indices: Tensor


def poison(
    inputs: Tensor,
    labels: Tensor,
    trigger: Trigger,
    *,
    target: int,
    ratio: float,
    generator: torch.Generator,
    source: Literal["all", "other"] = "all",
) -> Poisoned:
    """Stamps ratio * n images, rounded half up, and labels them as the target.

    Images are drawn once, without replacement. One seed with a larger ratio poisons the same images and more besides.

    Args:
        inputs: Training images [n, ...]; never modified.
        labels: Their classes [n], any integer dtype.
        trigger: What is stamped on them.
        target: Class that the backdoor is to give.
        ratio: Poisoned images as a share of all n, also if ``source`` is ``"other"``.
        generator: Source of the draw; must be on the CPU.
        source: ``"all"`` draws among all images, ``"other"`` only among those whose label is not the target.

    Returns:
        Copies of inputs and labels, and the indices of the poisoned images.

    Raises:
        InputError: Shapes do not fit, too few images have another label, or an option has no meaning.
    """
    check_share("ratio", ratio)
    check_generator(generator)
    _check_data(inputs, labels)
    _check_target(target, torch.iinfo(labels.dtype).max + 1)
    if source not in ("all", "other"):
        raise InputError(f'source must be "all" or "other"; got {source!r}')
    # Compared as int64: a label of a small dtype must not wrap round.
    known = labels.detach().cpu().long()
    candidates = torch.arange(len(known)) if source == "all" else (known != target).nonzero().flatten()
    count = math.floor(ratio * len(known) + 0.5)
    if count > len(candidates):
        raise InputError(
            f"ratio {ratio} of {len(known)} images asks for {count} whose label is not {target}; {len(candidates)} are "
            'available; lower the ratio or draw from source="all"'
        )
    indices = candidates[shuffle(len(candidates), generator)[:count]].sort().values
    dirty_inputs, dirty_labels = inputs.detach().clone(), labels.detach().clone()
    if count:
        dirty_inputs[indices.to(inputs.device)] = stamped(trigger, dirty_inputs[indices.to(inputs.device)])
        dirty_labels[indices.to(labels.device)] = int(target)
    return Poisoned(inputs=dirty_inputs, labels=dirty_labels, indices=indices)


@dataclass(frozen=True, slots=True)
class Rates:
    """How a network does on clean and on triggered images; each rate is a share in [0, 1].

    Attributes:
        accuracy: Clean images given their label (ACC).
        asr: Triggered images of other classes given the target: attack success rate as the field counts it. NaN if
            every image is of the target class.
        asr_all: All triggered images given the target, those of the target class included: the paper's count.
        ra: Triggered images of other classes given their own label (robust accuracy). NaN as ``asr``.
    """

    accuracy: float
    asr: float
    asr_all: float
    ra: float


def measure(model: Model, inputs: Tensor, labels: Tensor, *, trigger: Trigger, target: int, batch: int = 1024) -> Rates:
    """Measures clean accuracy and what the trigger does.

    A module is put in evaluation mode and every submodule's mode is restored afterwards; torch's random state is left
    as it was. An image whose scores hold a NaN is given no class, which counts as wrong in every rate.

    Args:
        model: Gives scores [n, classes] for inputs [n, ...] on their device.
        inputs: Clean test images [n, ...].
        labels: Their classes [n], any integer dtype.
        trigger: What is stamped on them.
        target: Class that the backdoor is to give.
        batch: Images that the model sees at once.

    Raises:
        InputError: Shapes do not fit, a label or the target is no class of the model, or there are no images.
    """
    _check_data(inputs, labels)
    clean, classes = _predict(model, inputs, batch)
    known = _known(labels, classes)
    _check_target(target, classes)
    triggered, _ = _predict(model, inputs, batch, trigger)
    other = known != target
    return Rates(
        accuracy=_rate(clean == known),
        asr=_rate(triggered[other] == target),
        asr_all=_rate(triggered == target),
        ra=_rate(triggered[other] == known[other]),
    )


def accuracy(model: Model, inputs: Tensor, labels: Tensor, *, batch: int = 1024) -> float:
    """Share of the images that are given their label; arguments and care as in ``measure``."""
    _check_data(inputs, labels)
    predictions, classes = _predict(model, inputs, batch)
    return _rate(predictions == _known(labels, classes))


def _predict(model: Model, inputs: Tensor, batch: int, trigger: Trigger | None = None) -> tuple[Tensor, int]:
    """Predicted classes [n] on the CPU, -1 for none, and the number of classes."""
    if not isinstance(batch, Integral) or batch < 1:
        raise InputError(f"batch must be a whole number, 1 or more; got {batch!r}")
    predictions, classes = [], None
    with _evaluating(model, inputs.device):
        for images in inputs.detach().split(int(batch)):
            scores = model(images if trigger is None else stamped(trigger, images))
            _check_scores(scores, len(images), classes)
            classes = scores.shape[1]
            # argmax takes NaN for the largest: a broken network would seem to choose a class.
            predictions.append(scores.argmax(dim=1).masked_fill(scores.isnan().any(dim=1), -1).cpu())
    return torch.cat(predictions), classes or 0


@contextmanager
def _evaluating(model: Model, device: torch.device) -> Iterator[None]:
    """Evaluation mode without gradients; modes and torch's random state are restored, also when the model raises."""
    modes = {module: module.training for module in model.modules()} if isinstance(model, nn.Module) else {}
    devices = [device] if device.type == "cuda" else []
    with torch.no_grad(), torch.random.fork_rng(devices=devices):
        try:
            if isinstance(model, nn.Module):
                model.eval()
            yield
        finally:
            for module, mode in modes.items():
                module.training = mode


def _rate(hits: Tensor) -> float:
    return int(hits.sum()) / len(hits) if len(hits) else math.nan


def _known(labels: Tensor, classes: int) -> Tensor:
    known = labels.detach().cpu().long()
    if known.min() < 0 or known.max() >= classes:
        raise InputError(
            f"labels must lie in 0 .. {classes - 1}, as the model gives {classes} scores; got labels from "
            f"{int(known.min())} to {int(known.max())}"
        )
    return known


def _check_data(inputs: Tensor, labels: Tensor) -> None:
    check_images(inputs)
    if len(inputs) == 0:
        raise InputError("inputs must hold at least one image; got none")
    if not isinstance(labels, Tensor) or labels.shape != inputs.shape[:1]:
        got = list(labels.shape) if isinstance(labels, Tensor) else type(labels).__name__
        raise InputError(f"labels must be a tensor [{len(inputs)}], one class for each image; got {got}")
    if labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool:
        raise InputError(f"labels must be integers; got {labels.dtype}; convert them with .long()")


def _check_target(target: int, classes: int) -> None:
    if not isinstance(target, Integral) or not 0 <= target < classes:
        raise InputError(f"target must be a class, a whole number in 0 .. {classes - 1}; got {target!r}")


def _check_scores(scores: Tensor, count: int, classes: int | None) -> None:
    if not isinstance(scores, Tensor) or scores.ndim != 2 or len(scores) != count or scores.shape[1] < 2:
        got = list(scores.shape) if isinstance(scores, Tensor) else type(scores).__name__
        raise InputError(f"the model must give scores [{count}, classes], two classes or more; got {got}")
    if classes not in (None, scores.shape[1]):
        raise InputError(
            f"the model must give every batch the same number of scores; got {classes}, then {scores.shape[1]}"
        )
