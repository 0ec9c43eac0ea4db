"""Images prepared as a network's ``preprocessor_config.json`` says: resized, cropped, scaled and normalised."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from netpurify.checkpoint import read_settings
from netpurify.data.inputs.image_folders import MOST_PIXELS, read_images
from netpurify.data.inputs.normalising import normalise
from netpurify.errors import DataError, InputError

_USED = (
    "do_resize", "size", "resample", "crop_pct", "do_center_crop", "crop_size", "do_rescale", "rescale_factor",
    "do_normalize", "image_mean", "image_std", "do_convert_rgb",
)  # fmt: skip
_WITHOUT_EFFECT = (
    "image_processor_type", "feature_extractor_type", "processor_class", "auto_map", "data_format", "input_data_format",
    "return_tensors", "device", "disable_grouping", "default_to_square", "model_input_names", "image_seq_length",
    "num_channels", "patch_size", "image_size",
)  # fmt: skip
"""Settings that do not change pixels, or only repeat what the network is."""
_CONVNEXT_SHARE = 224 / 256
_SQUARE_FROM = 384
"""ConvNeXt's processor, which ResNet uses too, resizes to a square from this size on, and crops below."""
_RESAMPLES = range(6)
_BILINEAR = 2


@dataclass(frozen=True, slots=True)
class Preparation:
    """How an image becomes an input.

    Attributes:
        resize: Height and width, or the length of the shortest edge; ``None`` to leave the size as it is.
        crop: Height and width that are cut out of the middle; ``None`` for all.
        resample: Pillow's number of the filter.
        factor: By which bytes are multiplied.
        mean: To subtract afterwards; ``None`` for nothing.
        std: To divide by; ``None`` for nothing.
    """

    resize: tuple[int, int] | int | None
    crop: tuple[int, int] | None
    resample: int
    factor: float
    mean: list[float] | None
    std: list[float] | None

    @property
    def size(self) -> tuple[int, int] | None:
        """Height and width of all inputs, if the settings alone say so."""
        return self.crop or (self.resize if isinstance(self.resize, tuple) else None)

    def shape(self, image: Any) -> Any:
        """A Pillow image of the size that the network wants.

        Raises:
            DataError: It would become absurdly large, or is smaller than what is to be cut out.
        """
        if self.resize is not None:
            high, wide = self.resize if isinstance(self.resize, tuple) else _by_edge(image, self.resize)
            if high * wide > MOST_PIXELS:
                raise DataError(f"resized to {high}x{wide} it has more than {MOST_PIXELS} pixels")
            image = image.resize((wide, high), self.resample) if image.size != (wide, high) else image
        if self.crop is None:
            return image
        high, wide = self.crop
        top, left = (image.height - high) // 2, (image.width - wide) // 2
        if min(top, left) < 0:
            raise DataError(f"{image.height}x{image.width} is smaller than the {high}x{wide} that are cut out of it")
        return image.crop((left, top, left + wide, top + high))


def load_processed(
    path: str | Path,
    processor: str | Path,
    *,
    size: tuple[int, int] | None = None,
    channels: int | None = None,
    limit: int | None = None,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
) -> Tensor:
    """Images of a folder as a network wants them, by its ``preprocessor_config.json``; see ``load_inputs`` for images.

    Args:
        path: The folder of images.
        processor: The settings, or a folder of a network that has them.
        size: (height, width) instead of the settings' size; nothing is cut out then.
        channels: 1 or 3; else as many as the settings have means, and 3 if they have none.
        limit: Only the first so many images.
        mean: Instead of the settings' mean.
        std: Instead of the settings' deviation.

    Returns:
        [n, channels, h, w], float32.

    Raises:
        InputError: An option or a setting does not fit; settings that would change pixels in another way are named.
        DataError: An image cannot be used.
    """
    wanted = preparation(processor)
    if size is not None:
        wanted = replace(wanted, resize=size, crop=None)
    if wanted.size is not None and (min(wanted.size) < 1 or math.prod(wanted.size) > MOST_PIXELS):
        raise InputError(f"size must be of 1 to {MOST_PIXELS} pixels; got {wanted.size[0]}x{wanted.size[1]}")
    channels = channels or (1 if wanted.mean is not None and len(wanted.mean) == 1 else 3)
    mean, std = mean or wanted.mean, std or wanted.std
    images = read_images(Path(path), size=wanted.size, channels=channels, limit=limit, shape=wanted.shape)
    if not math.isclose(wanted.factor, 1 / 255, rel_tol=1e-6):  # images come in [0, 1]
        images.mul_(255 * wanted.factor)
    return images if mean is None and std is None else normalise(images, mean or [0.0], std or [1.0])


def preparation(processor: str | Path) -> Preparation:
    """What settings say.

    Raises:
        InputError: They hold something that is not known here, or that is malformed.
        CheckpointError: They cannot be read.
    """
    path = Path(processor)
    path = path / "preprocessor_config.json" if path.is_dir() else path
    settings = read_settings(path)
    nested = settings.get("image_processor")
    settings = dict(nested) if isinstance(nested, Mapping) else settings
    _require_known(path, settings)
    try:
        return _parsed(settings)
    except (TypeError, ValueError, KeyError) as problem:
        raise InputError(
            f"{path}: the settings of images are malformed ({problem}); give --size, --mean, --std"
        ) from problem


def _require_known(path: Path, settings: Mapping[str, Any]) -> None:
    known = {*_USED, *_WITHOUT_EFFECT}
    odd = [
        f"{name}: {str(value)[:40]}"
        for name, value in settings.items()
        if name not in known and not name.startswith("_") and value not in (None, False)
    ]
    if odd:
        raise InputError(
            f"{path}: the settings of images must be resizing, cropping, scaling and normalising; {', '.join(odd[:3])} "
            "may change pixels in a way that is not known here; prepare the images as the network wants them and save "
            "them as pixel_values in a .npz file"
        )


def _parsed(settings: Mapping[str, Any]) -> Preparation:
    kind = str(settings.get("image_processor_type") or settings.get("feature_extractor_type") or "")
    cropped = bool(settings.get("do_center_crop"))
    resize: tuple[int, int] | int | None = None
    crop = _exact(settings["crop_size"]) if cropped else None
    if settings.get("do_resize", "size" in settings):
        resize = _size(settings["size"], edge=cropped)
        share = settings.get("crop_pct") or (_CONVNEXT_SHARE if kind.startswith("ConvNext") else None)
        if share is not None:
            resize, crop = _as_convnext(resize, float(share))
    resample = settings.get("resample", _BILINEAR)
    if resample not in _RESAMPLES:
        raise ValueError(f"resample {resample!r} is no filter of Pillow")
    scaled, normal = settings.get("do_rescale", True), settings.get("do_normalize", "image_mean" in settings)
    factor = float(settings.get("rescale_factor", 1 / 255)) if scaled else 1.0
    mean, std = (_numbers(settings[name]) if normal else None for name in ("image_mean", "image_std"))
    return Preparation(resize, crop, int(resample), factor, mean, std)


def _size(value: Any, *, edge: bool) -> tuple[int, int] | int:
    """(height, width), or the shortest edge. A bare number is an edge where something is cut out, as in CLIP."""
    if isinstance(value, Mapping):
        if set(value) == {"shortest_edge"}:
            return _whole(value["shortest_edge"])
        if set(value) != {"height", "width"}:
            raise ValueError(f"size has {', '.join(map(str, value))}; height and width, or shortest_edge are known")
        return _exact(value)
    return _whole(value) if edge and not isinstance(value, list) else _exact(value)


def _exact(value: Any) -> tuple[int, int]:
    if isinstance(value, Mapping):
        return _whole(value["height"]), _whole(value["width"])
    high, wide = value if isinstance(value, list) else (value, value)
    return _whole(high), _whole(wide)


def _as_convnext(size: tuple[int, int] | int, share: float) -> tuple[tuple[int, int] | int, tuple[int, int] | None]:
    edge = size if isinstance(size, int) else min(size)
    if edge >= _SQUARE_FROM:
        return (edge, edge), None
    if not 0.0 < share <= 1.0:
        raise ValueError(f"crop_pct {share} is no share")
    return int(edge / share), (edge, edge)


def _by_edge(image: Any, edge: int) -> tuple[int, int]:
    """Height and width with this shortest edge, in the image's proportions; the longer one is rounded down."""
    short, long = sorted(image.size)
    longer = int(edge * long / short)
    return (edge, longer) if image.height <= image.width else (longer, edge)


def _whole(value: Any) -> int:
    if type(value) is not int or not 0 < value <= MOST_PIXELS:
        raise ValueError(f"{value!r} is no size")
    return value


def _numbers(value: Any) -> list[float]:
    numbers = [float(one) for one in (value if isinstance(value, list) else [value])]
    if len(numbers) not in (1, 3) or not all(map(math.isfinite, numbers)):
        raise ValueError(f"{numbers} are not one number for each channel")
    return numbers
