"""A purification as one page that loads nothing: the verdict first, then everything it rests on."""

from collections.abc import Mapping
from typing import NamedTuple

from netpurify.network import Grade, Purification
from netpurify.report.kit.canvas import Picture, can_draw
from netpurify.report.kit.context import Context
from netpurify.report.kit.groups import fold_healthy, healthy_words, unsettled
from netpurify.report.kit.names import module_name
from netpurify.report.kit.numbers import count, duration, plural, size
from netpurify.report.kit.pages import NO_PICTURES, render_result, skipped_tables
from netpurify.report.kit.summary import Statement
from netpurify.report.purification import tables
from netpurify.report.purification.others import other_tensors
from netpurify.report.purification.pictures import chosen, pictures
from netpurify.report.purification.summary import summarise_purification

MOST_PICTURED = 24
_TITLE = "Report of a purification"
_POLICIES = {
    "recover": "recover: weights were altered after training; what is proven to be altered is replaced, the rest stays",
    "project": "project: weights were poisoned during training; every weight takes the fitted value",
}
_DIGESTS = {"Contaminated": "model", "Initial": "initial", "Clean inputs": "data"}


class PicturedLayer(NamedTuple):
    """The pictures of one layer, with their heading."""

    link: str
    name: str
    kind: str
    shape: str
    pictures: list[Picture]


def purification_page(result: Purification, context: Context) -> str:
    """One HTML file for desktop, phone and paper, light and dark, that needs no network.

    Without matplotlib the pictures are left out, and the page says so.
    """
    summary = summarise_purification(result)
    drawn = chosen(result.layers, MOST_PICTURED) if can_draw() else []
    links = {layer.name: f"layer-{position}" for position, layer in enumerate(drawn)}
    provenance, folded = result.provenance, fold_healthy(result.layers)
    content = {
        "title": context.title or _TITLE,
        "summary": summary,
        "asked": [
            *context.asked(_POLICIES.get(summary.policy, summary.policy)),
            *_settings(result).items(),
            ("Took", _effort(result)),
        ],
        "layers": tables.layers_table(result, links, folded.listed),
        "healthy": [
            tables.Noted(healthy_words(group), tables.layers_table(result, {}, group)) for group in folded.groups
        ],
        "expected": tables.expected_table(context.plan) if context.plan else None,
        "others": other_tensors(result),
        "skipped": skipped_tables(unsettled(result.skipped)),
        "no_pictures": None if can_draw() else NO_PICTURES,
        "drawn": _pictured(result, links),
        "undrawn": _undrawn(len(result.layers) - len(drawn)),
        "altered": tables.altered_table(result),
        "grades": _grades(result),
        "advice": tables.advice_table(summary),
        "units": tables.units_table(result),
        "digests": [(name, provenance[key]) for name, key in _DIGESTS.items()],
        "versions": provenance["versions"],
    }
    return render_result("purification.html", content)


def _settings(result: Purification) -> dict[str, str]:
    """The settings in words: the options that the policy has, without the policy itself."""
    unset = {
        "layers": ("Layers", "all that can be"),
        "noise_floor": ("Noise floor", "by the rounding of each unit"),
        "rank": ("Rank", "all that the clean inputs span"),
        "decay": ("Decay", "estimated for each layer"),
    }
    settings = result.provenance["settings"]
    words = {
        title: default if settings[name] is None else _setting(settings[name])
        for name, (title, default) in unset.items()
        if name in settings
    }
    return words | {"Proof": "kept, to be checked again" if settings["proof"] else "not kept"}


def _setting(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _effort(result: Purification) -> str:
    memory = f", {size(result.peak_bytes)} of memory at most" if result.peak_bytes else ""
    return f"{duration(result.seconds)}{memory}"


def _pictured(result: Purification, links: Mapping[str, str]) -> list[PicturedLayer]:
    return [
        PicturedLayer(
            link=links[layer.name],
            name=module_name(layer.name),
            kind=layer.kind,
            shape=" \N{MULTIPLICATION SIGN} ".join(map(str, layer.shape)),
            pictures=pictures(layer),
        )
        for layer in result.layers
        if layer.name in links
    ]


def _undrawn(layers: int) -> str:
    if not layers:
        return ""
    return (
        f"{plural(layers, 'layer')} without a picture: at most {MOST_PICTURED} are drawn, of layers in which weights "
        "were replaced or units not recovered."
    )


def _grades(result: Purification) -> list[Statement]:
    """What each grade that occurs says about its units."""
    return [
        Statement(f"{count(units)}: {grade.meaning}.", tables.grade_label(grade), grade.label.replace(" ", "-"))
        for grade in Grade
        if (units := result.count(grade))
    ]
