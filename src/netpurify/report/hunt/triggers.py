"""Triggers that were found, as images: the difference that they make, and images with and without them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from netpurify.network import FamilyHunt, FoundTrigger, Hunt
from netpurify.report.hunt.words import (
    has_images,
    percent,
    points,
    strongest_families,
    suspect_families,
    thresholds,
    trigger_words,
)
from netpurify.report.kit.png import Shot, shot

NO_IMAGES = "There are no pictures of triggers: the inputs are no images of one channel or three with values in [0, 1]."
_UNSUSPECTED = 3
"""Findings that are shown if nothing is suspect."""
_MOST = 6
"""Suspects that are shown; the table has them all."""
_SMALL = 64
"""Pixels a side of small images, of which more are shown."""
_MANY, _FEW = 6, 3
"""Examples of small images, and of others, which make a page large."""
_SAME = 2e-3
"""Up to this, a trigger makes the same difference to every image: less than a step of 255."""
_FACTORS = (0.5, 1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 75, 100, 150, 200, 300, 500, 1000)
"""By which differences may be multiplied to be seen; 0.5 fits the largest into the range."""


@dataclass(frozen=True, slots=True)
class TriggerRow:
    """One trigger on the page.

    Attributes:
        heading: Family and class.
        suspect: Whether it is suspect.
        text: What it does, in a sentence or two.
        difference: The difference that it makes, amplified.
        caption: What the difference is, and by how much it is amplified.
        pairs: Clean images, each with the same image that carries the trigger.
        target: The class to which it leads.
        success: How often, as a text.
    """

    heading: str
    suspect: bool
    text: str
    difference: Shot
    caption: str
    pairs: Sequence[tuple[Shot, Shot]]
    target: int
    success: str


@dataclass(frozen=True, slots=True)
class TriggerGallery:
    """The triggers of a hunt on the page.

    Attributes:
        rows: One for each trigger; none if the inputs are no images.
        note: What is shown, and what is not.
    """

    rows: Sequence[TriggerRow]
    note: str


def gallery(hunt: Hunt) -> TriggerGallery:
    """The suspects, or if there are none the strongest findings."""
    if not has_images(hunt):
        return TriggerGallery([], NO_IMAGES)
    suspects = suspect_families(hunt)
    shown = suspects[:_MOST] or strongest_families(hunt)[:_UNSUSPECTED]
    some = f"The strongest {_MOST} of {len(suspects)} suspects. " if len(suspects) > _MOST else ""
    if not suspects:
        some = "Nothing is suspect; these triggers come closest to it. "
    note = (
        f"{some}Grey in a difference is no change. What becomes of a single image is not recorded: a success is a "
        "share of all images of other classes."
    )
    return TriggerGallery([_row(one, hunt.examples) for one in shown], note)


def _row(one: FamilyHunt, examples: Tensor) -> TriggerRow:
    few = _MANY if max(examples.shape[2:]) <= _SMALL else _FEW
    images = examples[:few].detach().cpu().float()
    with torch.no_grad():
        changed = one.best.on(images).detach().cpu().float()
    difference, caption = _difference(one.best, images, changed)
    name, target = one.family, one.best.target
    pairs = [
        (
            shot(image.numpy(), f"Example {number}, a clean image"),
            shot(stamped.numpy(), f"Example {number} with the trigger {name}, which leads to class {target}"),
        )
        for number, (image, stamped) in enumerate(zip(images, changed, strict=True), start=1)
    ]
    return TriggerRow(
        heading=f"{name}, class {target}",
        suspect=one.suspect,
        text=_sentence(one),
        difference=difference,
        caption=caption,
        pairs=pairs,
        target=target,
        success=percent(one.best.success),
    )


def _sentence(one: FamilyHunt) -> str:
    words, best, level = trigger_words(one.family), one.best, one.expected
    healthy = "what healthy networks show was never measured"
    if level.hunts:
        healthy = f"healthy networks show at most {percent(level.highest)}"
    return (
        f"{words[:1].upper()}{words[1:]}: {percent(best.success)} of images of other classes go to class "
        f"{best.target}; {healthy}. The class stands out by {points(one.margin)}; {thresholds(one)}."
    )


def _difference(found: FoundTrigger, images: Tensor, changed: Tensor) -> tuple[Shot, str]:
    """What the trigger adds if that is the same for every image; else the difference on the first image."""
    plain = torch.full_like(images[:1], 0.5)
    with torch.no_grad():
        added = found.on(plain).detach().cpu().float() - plain
    alike = bool(((images + added).clamp(0.0, 1.0) - changed).abs().max() <= _SAME)
    difference = (added if alike else changed[:1] - images[:1])[0].numpy()
    of = "What is added to every image" if alike else "The difference on the first image"
    largest = float(np.abs(difference).max())
    if not largest:
        return shot(_amplified(difference, 1.0), f"No difference by the trigger {found.family}"), f"{of}: none."
    factor = max(one for one in _FACTORS if one * largest <= 0.5 or one == _FACTORS[0])
    size = {0.5: "halved", 1: "not amplified"}.get(factor, f"amplified {factor} times")
    alt = f"{of} by the trigger {found.family}, which leads to class {found.target}, {size}"
    return shot(_amplified(difference, factor), alt), f"{of}, {size}."


def _amplified(difference: NDArray[np.floating], factor: float) -> NDArray[np.floating]:
    return 0.5 + factor * difference
