"""How reports speak of triggers: what each family does, shares in whole percent, margins in points."""

from collections.abc import Iterable

from netpurify.network import FamilyHunt, FoundTrigger, Hunt

_TRIGGERS = {
    "wave": "a faint wave",
    "field": "a faint smooth pattern",
    "flow": "a slight warp",
    "blend": "some noise that is mixed in",
    "scene": "a smooth picture that is mixed in",
    "spot": "a spot",
    "spots": "a group of spots",
    "frame": "a frame",
    "ghost": "a shifted copy that is mixed in",
    "tone": "a change of tone",
    "levels": "rounding to a few levels",
    "blur": "a blur",
    "blocks": "compression in blocks",
    "faint": "a faint pattern of any form",
}
"""What the families of this library do; others are called by their names."""
_COLOURS = (1, 3)
_PARTS_OF_IMAGES = 4


def trigger_words(family: str) -> str:
    """What a trigger of a family is."""
    return _TRIGGERS.get(family, f"a trigger of the family {family}")


def leads(found: FoundTrigger) -> str:
    """A trigger as the subject of a sentence, with its verb."""
    return f"{trigger_words(found.family)} sends"


def found_words(one: FamilyHunt) -> str:
    """What was found in a family, in a clause."""
    return (
        f"{one.family} leads to class {one.best.target} with {percent(one.best.success)}, "
        f"{points(one.margin)} above any other class ({thresholds(one)})"
    )


def thresholds(one: FamilyHunt) -> str:
    """From when on a family is suspect."""
    level = one.expected
    margin, success = points(level.threshold), percent(level.success_threshold)
    if not level.hunts:
        return f"suspect only from {margin} together with a success of {success} on"
    return f"suspect from {margin} or a success of {success} on"


def suspect_families(hunt: Hunt) -> list[FamilyHunt]:
    """The suspect families, strongest first."""
    return sorted((one for one in hunt.families if one.suspect), key=lambda one: -one.best.success)


def strongest_families(hunt: Hunt) -> list[FamilyHunt]:
    """All families, those first that have come closest to what is suspect."""
    return sorted(hunt.families, key=lambda one: -one.alarm)


def images_word(hunt: Hunt) -> str:
    """What the inputs are called."""
    return "images" if has_images(hunt) else "inputs"


def has_images(hunt: Hunt) -> bool:
    """Whether the examples can be shown: grey or coloured images with values in [0, 1]."""
    some = hunt.examples
    if some.dim() != _PARTS_OF_IMAGES or not some.is_floating_point() or some.shape[1] not in _COLOURS:
        return False
    return bool(some.numel()) and bool((some >= 0.0).all()) and bool((some <= 1.0).all())


def percent(value: float) -> str:
    """A share in whole percent; never "0 %" for what is not zero, nor "100 %" for what is not all."""
    if 0.0 < value < 0.005:
        return "under 1 %"
    if 0.995 <= value < 1.0:
        return "over 99 %"
    return f"{100.0 * value:.0f} %"


def points(value: float) -> str:
    """A difference of shares."""
    return "1 point" if f"{100.0 * value:.0f}" == "1" else f"{100.0 * value:.0f} points"


def joined(texts: Iterable[str]) -> str:
    """Texts in a row, with an "and" before the last."""
    *most, last = texts
    return f"{', '.join(most)} and {last}" if most else last
