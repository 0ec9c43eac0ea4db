"""Values that JSON has: NaN and the infinities, which it has not, are the strings "nan", "inf" and "-inf"."""

import math
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netpurify.network import Skipped


def number(value: float) -> float | str:
    """A number, or its name if JSON does not have it."""
    if math.isfinite(value):
        return value
    return "nan" if math.isnan(value) else "inf" if value > 0.0 else "-inf"


def numbers(values: NDArray[np.float64]) -> list[float | str]:
    """A list of numbers."""
    return [number(value) for value in values.tolist()]


def safe(value: Any) -> Any:
    """The same with numbers that JSON has, however deep."""
    if isinstance(value, dict):
        return {str(name): safe(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [safe(part) for part in value]
    return number(value) if isinstance(value, float) else value


def plain(one: Any) -> dict[str, Any]:
    """A flat dataclass as a dictionary."""
    return {field.name: safe(getattr(one, field.name)) for field in fields(one)}


def skipped(parts: Iterable[Skipped]) -> list[dict[str, Any]]:
    """What was not examined, with the reason."""
    return [plain(one) for one in parts]
