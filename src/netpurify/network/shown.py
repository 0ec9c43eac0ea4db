"""Results that show themselves: ``print`` gives a short text, a notebook a table, ``repr`` one line.

The words are those of ``netpurify.report``, a level above. Its functions are named as text and loaded when a result is
shown, so that nothing here imports them and a purification that nobody prints does not load them.
"""

import pkgutil
from typing import Any

_WORDS = "netpurify.report.short"


class Shown:
    """Base of results; ``_brief`` says what stands between the brackets of ``repr``."""

    __slots__ = ()

    def __str__(self) -> str:
        return _by_name("short_text")(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._brief()})"

    def _repr_html_(self) -> str:
        return _by_name("short_html")(self)

    def _brief(self) -> str:
        raise NotImplementedError


def _by_name(function: str) -> Any:
    return pkgutil.resolve_name(f"{_WORDS}:{function}")
