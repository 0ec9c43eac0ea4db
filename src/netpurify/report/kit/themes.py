"""Drawings that follow the page into the dark: each colour has a second value for readers who prefer a dark screen.

Drawings are made for white paper, and files of them stay so. In a page every colour becomes a variable of the style
sheet, whose value is the colour itself unless the screen is dark. On paper nothing changes.
"""

import re
from functools import cache

_PAPER, _INK = (20, 23, 27), (230, 232, 235)
"""Background and text of a dark page, as in page.css."""
_NEUTRAL = 20
"""Colours whose channels differ by no more than this are greys: they stand for paper, ink or what is between."""
_CONTRAST = 3.0
"""What a line needs beside its background to be seen, as the Web Content Accessibility Guidelines count it."""
_COLOUR = re.compile(r"(?<=: )#([0-9a-f]{6})\b")
_STYLE = re.compile(r'(?<= style=")[^"]*(?=")')


def themed(svg: str) -> str:
    """An ``<svg>`` element whose colours are variables, with their values for dark screens."""
    used = dict.fromkeys(found for style in _STYLE.findall(svg) for found in _COLOUR.findall(style))
    if not used:
        return svg
    svg = _STYLE.sub(lambda style: _COLOUR.sub(r"var(--c\1,#\1)", style[0]), svg)
    values = "".join(f"--c{colour}:{dark(colour)};" for colour in used)
    opening, rest = svg.split(">", 1)
    return f"{opening}><style>@media screen and (prefers-color-scheme:dark){{:root{{{values}}}}}</style>{rest}"


@cache
def dark(colour: str) -> str:
    """What a colour, ``rrggbb``, is on a dark page: greys change places with their opposites, others become lighter."""
    channels = [int(colour[place : place + 2], 16) for place in (0, 2, 4)]
    if max(channels) - min(channels) <= _NEUTRAL:
        light = sum(channels) / 765.0
        found = [light * paper + (1.0 - light) * ink for paper, ink in zip(_PAPER, _INK, strict=True)]
    else:
        found = [float(channel) for channel in channels]
        while contrast(found, _PAPER) < _CONTRAST:
            found = [channel + 0.05 * (255.0 - channel) for channel in found]
    return "#" + "".join(f"{round(channel):02x}" for channel in found)


def contrast(first: "list[float] | tuple[int, ...]", second: "list[float] | tuple[int, ...]") -> float:
    """Contrast of two colours, from 1 to 21."""
    high, low = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _luminance(channels: "list[float] | tuple[int, ...]") -> float:
    shares = [channel / 255.0 for channel in channels]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
