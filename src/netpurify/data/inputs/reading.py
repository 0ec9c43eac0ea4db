"""Clean inputs from the user's own files: arrays, tensors, or a folder of images."""

import math
from pathlib import Path
from typing import Any

from torch import Tensor

from netpurify.checkpoint import load_content, open_regular
from netpurify.data.inputs.image_folders import MOST_PIXELS, SUFFIXES, read_images
from netpurify.data.inputs.naming import DTYPES, Dtype, chosen, require_same_rows
from netpurify.data.inputs.numbers import to_target
from netpurify.data.inputs.numpy_files import NPY, is_npz, read_npy, read_npz
from netpurify.errors import CheckpointError, DataError, InputError

_ZIP = b"PK\x03\x04"
_KINDS = ".npy, .npz, .pt (a tensor), .safetensors, or a folder of images"


def load_inputs(
    path: str | Path,
    *,
    size: tuple[int, int] | None = None,
    channels: int | None = None,
    limit: int | None = None,
    dtype: Dtype = "auto",
) -> Tensor | dict[str, Tensor]:
    """Network inputs, one in each row, from a file or a folder that holds no code.

    - ``.npy``, ``.npz``, ``.safetensors`` and tensors of ``torch.save`` are taken as they are, told by their content.
      float32 and float64 stay. Whole numbers of 32 and 64 bits, such as tokens, become int64. Shorter ones, such as
      pixels, truth values and other floats become float32 *without scaling*.
    - Of several arrays in a file, the one called ``inputs``, ``x``, ``images`` or ``data`` counts, and labels are left
      out. Several others, or any that is named as an argument of transformers' networks, such as ``input_ids`` or
      ``pixel_values``, are named inputs: a dictionary, whose entries become keyword arguments of the network. There
      whole numbers of any length become int64, and truth values stay.
    - Images of a folder and those below it, sorted by name, become [n, channels, h, w] in [0, 1]. Hidden files are
      skipped, transparency is dropped, and the orientation is that of the stored pixels. Needs Pillow,
      ``netpurify[data]``.

    Args:
        path: The file or the folder.
        size: (height, width) to which images are resized (bilinear, antialiased); without it all must have the same.
        channels: 1 turns images grey, 3 into RGB; without it all must be grey, or all in colour.
        limit: Only the first so many inputs are read.
        dtype: ``"float32"`` or ``"int64"`` for a single array instead of what is said above.

    Raises:
        InputError: An option is wrong, or is given for something else than it is for.
        DataError: There is no such file, it is damaged or foreign, could run code, does not hold inputs, or a value
            is not finite.
    """
    path = Path(path)
    _check_options(path, size, channels, limit, dtype)
    if path.is_dir():
        return read_images(path, size=size, channels=channels, limit=limit)
    inputs = _read(path, limit, dtype)
    for values in inputs.values() if isinstance(inputs, dict) else [inputs]:
        # A named input may be one number for each row, such as a length.
        if values.ndim < (1 if isinstance(inputs, dict) else 2) or not values.numel():
            raise DataError(
                f"{path}: expected at least one input in rows, [n, ...]; got the shape {list(values.shape)}; "
                "stack the inputs along a first axis"
            )
        _check_finite(path, values)
    return inputs


def _read(path: Path, limit: int | None, dtype: Dtype) -> Tensor | dict[str, Tensor]:
    try:
        with open_regular(path) as stream:
            start = stream.read(len(NPY))
            if start == NPY:
                return _converted(path, read_npy(stream, str(path), limit=limit), dtype)
            if start.startswith(_ZIP) and is_npz(stream, path):
                return _converted(path, read_npz(stream, str(path), limit=limit), dtype)
        if path.suffix.lower() in SUFFIXES:
            raise DataError(f"{path}: expected a folder of images; got a single one; give the folder")
        content = load_content(path)
    except OSError as problem:
        raise DataError(f"{path}: expected a file or folder that can be read; {problem.strerror}") from problem
    except CheckpointError as problem:
        raise DataError(f"{problem}; inputs come as {_KINDS}") from problem
    return _converted(path, _chosen_tensors(path, content, limit), dtype)


def _chosen_tensors(path: Path, content: Any, limit: int | None) -> Tensor | dict[str, Tensor]:
    if isinstance(content, dict):
        tensors = {str(name): value for name, value in dict.items(content) if isinstance(value, Tensor)}
        choice = chosen(list(tensors), str(path))
        if not isinstance(choice, str):
            rows = {name: len(tensors[name]) if tensors[name].ndim else 0 for name in choice}
            require_same_rows(rows, str(path))
            return {name: tensors[name].detach()[:limit] for name in choice}
        content = tensors[choice]
    if not isinstance(content, Tensor):
        raise DataError(f"{path}: expected a tensor of inputs; got {type(content).__name__}; save the tensor alone")
    return content.detach()[:limit] if content.ndim else content.detach()


def _converted(path: Path, found: Any, dtype: Dtype) -> Tensor | dict[str, Tensor]:
    """Copies in the dtypes that a network takes: the file may change, these must not."""
    if not isinstance(found, dict):
        return to_target(path, found, dtype, name=None)
    if dtype != "auto":
        raise InputError(
            f"dtype is for a single array; {path} holds {', '.join(list(found)[:5])}; save each array in its own dtype"
        )
    return {name: to_target(path, values, dtype, name=name) for name, values in found.items()}


def _check_options(
    path: Path, size: tuple[int, int] | None, channels: int | None, limit: int | None, dtype: Dtype
) -> None:
    if dtype not in DTYPES or (dtype != "auto" and path.is_dir()):
        raise InputError(f"dtype must be {', '.join(DTYPES)}, and auto for a folder of images; got {dtype!r}")
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
