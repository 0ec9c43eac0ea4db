"""Pictures of one purified layer: where weights were replaced, residuals, energies, tolerance."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from netpurify.network import EDGES, Grade, LayerRecord
from netpurify.report.kit.canvas import COLOURS, INK, Picture, picture
from netpurify.report.kit.numbers import count, number, plural, share
from netpurify.report.purification.mosaic import COLOUR, LEFT, PLAIN, mosaic
from netpurify.report.purification.tolerances import tolerated

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_POINTS = 300
"""Points of a line, at most."""


def pictures(layer: LayerRecord) -> list[Picture]:
    """All that there is to see of a layer; what was not measured is left out.

    Raises:
        InputError: matplotlib is not installed.
    """
    found = []
    if not layer.count(Grade.PROJECTED):
        found.append(_replaced(layer))
    if layer.histogram.any():
        found.append(_residuals(layer))
    if layer.energies.size:
        found.append(_energies(layer))
    if len(layer.altered):
        found.append(_shares(layer))
    return found


def _draw(fill: "Callable[[Axes], None]", layer: LayerRecord, title: str, caption: str) -> Picture:
    return picture(fill, title=title, caption=caption, of=layer.name)


def _replaced(layer: LayerRecord) -> Picture:
    image = mosaic(layer)
    biases = int((layer.altered.tensor == 1).sum())
    caption = image.caption
    if biases:
        caption += f" Not shown: {count(biases)} replaced {'bias' if biases == 1 else 'biases'}."
    shown = [(PLAIN, "kept")]
    shown += [(COLOUR[grade], f"replaced, {grade.label}") for grade in COLOUR if (layer.altered.grade == grade).any()]
    shown += [(LEFT, "unit left alone")] if layer.count(Grade.LEFT_ALONE) else []

    def fill(axes: "Axes") -> None:
        from matplotlib.patches import Patch

        axes.imshow(image.pixels, interpolation="nearest", aspect="equal" if image.kernels else "auto")
        axes.set_xticks([])
        axes.set_yticks([])
        axes.grid(visible=False)
        axes.spines[:].set_visible(False)
        handles = [Patch(facecolor=colour, edgecolor="#888888", linewidth=0.5, label=text) for colour, text in shown]
        place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.02)}
        axes.legend(handles=handles, **place, ncols=2, frameon=False, fontsize=9.0)

    return _draw(fill, layer, "Replaced weights", caption)


def _residuals(layer: LayerRecord) -> Picture:
    filled = np.flatnonzero(layer.histogram)
    first, last = int(filled[0]), int(filled[-1]) + 1
    floors, scales = (values[np.isfinite(values) & (values > 0.0)] for values in (layer.noise_floor, layer.error_scale))
    zeros = f" {plural(layer.zeros, 'residual')} at most the noise floor not drawn." if layer.zeros else ""
    caption = f"Sizes of {plural(int(layer.histogram.sum()), 'residual')}, how far weights are from the fit.{zeros}"

    def fill(axes: "Axes") -> None:
        from matplotlib.ticker import LogLocator, MaxNLocator

        axes.bar(EDGES[first:last], layer.histogram[first:last], width=np.diff(EDGES[first : last + 1]), align="edge",
                 color=COLOURS[5], edgecolor="white", linewidth=0.4)  # fmt: skip
        axes.set_xscale("log")
        marks = [EDGES[first], EDGES[last], *(float(np.median(values)) for values in (floors, scales) if values.size)]
        axes.set_xlim(min(marks) / 10.0, max(marks) * 10.0)
        axes.xaxis.set_major_locator(LogLocator(numticks=7))
        for values, colour, dashes, name in (
            (floors, INK, "--", "noise floor"),
            (scales, COLOURS[1], ":", "error scale"),
        ):
            if values.size:
                middle = float(np.median(values))
                axes.axvline(middle, color=colour, linestyle=dashes, linewidth=1.5, label=f"{name} {number(middle)}")
        if floors.size or scales.size:
            axes.legend(loc="upper center", frameon=False, fontsize=9.0)
        axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.set_ylim(0.0, 1.3 * float(layer.histogram.max()))
        axes.set_xlabel("size of a residual")
        axes.set_ylabel("weights")

    return _draw(fill, layer, "Residuals", caption)


def _energies(layer: LayerRecord) -> Picture:
    rank = count(layer.rank)
    caption = (
        f"Energy of the clean inputs in their principal directions. Rank {rank}: they span that many directions of "
        f"{count(layer.live)}; only what lies outside can tell an altered weight from a trained one."
    )
    place = np.unique(np.linspace(0, layer.energies.size - 1, min(_POINTS, layer.energies.size)).astype(np.intp))
    heights = np.maximum(layer.energies[place], 1e-18 * float(layer.energies.max()))

    def fill(axes: "Axes") -> None:
        axes.plot(place + 1, heights, color=COLOURS[0], linewidth=1.9)
        axes.set_yscale("log")
        axes.set_xlim(0.0, 1.03 * layer.live)
        axes.axvline(layer.rank, color=INK, linestyle="--", linewidth=1.2, label=f"rank {rank}")
        end = f"{'fan-in' if layer.live == layer.fan_in else 'live inputs'} {count(layer.live)}"
        axes.axvline(layer.live, color=COLOURS[1], linestyle=":", linewidth=1.5, label=end)
        axes.legend(frameon=False, fontsize=9.0)
        axes.set_xlabel("direction")
        axes.set_ylabel("energy")

    return _draw(fill, layer, "Energies of the clean inputs", caption)


def _shares(layer: LayerRecord) -> Picture:
    shares = _per_unit(layer)
    tolerance = layer.tolerance
    limit = None if tolerance is None else tolerance.layer.value
    caption = "Share of each unit's weights that were replaced. "
    if tolerance is None:
        caption += "The layer was never trained, so no fit limits it."
    elif not limit:
        caption += "The clean inputs span everything, so that no share is tolerated: nothing can be proven."
    else:
        caption += (
            f"All units survive {tolerated(tolerance.layer)}, at random places and with as many positive alterations "
            f"as were found ({share(tolerance.positive)}), with probability 0.95: simulated on this layer's clean "
            f"inputs with {plural(tolerance.columns, 'column')}."
        )
    top = max(float(shares.max()), limit or 0.0) * 1.08
    edges = np.linspace(0.0, top, 31)
    parts = [(grade, colour) for grade, colour in COLOUR.items() if layer.count(grade)]

    def fill(axes: "Axes") -> None:
        from matplotlib.ticker import MaxNLocator

        axes.hist([shares[layer.grade == grade] for grade, _ in parts], bins=list(edges), stacked=True,
                  color=[colour for _, colour in parts], label=[grade.label for grade, _ in parts],
                  edgecolor="white", linewidth=0.4)  # fmt: skip
        if limit is not None:
            axes.axvline(limit, color=INK, linestyle="--", linewidth=1.2, label=f"tolerated: {share(limit)}")
        axes.set_xlim(0.0, top)
        axes.xaxis.set_major_formatter(lambda value, _: f"{100.0 * value:g} %")
        axes.locator_params(axis="x", nbins=6)
        axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.margins(y=0.25)
        axes.legend(frameon=False, fontsize=9.0)
        axes.set_xlabel("replaced weights of a unit")
        axes.set_ylabel("units")

    return _draw(fill, layer, "Found, and tolerated", caption)


def _per_unit(layer: LayerRecord) -> NDArray[np.float64]:
    """Share of replaced weights of each unit, bias included."""
    return np.bincount(layer.places_of(layer.altered)[0], minlength=layer.units) / layer.fan_in


def chosen(layers: Sequence[LayerRecord], most: int) -> list[LayerRecord]:
    """The layers worth drawing, in their order: where something was replaced or not recovered, the most first."""
    worth = [layer for layer in layers if len(layer.altered) or layer.unjudged or layer.uncertain]
    ranked = sorted(worth, key=lambda layer: (-layer.count(Grade.LEFT_ALONE) / layer.units, -layer.share_altered))
    kept = {layer.name for layer in ranked[:most]}
    return [layer for layer in worth if layer.name in kept]
