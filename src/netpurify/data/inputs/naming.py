"""Which arrays of a file are the inputs, and in which dtype they go to the network."""

from collections.abc import Mapping, Sequence
from typing import Literal

from netpurify.errors import DataError

Dtype = Literal["auto", "float32", "int64"]
DTYPES: tuple[Dtype, ...] = ("auto", "float32", "int64")
SINGLE = ("inputs", "x", "images", "data")
"""Names of the array that is taken alone, if a file holds several."""
LABELS = ("label", "labels", "target", "targets", "y")
"""Names of arrays that are no inputs."""
_REAL = ("pixel_values", "input_features", "input_values", "inputs_embeds", "decoder_inputs_embeds")
"""Arguments of networks that take real numbers, even where a file holds bytes."""
KEYWORDS = (
    *_REAL, "input_ids", "attention_mask", "token_type_ids", "position_ids", "pixel_mask", "decoder_input_ids",
    "decoder_attention_mask", "bool_masked_pos",
)  # fmt: skip
"""Names that are arguments of transformers' networks: arrays called so are named inputs, also a single one."""
_WHOLE_BYTES = 4
"""Whole numbers of so many bytes are indices, such as tokens; shorter ones are pixels or samples."""


def chosen(names: Sequence[str], what: str) -> str | list[str]:
    """The name of the array that is the input, or a list of names of arrays that are inputs together.

    Raises:
        DataError: There is none, or it cannot be told.
    """
    inputs = [name for name in names if name not in LABELS] if len(names) > 1 else list(names)
    if any(name in KEYWORDS for name in inputs):
        return inputs
    single = [name for name in inputs if name in SINGLE]
    if len(inputs) == 1 or len(single) == 1:
        return (single or inputs)[0]
    if single or not inputs or not all(name.isidentifier() for name in inputs):
        shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
        raise DataError(
            f"{what}: expected one array, one that is called {', '.join(SINGLE)}, or several that are named as the "
            f"arguments of the network; got {shown or 'none'}; save the inputs alone"
        )
    return inputs


def require_same_rows(rows: Mapping[str, int], what: str) -> None:
    """Refuse named inputs that are not for the same number of inputs.

    Raises:
        DataError: They are not.
    """
    if len(set(rows.values())) > 1 or 0 in rows.values():
        shown = ", ".join(f"{name} {count}" for name, count in list(rows.items())[:5])
        raise DataError(
            f"{what}: several arrays are named inputs and must have the same number of rows, one for each input; got "
            f"{shown}; save the inputs alone, or one array that is called {', '.join(SINGLE)}"
        )


def target(kind: str, size: int, dtype: Dtype, *, name: str | None) -> str:
    """The dtype in which an array goes to the network.

    Args:
        kind: NumPy's letter: f for floats, b for truth values, else whole numbers.
        size: Bytes of a number.
        dtype: What the user asks for.
        name: Name of a named input; ``None`` for a single array.
    """
    if dtype != "auto":
        return dtype
    if kind == "f":
        return "float64" if size >= 8 else "float32"
    named = name is not None and name not in _REAL
    if kind == "b":
        return "bool" if named else "float32"
    return "int64" if size >= _WHOLE_BYTES or named else "float32"
