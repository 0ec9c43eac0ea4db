"""How lines look: one colour, one marker and one pattern of dashes for one thing, in all figures, and in grey too."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from netpurify.findings import Line, PlotPanel


@dataclass(frozen=True, slots=True)
class Stroke:
    """How one thing looks.

    Attributes:
        colour: Colour of line and marker.
        marker: Shape of the marker; none if it is empty.
        dashes: Lengths of dashes and gaps; ``None`` for a solid line.
        thin: Whether the line is thin and its marker hollow, as lines to compare with are.
        top: Whether it lies above other lines where they meet.
        size: Size of the marker, in points.
    """

    colour: str
    marker: str
    dashes: tuple[float, ...] | None = None
    thin: bool = False
    top: bool = False
    size: float = 5.0


FIXED: dict[str, Stroke] = {
    # A ring around what it meets, so that neither hides the other.
    "contaminated": Stroke("#D55E00", "o", (4.0, 1.6), thin=True, top=True, size=7.0),
    "initial weights": Stroke("#000000", "s", (1.2, 1.6), thin=True),
    "l2": Stroke("#E69F00", "^", (6.0, 1.6, 1.2, 1.6), thin=True, top=True),
    "l1, initial features": Stroke("#CC79A7", "D", (2.4, 1.2), thin=True),
    "l1, joint training": Stroke("#8C510A", "v", (7.0, 2.0), thin=True),
    "predicted": Stroke("#000000", "+", (5.0, 2.0), thin=True, top=True),
    "generic": Stroke("#444444", "x", (1.0, 2.0), thin=True, top=True),
    "chance": Stroke("#888888", "", (2.0, 3.0), thin=True),
}
"""Things that look the same wherever they are drawn. Each has dashes of its own, so that grey is enough."""
STEPS: dict[str, tuple[str, ...]] = {
    "p": ("50", "100", "500", "1000", "2000"),
    "m": ("1", "2", "5", "10", "20", "30", "40"),
    "n": ("9", "21", "33", "36", "69", "99"),
    "l": ("1", "2", "3"),
}
"""The steps of the paper's figures: ``p = 500`` has one look, whether a figure draws three widths or five."""
LAWS = ("N(0, 1)", "N(1, 1)", "Cauchy", "constant 1", "sign flip", "bit flip", "3 bits")
"""The laws of alteration of the figures, which are steps with names."""
_RAMP = ((0x7A, 0xD1, 0x51), (0x22, 0xA8, 0x84), (0x2A, 0x78, 0x8E), (0x41, 0x44, 0x87), (0x44, 0x01, 0x54))
"""From light to dark in even steps of lightness: a photocopy keeps the order, and colour-blind readers see it."""
_MARKERS = ("o", "s", "^", "D", "v", "P", "<", ">")
_DASHES = ((3.0, 2.0), (1.5, 1.0), (8.0, 2.0), (3.0, 1.2, 1.2, 1.2, 1.2, 1.2), (5.0, 3.0), (9.0, 2.0, 2.0, 2.0))
_GREYS = ("#555555", "#999999", "#222222")


def thing_of(line: Line) -> str:
    """What a line is about."""
    return line.thing or line.label


def strokes_of(panels: Sequence[PlotPanel]) -> dict[str, Stroke]:
    """One look for each label, in the order of the legend: steps from light to dark, then what to compare with."""
    lines: dict[str, Line] = {}
    for panel in panels:
        for line in panel.lines:
            lines.setdefault(line.label, line)
    steps = _steps(thing_of(line) for line in lines.values() if not line.baseline and thing_of(line) not in FIXED)
    unknown = (thing_of(line) for line in lines.values() if thing_of(line) not in FIXED and thing_of(line) not in steps)
    others = FIXED | {thing: _other(place) for place, thing in enumerate(dict.fromkeys(unknown))}
    order = [*steps, *others]

    def look(line: Line) -> Stroke:
        thing = thing_of(line)
        if thing not in steps:
            return others[thing]
        # A comparison at one step, such as the prediction for it: the step's colour, the looks of a comparison.
        return replace(steps[thing], dashes=_DASHES[0], thin=True) if line.baseline else steps[thing]

    ordered = sorted(lines.values(), key=lambda line: (line.baseline, order.index(thing_of(line))))
    return {line.label: look(line) for line in ordered}


def step_stroke(rank: int, count: int) -> Stroke:
    """The look of one step among several: light for the first, dark for the last."""
    place = (len(_RAMP) - 1) * (rank / (count - 1) if count > 1 else 0.5)
    left = min(int(place), len(_RAMP) - 2)
    mixed = (round(a + (place - left) * (b - a)) for a, b in zip(_RAMP[left], _RAMP[left + 1], strict=True))
    return Stroke("#" + "".join(f"{part:02X}" for part in mixed), _MARKERS[rank % len(_MARKERS)])


def _steps(things: Iterable[str]) -> dict[str, Stroke]:
    """The looks of numbered steps, in their order: by the paper's list, else as they come."""
    things = list(dict.fromkeys(things))
    ladders = [LAWS, *([f"{letter} = {value}" for value in steps] for letter, steps in STEPS.items())]
    ladder = next((known for known in ladders if set(things) <= set(known)), things)
    ranks = [ladder.index(thing) for thing in things]
    return {thing: step_stroke(rank, len(ladder)) for rank, thing in sorted(zip(ranks, things, strict=True))}


def _other(place: int) -> Stroke:
    colour, dashes = _GREYS[place % len(_GREYS)], _DASHES[place % len(_DASHES)]
    return Stroke(colour, _MARKERS[::-1][place % len(_MARKERS)], dashes, thin=True)
