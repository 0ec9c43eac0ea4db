"""How well a backdoor works in a network."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral

import torch
from torch import Tensor, nn

from netpurify.contaminate.images.labels import Target, check_data, check_labels, target_labels
from netpurify.contaminate.images.triggers import Trigger, stamped
from netpurify.errors import InputError

Model = nn.Module | Callable[[Tensor], Tensor]
"""Anything that gives scores [n, classes] for inputs [n, ...]; the largest score is the prediction."""


@dataclass(frozen=True, slots=True)
class Rates:
    """How a network does on clean and on triggered images; each rate is a share in [0, 1].

    The target of an image is the one class that was named, or with ``"next"`` the class after its own: then no image is
    of its target class, so that ``asr`` counts all of them, as ``asr_all`` does.

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


def measure(
    model: Model, inputs: Tensor, labels: Tensor, *, trigger: Trigger, target: Target, batch: int = 1024
) -> Rates:
    """Measures clean accuracy and what the trigger does.

    A module is put in evaluation mode and every submodule's mode is restored afterwards; torch's random state is left
    as it was. An image whose scores hold a NaN is given no class, which counts as wrong in every rate.

    Args:
        model: Gives scores [n, classes] for inputs [n, ...] on their device.
        inputs: Clean test images [n, ...].
        labels: Their classes [n], any integer dtype.
        trigger: What is stamped on them.
        target: Class that the backdoor is to give; ``"next"`` is the class after each image's own, the first after the
            last of the model's (all-to-all).
        batch: Images that the model sees at once.

    Raises:
        InputError: Shapes do not fit, a label or the target is no class of the model, or there are no images.
    """
    check_data(inputs, labels)
    clean, classes = _predict(model, inputs, batch)
    known = _known(labels, classes)
    wanted = target_labels(target, known, classes)
    triggered, _ = _predict(model, inputs, batch, trigger)
    other = known != wanted
    return Rates(
        accuracy=_rate(clean == known),
        asr=_rate(triggered[other] == wanted[other]),
        asr_all=_rate(triggered == wanted),
        ra=_rate(triggered[other] == known[other]),
    )


def accuracy(model: Model, inputs: Tensor, labels: Tensor, *, batch: int = 1024) -> float:
    """Share of the images that are given their label; arguments and care as in ``measure``."""
    check_data(inputs, labels)
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
    check_labels(known, classes, f"the model gives {classes} scores")
    return known


def _check_scores(scores: Tensor, count: int, classes: int | None) -> None:
    if not isinstance(scores, Tensor) or scores.ndim != 2 or len(scores) != count or scores.shape[1] < 2:
        got = list(scores.shape) if isinstance(scores, Tensor) else type(scores).__name__
        raise InputError(f"the model must give scores [{count}, classes], two classes or more; got {got}")
    if classes not in (None, scores.shape[1]):
        raise InputError(
            f"the model must give every batch the same number of scores; got {classes}, then {scores.shape[1]}"
        )
