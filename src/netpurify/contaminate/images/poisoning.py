"""Training data poisoned with a trigger."""

import math
from dataclasses import dataclass
from numbers import Integral
from typing import Literal

import torch
from torch import Tensor

from netpurify.contaminate.draws import check_generator, check_share, shuffle
from netpurify.contaminate.images.labels import NextClass, Target, check_data, check_labels, next_class, target_labels
from netpurify.contaminate.images.triggers import Trigger, stamped
from netpurify.errors import InputError

Source = Literal["all", "other", "target"]
Cover = tuple[Trigger, float]


@dataclass(frozen=True, slots=True)
class Poisoned:
    """Poisoned training data.

    Attributes:
        inputs: All images, in their order; the poisoned ones and the covers are stamped.
        labels: All labels; those of the poisoned images are the target.
        indices: Which images were poisoned [m], ascending, on the CPU.
        covers: Which other images carry the cover's trigger and their own label, ascending, on the CPU.
    """

    inputs: Tensor
    labels: Tensor
    indices: Tensor
    covers: Tensor


def poison(
    inputs: Tensor,
    labels: Tensor,
    trigger: Trigger,
    *,
    target: Target,
    ratio: float,
    generator: torch.Generator,
    source: Source = "all",
    cover: Cover | None = None,
) -> Poisoned:
    """Stamps ratio * n images, rounded half up, and labels them as the target.

    Images are drawn once, without replacement. One seed with a larger ratio poisons the same images and more besides.

    Args:
        inputs: Training images [n, ...]; never modified.
        labels: Their classes [n], any integer dtype.
        trigger: What is stamped on them.
        target: Class that the backdoor is to give; ``"next"`` gives each image the class after its own (all-to-all).
            The last class is the largest label, unless ``NextClass(classes)`` says how many there are.
        ratio: Poisoned images as a share of all n, whatever the ``source``.
        generator: Source of the draw; must be on the CPU.
        source: ``"all"`` draws among all images, ``"other"`` only among those whose label is not the target,
            ``"target"`` only among those whose label it is, so that no label changes (clean-label attack).
        cover: A second trigger and its share of all n: stamped on images that are not poisoned and keep their label, so
            that the network learns the first trigger and nothing like it (WaNet's noise mode).

    Returns:
        Copies of inputs and labels, and the indices of the poisoned images and of the covers.

    Raises:
        InputError: Shapes do not fit, too few images can be drawn, or an option has no meaning.
    """
    check_share("ratio", ratio)
    check_generator(generator)
    check_data(inputs, labels)
    _check_source(source, target)
    _check_cover(cover)
    # Compared as int64: a label of a small dtype must not wrap round.
    known = labels.detach().cpu().long()
    wanted = target_labels(target, known, _classes(next_class(target), known, torch.iinfo(labels.dtype).max + 1))
    own = known == wanted
    candidates = {"all": torch.ones_like(own), "other": ~own, "target": own}[source].nonzero().flatten()
    count = math.floor(ratio * len(known) + 0.5)
    if count > len(candidates):
        kind, remedy = ("", "") if source == "target" else ("not ", ' or draw from source="all"')
        raise InputError(
            f"ratio {ratio} of {len(known)} images asks for {count} whose label is {kind}{target}; {len(candidates)} "
            f"are available; lower the ratio{remedy}"
        )
    indices = candidates[shuffle(len(candidates), generator)[:count]].sort().values
    covers = _covers(cover, indices, len(known), generator)
    dirty_inputs, dirty_labels = inputs.detach().clone(), labels.detach().clone()
    _stamp(trigger, dirty_inputs, indices)
    if cover is not None:
        _stamp(cover[0], dirty_inputs, covers)
    dirty_labels[indices.to(labels.device)] = wanted[indices].to(dirty_labels)
    return Poisoned(inputs=dirty_inputs, labels=dirty_labels, indices=indices, covers=covers)


def _covers(cover: Cover | None, poisoned: Tensor, total: int, generator: torch.Generator) -> Tensor:
    """Draws images [m], ascending, that are not poisoned; without a cover nothing is drawn from the generator."""
    if cover is None:
        return torch.empty(0, dtype=torch.long)
    count = math.floor(cover[1] * total + 0.5)
    if count > total - len(poisoned):
        raise InputError(
            f"the cover's share {cover[1]} of {total} images asks for {count}; {total - len(poisoned)} are left beside "
            f"the {len(poisoned)} poisoned ones; lower the share or the ratio"
        )
    order = shuffle(total, generator)
    return order[~torch.isin(order, poisoned)][:count].sort().values


def _stamp(trigger: Trigger, images: Tensor, indices: Tensor) -> None:
    if len(indices):
        chosen = indices.to(images.device)
        images[chosen] = stamped(trigger, images[chosen])


def _classes(following: NextClass | None, known: Tensor, limit: int) -> int:
    """The number of classes of all-to-all; for a single target, as many as the dtype of the labels holds."""
    if following is None:
        return limit
    count = int(known.max()) + 1 if following.classes is None else following.classes
    if not isinstance(count, Integral) or not 2 <= count <= limit:
        raise InputError(
            f"NextClass: classes must be a whole number in 2 .. {limit}; got {count!r}; give the number of classes"
        )
    check_labels(known, int(count), f"there are {count} classes")
    return int(count)


def _check_source(source: Source, target: Target) -> None:
    if source not in ("all", "other", "target"):
        raise InputError(f'source must be "all", "other" or "target"; got {source!r}')
    if source == "target" and next_class(target) is not None:
        raise InputError(
            f'source="target" keeps every label and needs one class as target; got target={target!r}, which changes '
            "every label; name a class"
        )


def _check_cover(cover: Cover | None) -> None:
    if cover is None:
        return
    if not isinstance(cover, tuple) or len(cover) != 2:
        raise InputError(f"cover must be a trigger and its share of the images, (trigger, share); got {cover!r}")
    check_share("the cover's share", cover[1])
