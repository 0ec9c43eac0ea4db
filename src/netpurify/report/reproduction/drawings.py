"""The drawings of a figure on its page: for wide and for narrow screens, with a logarithmic and with a linear axis."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from netpurify.findings import PlotPanel
from netpurify.report.reproduction.plots import columns_of, draw

_PLACE = re.compile(r'(?<= )(?:d|x|y)="[^"]*"')
_LONG = re.compile(r"(\d\.\d\d)\d+")


@dataclass(frozen=True, slots=True)
class DrawnScale:
    """The drawings with one kind of vertical axis.

    Attributes:
        name: ``"log"`` or ``"linear"``.
        cards: SVG by its class in the style sheet, which shows one of them: side by side, or a column for phones.
    """

    name: str
    cards: Sequence[tuple[str, str]]


def scales_of(panels: Sequence[PlotPanel], title: str) -> list[DrawnScale]:
    """The drawings of some panels; a second time with linear axes if some are logarithmic."""
    if not panels:
        return []
    if not any(panel.log for panel in panels):
        return [DrawnScale("linear", _cards(panels, title))]
    linear = [replace(panel, log=False, limits=None) if panel.log else panel for panel in panels]
    return [DrawnScale("log", _cards(panels, title)), DrawnScale("linear", _cards(linear, f"{title}, linear axes"))]


def _cards(panels: Sequence[PlotPanel], title: str) -> list[tuple[str, str]]:
    across = columns_of(panels)
    wide = (f"across-{across}", _lighter(draw(panels, title=title, marked=True)))
    return [wide] if across == 1 else [wide, ("narrow", _lighter(draw(panels, title=title, columns=1, marked=True)))]


def _lighter(svg: str) -> str:
    """The same drawing with coordinates to a hundredth of a point, which nobody sees, in a third less text."""
    return _PLACE.sub(lambda place: _LONG.sub(r"\1", place[0]), svg)
