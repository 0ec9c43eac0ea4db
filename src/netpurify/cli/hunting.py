"""What ``hunt`` and ``unlearn`` have in common: images and how they were normalised, families, tables."""

# No ``from __future__ import annotations`` here: the fields below are options, whose types the parser reads.
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import netpurify
from netpurify.cli import options
from netpurify.cli.purifying import Source
from netpurify.cli.screen import show_line, show_table
from netpurify.errors import InputError

if TYPE_CHECKING:
    from netpurify.network import FamilyHunt, Hunt

_TEXT = ".txt"
_PROCESSOR = "preprocessor_config.json"
_BYTE = 1 / 255
"""By which bytes are multiplied unless the settings say otherwise."""
_FOUND = ("family", "class", "success", "runner-up", "margin", "threshold", "healthy, highest", "finding")
_COMPARED = ("family", "margin before", "margin after", "threshold", "class before", "class after", "finding")
_CLASSES = ("family", "class", "success")
_NONE = "-"


@dataclass(frozen=True, slots=True)
class Material:
    """The network, and clean images without labels."""

    weights: options.Weights
    data: Annotated[Path, typer.Option(help="Clean images without labels: .npy, .npz, .pt, .safetensors or a folder.")]
    factory: options.Factory = None
    factory_args: options.FactoryArgs = None
    config: options.Config = None
    size: options.Size = None
    channels: options.Channels = None
    limit: options.Limit = None
    mean: options.Mean = None
    std: options.Std = None
    dtype: options.Dtype = "auto"

    def source(self) -> Source:
        """The network and its clean inputs, not read yet.

        Raises:
            InputError: An option does not fit, or the inputs are text.
        """
        if self.data.suffix.lower() == _TEXT:
            raise InputError(
                f"a hunt changes images, and {self.data} is text; give images, or use netpurify defend, which works "
                "without families of triggers"
            )
        source = Source(**{field.name: getattr(self, field.name) for field in fields(self)})
        _ = source.inputs
        return source


@dataclass(frozen=True, slots=True)
class Search:
    """Which triggers are searched, and what is expected of healthy networks."""

    families: options.Families = None
    seed: Annotated[int, typer.Option(min=0, max=2**53, help="Of all random numbers.")] = 0
    expected: options.Expected = None

    def check(self) -> None:
        """Refuse families that are not there, before torch is loaded.

        Raises:
            InputError: There is one.
        """
        for name in self.families or ():
            if name not in options.FAMILIES:
                raise InputError(f"--family must be one of {', '.join(options.FAMILIES)}; got {name!r}")

    @property
    def number(self) -> int:
        """How many families are searched."""
        return len(dict.fromkeys(self.families or options.FAMILIES))

    def settings(self, source: Source) -> dict[str, Any]:
        """The arguments of ``hunt`` and the fields of ``Unlearn`` that these options set.

        Raises:
            InputError: The expectation cannot be read.
        """
        mean, std = normalisation(source)
        expected = None if self.expected is None else netpurify.network.load_expectation(self.expected)
        return {"families": self.families, "seed": self.seed, "mean": mean, "std": std, "expected": expected}


def normalisation(source: Source) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """What was subtracted from pixels in [0, 1] when the inputs were read, and what they were divided by.

    A folder of images for a network with a ``preprocessor_config.json`` is normalised as that says.
    """
    inputs = source.inputs
    settings: Mapping[str, Any] = {}
    processor = None if inputs.folder is None else inputs.folder / _PROCESSOR
    if processor is not None and processor.is_file() and inputs.path.is_dir():
        settings = _settings(processor)
    mean, std = inputs.mean or settings.get("image_mean"), inputs.std or settings.get("image_std")
    scale = float(settings.get("rescale_factor", _BYTE)) / _BYTE
    return tuple(value / scale for value in mean or (0.0,)), tuple(value / scale for value in std or (1.0,))


def _settings(processor: Path) -> Mapping[str, Any]:
    """Settings of images that change the range of pixels, as ``load_processed`` reads them."""
    found = netpurify.checkpoint.read_settings(processor)
    nested = found.get("image_processor")
    found = dict(nested) if isinstance(nested, Mapping) else dict(found)
    if not found.get("do_rescale", True):
        found["rescale_factor"] = 1.0
    if not found.get("do_normalize", "image_mean" in found):
        found |= {"image_mean": None, "image_std": None}
    for name in ("image_mean", "image_std"):
        value = found.get(name)
        found[name] = [value] if isinstance(value, int | float) else value
    return found


def show_hunt(hunt: "Hunt", *, verbose: bool) -> None:
    """A line for each family, the widest margins first; with ``verbose`` each class of each family too."""
    from netpurify.report import percent, points, strongest_families

    rows = [
        (
            one.family,
            str(one.best.target),
            percent(one.best.success),
            percent(one.runner_up),
            points(one.margin),
            points(one.expected.threshold),
            percent(one.expected.highest) if one.expected.hunts else _NONE,
            _finding(one),
        )
        for one in strongest_families(hunt)
    ]
    show_table("", _FOUND, rows, numbers=(1, 2, 3, 4, 5, 6))
    if verbose:
        show_line("")
        found = [
            (one.family, str(target), percent(success))
            for one in hunt.families
            for target, success in enumerate(one.successes(hunt.classes))
            if success is not None
        ]
        show_table("", _CLASSES, found, numbers=(1, 2))


def show_hunts(before: "Hunt", after: "Hunt") -> None:
    """Each family before and after a repair."""
    from netpurify.report import points, strongest_families

    later = {one.family: one for one in after.families}
    rows = [
        (
            one.family,
            points(one.margin),
            points(later[one.family].margin),
            points(one.expected.threshold),
            str(one.best.target),
            str(later[one.family].best.target),
            _findings([("before", one), ("after", later[one.family])]),
        )
        for one in strongest_families(before)
    ]
    show_table("", _COMPARED, rows, numbers=(1, 2, 3, 4, 5))


def _finding(one: "FamilyHunt") -> str:
    words = ["suspect"] if one.suspect else []
    return ", ".join(words if one.expected.hunts else [*words, "never calibrated"]) or _NONE


def _findings(both: "Sequence[tuple[str, FamilyHunt]]") -> str:
    times = [when for when, one in both if one.suspect]
    words = [f"suspect {' and '.join(times)}"] if times else []
    return ", ".join(words if both[0][1].expected.hunts else [*words, "never calibrated"]) or _NONE
