"""What all drawings share: colours, fonts, and SVG as text, the same bytes on every call."""

import hashlib
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from importlib.util import find_spec
from io import StringIO
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, filterwarnings

from netpurify.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's colours, which colour-blind readers tell apart; their yellow is left out, being faint on white."""
INK, GRID = "#333333", "#E3E3E3"
_SETTINGS: dict[Any, Any] = {
    "axes.edgecolor": "#888888",
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "figure.facecolor": "white",  # in a page, ``themes`` makes it the page's own
    "font.family": ["DejaVu Sans"],  # comes with matplotlib, so that every machine draws the same
    "font.size": 10.0,
    "savefig.facecolor": "white",
    "svg.fonttype": "path",  # a reader's fonts must not change the drawing
    "svg.hashsalt": "netpurify",  # names of clip paths are random otherwise
    "text.color": INK,
    "xtick.color": INK,
    "xtick.labelsize": 9.0,
    "ytick.color": INK,
    "ytick.labelsize": 9.0,
}
_SIZE = (4.4, 3.0)
"""Width and height of a picture with one pair of axes, in inches."""


@dataclass(frozen=True, slots=True)
class Picture:
    """One drawing.

    Attributes:
        svg: The drawing.
        caption: What it shows and how to read it.
    """

    svg: str
    caption: str


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def render(fill: "Callable[[Figure], None]", *, size: tuple[float, float], title: str, description: str) -> str:
    """One drawing as an ``<svg>`` element.

    Args:
        fill: Draws on an empty figure.
        size: Width and height in inches.
        title: What screen readers call the drawing.
        description: What it shows, in words.

    Raises:
        InputError: matplotlib is not installed.
    """
    try:
        # Here, not above: it is optional and takes half a second, and most of netpurify never draws.
        import matplotlib
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    except ImportError as problem:
        raise InputError(
            "drawing needs matplotlib, which is not installed; pip install 'netpurify[report]' brings it"
        ) from problem
    text = StringIO()
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # not the reader's own style, which would change the bytes
        matplotlib.rcParams.update(_SETTINGS)
        layout = ConstrainedLayoutEngine(w_pad=0.06, h_pad=0.06, wspace=0.03, hspace=0.05)
        figure = Figure(figsize=size, layout=layout)
        fill(figure)
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))  # a date would make every drawing another
        with catch_warnings():
            # Names of layers may have letters that the font lacks; the reader's browser has fonts of its own.
            filterwarnings("ignore", message="Glyph .* missing from font")
            figure.savefig(text, format="svg", metadata=nothing)
    return _embeddable(text.getvalue(), title, description)


def picture(fill: "Callable[[Axes], None]", *, title: str, caption: str, of: str = "") -> Picture:
    """One pair of axes with a title.

    Args:
        fill: Draws on the axes.
        title: What stands above them.
        caption: What it shows and how to read it.
        of: Of what it is, for screen readers, where several drawings have the same title.

    Raises:
        InputError: matplotlib is not installed.
    """

    def on_figure(figure: "Figure") -> None:
        axes = figure.add_subplot()
        axes.set_title(literal(title, 44))
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color=GRID, linewidth=0.7)
        axes.set_axisbelow(True)
        fill(axes)
        axes.minorticks_off()

    spoken = f"{of}: {title}" if of else title
    return Picture(render(on_figure, size=_SIZE, title=spoken, description=caption), caption)


def literal(text: str, width: int) -> str:
    """Text as it is, in lines of at most ``width`` characters; a dollar is a dollar, not the start of a formula."""
    return textwrap.fill(text, width).replace("$", r"\$")


def _embeddable(svg: str, title: str, description: str) -> str:
    """The drawing alone, with names for screen readers and with ids that no other drawing on the page has."""
    svg = re.sub(r"<!--.*?-->|<defs>\s*<style.*?</style>\s*</defs>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    svg = re.sub(r"\s+", " ", re.sub(r">\s+<", "><", svg))
    svg = re.sub(r' id="rows-(\d+-\d+)"', r' data-rows="\1"', svg)
    used = dict.fromkeys(re.findall(r'(?:href="|url\()#([^")]+)', svg))
    numbers = {name: number for number, name in enumerate(used)}
    # matplotlib's own ids hang on digits that it does not print, so that the prefix must not hang on these ids.
    plain = re.sub(r' id="[^"]+"', "", re.sub(r'(href="|url\()#([^")]+)', r"\1", svg))
    prefix = f"p{hashlib.sha256((title + plain).encode()).hexdigest()[:8]}-"
    svg = re.sub(
        r' id="([^"]+)"', lambda found: f' id="{prefix}{numbers[found[1]]}"' if found[1] in numbers else "", svg
    )
    svg = re.sub(r'(href="|url\()#([^")]+)', lambda found: f"{found[1]}#{prefix}{numbers[found[2]]}", svg)
    # Joins and caps are what the removed style sheet said; inside a page it would hold for every other drawing too.
    head = f'<svg role="img" aria-label="{escape(title)}" stroke-linejoin="round" stroke-linecap="butt"'
    opening, rest = svg.removeprefix("<svg").split(">", 1)
    return f"{head}{opening}><desc>{escape(description)}</desc>{rest.strip()}\n"
