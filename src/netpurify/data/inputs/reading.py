"""Clean inputs from the user's own files: arrays, tensors, or a folder of images."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from netpurify.checkpoint import load_content, open_regular
from netpurify.data.inputs.image_folders import MOST_PIXELS, SUFFIXES, read_images
from netpurify.data.inputs.numpy_files import NPY, chosen, floats, is_npz, read_npy, read_npz
from netpurify.errors import CheckpointError, DataError, InputError

_ZIP = b"PK\x03\x04"
_KINDS = ".npy, .npz, .pt (a tensor), .safetensors, or a folder of images"


def load_inputs(
    path: str | Path, *, size: tuple[int, int] | None = None, channels: int | None = None, limit: int | None = None
) -> Tensor:
    """Network inputs, one in each row, from a file or a folder that holds no code.

    - ``.npy``, ``.npz``, ``.safetensors`` and tensors of ``torch.save`` are taken as they are, told by their content:
      float32 and float64 stay, other numbers, also whole ones and truth values, become float32 *without scaling*.
      Of several arrays in a file, the one called ``inputs``, ``x``, ``images`` or ``data`` counts.
    - Images of a folder and those below it, sorted by name, become [n, channels, h, w] in [0, 1]. Hidden files are
      skipped, transparency is dropped, and the orientation is that of the stored pixels. Needs Pillow,
      ``netpurify[data]``.

    Args:
        path: The file or the folder.
        size: (height, width) to which images are resized (bilinear, antialiased); without it all must have the same.
        channels: 1 turns images grey, 3 into RGB; without it all must be grey, or all in colour.
        limit: Only the first so many inputs are read.

    Raises:
        InputError: An option is wrong, or ``size`` or ``channels`` are given for something else than a folder.
        DataError: There is no such file, it is damaged or foreign, could run code, does not hold inputs, or a value
            is not finite.
    """
    path = Path(path)
    _check_options(path, size, channels, limit)
    if path.is_dir():
        return read_images(path, size=size, channels=channels, limit=limit)
    inputs = _tensor(path, limit)
    if inputs.ndim < 2 or not inputs.numel():
        raise DataError(
            f"{path}: expected at least one input in rows, [n, ...]; got the shape {list(inputs.shape)}; "
            "stack the inputs along a first axis"
        )
    _check_finite(path, inputs)
    return inputs


def normalise(inputs: Tensor, mean: Sequence[float], std: Sequence[float]) -> Tensor:
    """(inputs - mean) / std for each channel, as new memory.

    Args:
        inputs: [n, channels, ...], floats.
        mean: One number for each channel, or one for all.
        std: Likewise, above 0.

    Raises:
        InputError: The numbers are not as many as the channels, not finite, or a ``std`` is not above 0.
    """
    if inputs.ndim < 2 or not inputs.dtype.is_floating_point:
        raise InputError(f"inputs must be floats [n, channels, ...]; got {inputs.dtype}, shape {list(inputs.shape)}")
    channels = inputs.shape[1]
    for name, values in (("mean", mean), ("std", std)):
        if len(values) not in (1, channels) or not all(math.isfinite(value) for value in values):
            raise InputError(
                f"{name} must be {channels} finite numbers, one for each channel, or 1; got {list(values)}"
            )
    if min(std) <= 0:
        raise InputError(f"std must be above 0; got {list(std)}")
    broad = (1, -1, *[1] * (inputs.ndim - 2))
    centre, scale = (inputs.new_tensor(list(values)).reshape(broad) for values in (mean, std))
    return (inputs - centre) / scale


def _tensor(path: Path, limit: int | None) -> Tensor:
    try:
        with open_regular(path) as stream:
            start = stream.read(len(NPY))
            if start == NPY:
                return torch.from_numpy(floats(read_npy(stream, str(path), limit=limit)))
            if start.startswith(_ZIP) and is_npz(stream, path):
                return torch.from_numpy(floats(read_npz(stream, str(path), limit=limit)))
        if path.suffix.lower() in SUFFIXES:
            raise DataError(f"{path}: expected a folder of images; got a single one; give the folder")
        content = load_content(path)
    except OSError as problem:
        raise DataError(f"{path}: expected a file or folder that can be read; {problem.strerror}") from problem
    except CheckpointError as problem:
        raise DataError(f"{problem}; inputs come as {_KINDS}") from problem
    return _floats(path, _chosen_tensor(path, content), limit)


def _chosen_tensor(path: Path, content: Any) -> Tensor:
    if isinstance(content, dict):
        tensors = {str(name): value for name, value in dict.items(content) if isinstance(value, Tensor)}
        content = tensors[chosen(list(tensors), str(path))]
    if not isinstance(content, Tensor):
        raise DataError(f"{path}: expected a tensor of inputs; got {type(content).__name__}; save the tensor alone")
    return content


def _floats(path: Path, tensor: Tensor, limit: int | None) -> Tensor:
    if tensor.is_complex():
        raise DataError(f"{path}: expected whole or real numbers; got {tensor.dtype}; save real numbers")
    dtype = torch.float64 if tensor.dtype == torch.float64 else torch.float32
    rows = tensor.detach()[:limit] if tensor.ndim else tensor.detach()
    return rows.to(dtype, copy=True).contiguous()  # a copy: the file may change, these must not


def _check_options(path: Path, size: tuple[int, int] | None, channels: int | None, limit: int | None) -> None:
    if limit is not None and (type(limit) is not int or limit < 1):
        raise InputError(f"limit must be a whole number of at least 1; got {limit!r}")
    if channels not in (None, 1, 3):
        raise InputError(f"channels must be 1 (grey) or 3 (colour); got {channels!r}")
    if size is not None and (len(size) != 2 or any(type(side) is not int or side < 1 for side in size)):
        raise InputError(f"size must be (height, width), whole numbers of at least 1; got {size!r}")
    if size is not None and math.prod(size) > MOST_PIXELS:
        raise InputError(
            f"size must be of at most {MOST_PIXELS} pixels; got {size[0]}x{size[1]}, {math.prod(size)} pixels; "
            "give the height and width that your network takes"
        )
    if (size or channels) and path.is_file():
        raise InputError(
            f"size and channels are for folders of images; {path} is a file, whose numbers are taken as is"
        )


def _check_finite(path: Path, inputs: Tensor) -> None:
    bad = ~inputs.isfinite()
    count = int(bad.sum())
    if count:
        raise DataError(
            f"{path}: every value must be finite; {count} of {inputs.numel()} are not, the first at "
            f"{bad.nonzero()[0].tolist()}; repair the inputs or leave out those rows"
        )
