"""Pillow, which only the extra ``netpurify[data]`` installs."""

from typing import Any

from netpurify.errors import DataError


def require_pillow(why: str, otherwise: str) -> Any:
    """Pillow's ``Image`` module.

    Args:
        why: What it is needed for, in errors.
        otherwise: What to do without it.

    Raises:
        DataError: Pillow is not installed.
    """
    try:
        from PIL import Image
    except ImportError as problem:
        raise DataError(
            f"{why}, and Pillow is not installed; run `pip install 'netpurify[data]'`, or {otherwise}"
        ) from problem
    return Image
