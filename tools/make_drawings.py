"""Makes the drawings of README and docs/method.md anew, from networks and fits that are computed here.

python tools/make_drawings.py [FOLDER]      into docs/figures by default
"""

import base64
import io
import math
import sys
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import SupportsFloat

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from torch import nn

from netpurify import lad
from netpurify.experiments import demo

FIGURES = Path(__file__).parents[1] / "docs" / "figures"
Array = NDArray[np.float64]
Point = tuple[float, float]

_STYLE = """
  .page { fill: #ffffff } text { fill: #1b2027 } .bold { font-weight: 600 } .quiet { fill: #545d69 }
  .axis { stroke: #68727f; fill: none; stroke-width: 1.3 } .dot { fill: #68727f } .frame { stroke: #b9c0c9; fill: none }
  .good { stroke: #1f5fae; fill: none; stroke-width: 3 } .bad { stroke: #a86200; fill: none; stroke-width: 3 }
  .miss { stroke: #c62f2f; stroke-width: 2.4 } .hit { fill: #c62f2f } .blue { fill: #1f5fae } .amber { fill: #8a5000 }
  @media (prefers-color-scheme: dark) {
    .page { fill: #14181d } text { fill: #e8ecf1 } .quiet { fill: #adb6c2 }
    .axis { stroke: #8b96a4 } .dot { fill: #adb6c2 } .frame { stroke: #4a535e }
    .good { stroke: #7fb2f2 } .bad { stroke: #f0b35a } .miss { stroke: #ff8080 } .hit { fill: #ff8080 }
    .blue { fill: #7fb2f2 } .amber { fill: #f0b35a }
  }
"""


class Drawing:
    """An SVG that knows light and dark schemes; shapes are added in the order in which they cover each other."""

    def __init__(self, title: str, size: tuple[int, int]) -> None:  # noqa: D107
        width, height = size
        self._parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            'font-family="system-ui, sans-serif" font-size="17" role="img" aria-labelledby="title">',
            f'<title id="title">{escape(title)}</title><style>{_STYLE}</style>',
            f'<rect class="page" width="{width}" height="{height}"/>',
        ]

    def text(self, at: Point, words: str, kind: str = "", *, anchor: str = "start") -> None:
        """Words, with the lower left corner at a point."""
        x, y = at
        self._parts.append(f'<text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(words)}</text>')

    def line(self, points: Sequence[Point], kind: str) -> None:
        """A line through points."""
        shown = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self._parts.append(f'<polyline class="{kind}" points="{shown}"/>')

    def dot(self, at: Point, kind: str) -> None:
        """A point."""
        self._parts.append(f'<circle class="{kind}" cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="5"/>')

    def picture(self, at: Point, width: float, pixels: NDArray[np.uint8]) -> None:
        """Pixels [h, w, 3], each a square, in a frame."""
        height = width * pixels.shape[0] / pixels.shape[1]
        stream = io.BytesIO()
        Image.fromarray(np.repeat(np.repeat(pixels, 4, axis=0), 4, axis=1)).save(stream, "PNG", optimize=True)
        code = base64.b64encode(stream.getvalue()).decode()
        box = f'x="{at[0]:g}" y="{at[1]:g}" width="{width:g}" height="{height:g}"'
        self._parts.append(f'<image {box} href="data:image/png;base64,{code}"/><rect class="frame" {box}/>')

    def save(self, path: Path) -> None:
        """Write it."""
        path.write_text("\n".join([*self._parts, "</svg>"]) + "\n", encoding="utf-8")


def signed(values: Array, scale: float) -> NDArray[np.uint8]:
    """Blue below zero, white at zero, red above; full colour from ``scale`` on."""
    share = np.clip(values / scale, -1.0, 1.0)[..., None]
    white, red, blue = (np.array(colour, float) for colour in ((250, 250, 250), (178, 24, 43), (33, 102, 172)))
    return np.round(white + np.abs(share) * (np.where(share > 0, red, blue) - white)).astype(np.uint8)


def inked(values: Array) -> NDArray[np.uint8]:
    """0 is white, 1 is black."""
    return np.repeat(np.round(250 * (1.0 - values[..., None])), 3, axis=-1).astype(np.uint8)


def kernels(model: nn.Module) -> Array:
    """The kernels of the demo's convolution, [filters, height, width]."""
    convolution = model.get_submodule("0")
    assert isinstance(convolution, nn.Conv2d)
    return convolution.weight.detach().numpy()[:, 0].astype(float)


def first_minute(story: demo.Recovery) -> Drawing:
    """Kernels before and after alteration, what was found, and what was returned."""
    networks = (story.trained, story.contaminated, story.result.model)
    banks = [kernels(model) - kernels(story.initial) for model in networks]
    shown = np.argsort([-np.abs(kernel).max() for kernel in banks[0]])[:6]
    scale = float(np.quantile(np.abs(banks[0][shown]), 0.99))
    found = story.found["0.weight"].numpy()[:, 0]
    hit = sum(int(mask.sum()) for mask in story.hit.values())
    total = sum(mask.numel() for mask in story.hit.values())
    bound = 10.0 ** math.ceil(math.log10(story.largest_error))
    if not story.right:
        raise RuntimeError("the demo did not call exactly the altered weights altered, as the drawing says")
    rows = [
        ("What training changed in 6 of 100 kernels (nobody has this)", [signed(it, scale) for it in banks[0][shown]]),
        (f"The same after {hit:,} of {total:,} weights were altered", [signed(it, scale) for it in banks[1][shown]]),
        (f"Called altered by netpurify: {hit:,}, exactly those", [_mask(it) for it in found[shown]]),
        (f"Purified: no weight is off by more than {bound:.0e}", [signed(it, scale) for it in banks[2][shown]]),
    ]
    drawing = Drawing("Kernels of a network before and after alteration, and purified", (640, 360))
    for number, (words, pictures) in enumerate(rows):
        top = 8 + 88 * number
        drawing.text((8, top + 18), words, "bold" if number else "")
        for place, pixels in enumerate(pictures):
            drawing.picture((8 + 105 * place, top + 27), 99, pixels)
    return drawing


def _mask(found: NDArray[np.bool_]) -> NDArray[np.uint8]:
    return np.where(found[..., None], np.array([178, 24, 43]), np.array([240, 240, 240])).astype(np.uint8)


def one_neuron(story: demo.Recovery) -> Drawing:
    """What training changed in one kernel is a mixture of the patches that it saw."""
    change = kernels(story.trained) - kernels(story.initial)
    kernel = int(np.argmax(np.abs(change).max(axis=(1, 2))))
    patches = story.inputs.numpy()[:, 0].reshape(-1, 2, 14, 28).reshape(-1, 14, 28).astype(float)
    mix = np.linalg.lstsq(patches.reshape(len(patches), -1).T, change[kernel].ravel(), rcond=None)[0]
    strongest = np.argsort(-np.abs(mix))[:3]
    drawing = Drawing("The change of one kernel is a weighted sum of the patches of its clean inputs", (640, 200))
    drawing.text((8, 26), "What training changed in one kernel", "bold")
    drawing.picture((8, 40), 190, signed(change[kernel], float(np.quantile(np.abs(change[kernel]), 0.99))))
    drawing.text((206, 96), "=", "bold")
    for place, number in enumerate(strongest):
        left = 228 + 122 * place
        drawing.picture((left, 62), 100, inked(patches[number]))
        drawing.text((left + 50, 52), f"{mix[number]:+.4f} x", "blue bold", anchor="middle")
    drawing.text((584, 96), "+ ...", "bold")
    drawing.text(
        (8, 172),
        f"in all {len(patches)} patches: 2 of each of {len(story.inputs)} images, each {14 * 28} pixels",
        "quiet",
    )
    return drawing


def fits() -> Drawing:
    """A line through points of which some are far off: least squares and least absolute deviations."""
    x = np.linspace(0.05, 0.95, 16)
    b, altered = 0.25 + 0.45 * x, np.array([2, 7, 11, 13])
    b[altered] += [-0.22, -0.3, 0.35, 0.3]
    design = np.column_stack([np.ones(16), x])
    exact = lad.solve(design, b).coefficients.ravel()
    squares = np.linalg.lstsq(design, b, rcond=None)[0]
    drawing = Drawing(
        "Least absolute deviations goes through the unaltered entries, least squares through none", (640, 330)
    )

    def place(at: SupportsFloat, value: SupportsFloat) -> Point:
        return 40 + 560 * float(at), 300 - 225 * float(value)

    drawing.line([place(0, 1), place(0, 0), place(1, 0)], "axis")
    for number in altered:
        drawing.line([place(x[number], b[number]), place(x[number], float(design[number] @ exact))], "miss")
    for fit, kind in ((squares, "bad"), (exact, "good")):
        drawing.line([place(0, fit[0]), place(1, fit[0] + fit[1])], kind)
    for number in range(16):
        drawing.dot(place(x[number], b[number]), "hit" if number in altered else "dot")
    drawing.text((48, 24), "least absolute deviations: 12 residuals are exactly 0", "blue bold")
    drawing.text((48, 48), "least squares: every residual is off", "amber bold")
    drawing.text((600, 322), "red: 4 of 16 entries altered", "hit", anchor="end")
    return drawing


def certificate() -> Drawing:
    """The sum of absolute residuals over the one coefficient of a design, and the bound that a dual proves."""
    rng = np.random.default_rng(5)
    a = rng.uniform(0.4, 1.6, 12)
    b = 0.6 * a
    b[[1, 6, 9]] += [0.7, -0.5, 0.9]
    solution = lad.solve(a[:, None], b)
    best = float(solution.coefficients.ravel()[0])
    bound = float(np.ravel(solution.claim.dual) @ b)
    values = np.linspace(best - 0.4, best + 0.4, 201)
    loss = np.abs(b[:, None] - a[:, None] * values).sum(axis=0)
    low, high = 0.7 * bound, float(loss.max())
    drawing = Drawing("The objective over one coefficient, and the bound below it that the dual proves", (640, 330))

    def place(value: SupportsFloat, height: SupportsFloat) -> Point:
        across = (float(value) - values[0]) / (values[-1] - values[0])
        return 60 + 540 * across, 280 - 240 * (float(height) - low) / (high - low)

    drawing.line([place(values[0], high), place(values[0], low), place(values[-1], low)], "axis")
    drawing.line([place(*pair) for pair in zip(values, loss, strict=True)], "good")
    drawing.line([place(values[0], bound), place(values[-1], bound)], "bad")
    drawing.dot(place(best, float(np.abs(b - a * best).sum())), "hit")
    drawing.text((70, 30), "sum of absolute residuals", "blue bold")
    drawing.text((70, place(best, bound)[1] + 24), f"no coefficient can go below {bound:.3f}", "amber bold")
    drawing.text((place(best, bound)[0], place(best, bound)[1] - 60), f"u = {best:.2f}", "hit bold", anchor="middle")
    drawing.text((600, 312), "coefficient u", "quiet", anchor="end")
    return drawing


def limits() -> Drawing:
    """How many weights of a unit may be altered, by the rank of its clean inputs."""
    fan_in = 400
    ranks = np.arange(4, 400, 12)
    shares = [lad.largest_share(fan_in, int(rank)) for rank in ranks]
    drawing = Drawing("Share of a unit's weights that may be altered, by the rank of its clean inputs", (640, 330))

    def place(rank: SupportsFloat, share: SupportsFloat) -> Point:
        return 70 + 530 * float(rank) / fan_in, 270 - 240 * float(share)

    drawing.line([place(0, 1), place(0, 0), place(fan_in, 0)], "axis")
    for share in (0, 0.25, 0.5, 0.75, 1):
        drawing.text((62, place(0, share)[1] + 6), f"{100 * share:.0f} %", "quiet", anchor="end")
    for rank in (0, 100, 200, 300, 400):
        drawing.text((place(rank, 0)[0], 294), str(rank), "quiet", anchor="middle")
    drawing.line([place(rank, share) for rank, share in zip(ranks, shares, strict=True)], "good")
    for rank in (40, 200, 376):
        at = place(rank, lad.largest_share(fan_in, rank))
        drawing.dot(at, "hit")
        words = f"rank {rank}: {100 * lad.largest_share(fan_in, rank):.0f} %"
        drawing.text((min(at[0] + 10, 500), at[1] - 12), words, "bold")
    drawing.text((600, 320), f"directions that the clean inputs span, of {fan_in}", "quiet", anchor="end")
    return drawing


def main(arguments: Sequence[str]) -> None:
    """Write all drawings into a folder."""
    folder = Path(arguments[0]) if arguments else FIGURES
    story = demo.recovery()
    drawings = {
        "first-minute": first_minute(story), "method-neuron": one_neuron(story), "method-fits": fits(),
        "method-certificate": certificate(), "method-limits": limits(),
    }  # fmt: skip
    for name, drawing in drawings.items():
        drawing.save(folder / f"{name}.svg")


if __name__ == "__main__":
    main(sys.argv[1:])
