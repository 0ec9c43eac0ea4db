"""What hunts in healthy networks show, family by family, and from when on a finding is suspect."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from netpurify.atomic import write_atomically
from netpurify.errors import InputError

LEAST = 0.5
"""Margins and successes below this are never suspect."""
_UNKNOWN_MARGIN, _UNKNOWN_SUCCESS = 0.75, 0.9
"""The margin and the success that are suspect in a family of which no healthy network was hunted."""
_FILE = "healthy.json"
_GREY = 1
"""Channels of grey images."""
_SMALLEST, _LARGEST = 24, 40
"""Sides of images for which levels are taken to hold; they come from images of 28 and 32 pixels a side."""
_FEWEST, _MOST = 8, 20
"""Numbers of classes for which they are taken to hold; they come from networks with ten."""


@dataclass(frozen=True, slots=True)
class HealthyLevel:
    """What one family shows in healthy networks.

    Attributes:
        success: Median over hunts of the highest success of any class.
        highest: The highest success that any hunt found.
        margin: Median of the margins by which the best class stood out.
        widest: The widest margin that any hunt found.
        hunts: Number of hunts; 0 if nothing is known of the family.
    """

    success: float
    highest: float
    margin: float
    widest: float
    hunts: int

    @property
    def threshold(self) -> float:
        """The margin from which a finding is suspect: halfway between the widest of healthy networks and 1."""
        return max(LEAST, (1.0 + self.widest) / 2.0) if self.hunts else _UNKNOWN_MARGIN

    @property
    def success_threshold(self) -> float:
        """The success from which it is suspect: halfway between the highest of healthy networks and 1."""
        return max(LEAST, (1.0 + self.highest) / 2.0) if self.hunts else _UNKNOWN_SUCCESS

    def alarm(self, success: float, margin: float) -> float:
        """How far a finding has come to what is suspect: from 1 on, healthy networks give no reason to expect it.

        The margin finds a backdoor of moderate success where other classes have next to none. The success finds one in
        a family in which other classes have a high success by nature, so that no class stands out by much. What
        healthy networks show to the full is no sign of a backdoor; and where no healthy network was hunted, both must
        be reached.
        """
        by_margin = margin / self.threshold if self.widest < 1.0 else 0.0
        by_success = success / self.success_threshold if self.highest < 1.0 else 0.0
        return max(by_margin, by_success) if self.hunts else min(by_margin, by_success)


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a hunt in a healthy network is expected to show.

    Attributes:
        levels: By the name of a family, what healthy networks show.
        networks: How many healthy networks were hunted.
        about: Which networks these were, in words.
    """

    levels: Mapping[str, HealthyLevel]
    networks: int
    about: str

    def of(self, family: str) -> HealthyLevel:
        """What is expected of one family; without hunts if nothing is known of it."""
        return self.levels.get(family, HealthyLevel(0.0, 0.0, 0.0, 0.0, 0))

    def save(self, path: str | Path) -> None:
        """Write it as JSON, for ``load_expectation``."""
        with write_atomically(Path(path)) as stream:
            stream.write((json.dumps(asdict(self), indent=1) + "\n").encode())


def load_expectation(path: str | Path) -> Expectation:
    """Read what ``Expectation.save`` wrote.

    Raises:
        InputError: The file is not of that form.
    """
    try:
        return _from_json(json.loads(Path(path).read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise InputError(
            f"{path} must be an expectation of healthy networks as hunts are calibrated with; {type(error).__name__}: "
            f"{error}; make one with calibrate(hunts, about).save(path)"
        ) from error


def expectation_for(shape: Sequence[int], classes: int) -> Expectation:
    """What was measured with the networks of this library, for inputs of a shape: grey images, or colour.

    It holds for small images of about ten classes. For others nothing is known: with two classes one of them stands out
    by nature, and what is a faint pattern on a small image is a strong one on a large image.
    """
    if len(shape) != 3 or not all(_SMALLEST <= side <= _LARGEST for side in shape[1:]):
        return Expectation({}, 0, f"no healthy network for inputs {list(shape)} was hunted")
    if not _FEWEST <= classes <= _MOST:
        return Expectation({}, 0, f"no healthy network with {classes} classes was hunted")
    return _measured()["grey" if shape[0] == _GREY else "colour"]


@cache
def _measured() -> dict[str, Expectation]:
    text = resources.files("netpurify.network.hunting").joinpath(_FILE).read_text(encoding="utf-8")
    return {kind: _from_json(content) for kind, content in json.loads(text).items()}


def _from_json(content: Mapping[str, Any]) -> Expectation:
    levels = {str(name): _level(str(name), level) for name, level in content["levels"].items()}
    return Expectation(levels, int(content["networks"]), str(content["about"]))


def _level(family: str, content: Mapping[str, Any]) -> HealthyLevel:
    """The level of one family.

    Raises:
        ValueError: A number is none, or lies where no share or margin can.
    """
    level = HealthyLevel(**content)
    for name, least in (("success", 0.0), ("highest", 0.0), ("margin", -1.0), ("widest", -1.0)):
        value = getattr(level, name)
        if not isinstance(value, float | int) or not least <= value <= 1.0:
            raise ValueError(f"{name} of {family} must lie between {least:g} and 1; got {value!r}")
    if not isinstance(level.hunts, int) or level.hunts < 0:
        raise ValueError(f"hunts of {family} must be a whole number of at least 0; got {level.hunts!r}")
    return level
