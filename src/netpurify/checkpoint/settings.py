"""Settings beside weights, as JSON: how a network is built, how its inputs are made. Nothing in them is run."""

import json
from pathlib import Path
from typing import Any

from netpurify.checkpoint.mapping import open_regular
from netpurify.errors import CheckpointError

_LARGEST = 1 << 24
"""Bytes of settings; a network's are a few thousand, some list a hundred thousand labels."""


def read_settings(path: str | Path) -> dict[str, Any]:
    """A JSON object from a file.

    Raises:
        CheckpointError: There is no such file, or it is damaged, too large, or no JSON object.
    """
    try:
        with open_regular(path) as stream:
            text = stream.read(_LARGEST + 1)
    except OSError as problem:
        raise CheckpointError(
            f"{path}: expected settings that can be read; {problem.strerror}; check its name"
        ) from problem
    if len(text) > _LARGEST:
        raise CheckpointError(f"{path}: expected settings of at most {_LARGEST} bytes; got more; give the right file")
    try:
        found = json.loads(text.decode("utf-8-sig"))
    except (ValueError, RecursionError) as problem:
        raise CheckpointError(
            f"{path}: expected a JSON object; it is damaged ({type(problem).__name__}); get it again"
        ) from problem
    if not isinstance(found, dict):
        raise CheckpointError(f"{path}: expected a JSON object; got {type(found).__name__}; give the right file")
    return found
