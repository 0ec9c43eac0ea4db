"""Values that JSON has. It has neither NaN nor infinities: they are the strings "nan", "inf" and "-inf" everywhere."""

import json
import math
from dataclasses import fields, is_dataclass
from typing import Any


def number(value: float) -> float | str:
    """A number, or its name if JSON does not have it."""
    if math.isfinite(value):
        return value
    return "nan" if math.isnan(value) else "inf" if value > 0.0 else "-inf"


def to_json(value: Any) -> Any:
    """A value as ``json.dumps`` takes it, however deep: records become dictionaries and tuples become lists."""
    if isinstance(value, float):
        return number(value)
    if isinstance(value, dict):
        return {str(name): to_json(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(entry) for entry in value]
    if is_dataclass(value):
        return {field.name: to_json(getattr(value, field.name)) for field in fields(value)}
    return value


def json_text(record: dict[str, Any], *, indent: int | None = None) -> str:
    """A record as text; without indents by default, since only the compact form is encoded fast."""
    return json.dumps(record, indent=indent, allow_nan=False) + "\n"
