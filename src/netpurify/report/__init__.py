"""Reports of purifications, defences, hunts, scans and the paper's figures: pages, JSON records, SARIF logs and plots.

    report.write(result, {"page": "report.html", "record": "report.json"})   a purification or a defence as files
    report.summarise(result)                            the same in words, with the exit code of the command line
    report.page(result)                                 as one page that loads nothing
    report.record(result)                               as JSON, for programs; report.schema() describes it
    report.sarif(result, file="model.safetensors")      a purification, scan or plan as SARIF, for code scanning

    results = [report.FigureResult(figure, findings.read_table(path), mode="full") for figure, path in ...]
    report.save("reproduction.html", report.reproduction_page(results, about={"version": "0.1"}))
    report.draw(figure.panels(rows))                    one plot as SVG

Drawing needs matplotlib: ``pip install 'netpurify[report]'``. Everything is loaded when it is first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from netpurify.report.comparison.detection import Detection
    from netpurify.report.errata_page import errata_markdown
    from netpurify.report.formats import FORMATS, Format, render, write
    from netpurify.report.hunt.words import percent, points, strongest_families
    from netpurify.report.kit.files import save
    from netpurify.report.kit.groups import (
        fold,
        fold_healthy,
        fold_skipped,
        healthy_words,
        same_reason,
        skipped_words,
        unsettled,
    )
    from netpurify.report.kit.json_values import json_text
    from netpurify.report.kit.names import module_name, policy_name
    from netpurify.report.kit.numbers import clock, count, duration, number, plural, share, size
    from netpurify.report.kit.summary import Advice, Statement, Summary, VerdictLine
    from netpurify.report.kit.tensor_findings import finding_words, other_words, told_first
    from netpurify.report.purification.counts import unit_columns
    from netpurify.report.purification.entries import largest_changes, place
    from netpurify.report.purification.tolerances import MEANING, TOLERANCES, tolerance_rows
    from netpurify.report.records.contamination import contamination_record
    from netpurify.report.records.difference import describe_difference, difference_record, difference_sarif
    from netpurify.report.records.examination import examination_record
    from netpurify.report.records.schemas import schema
    from netpurify.report.records.sweep import sweep_record
    from netpurify.report.reproduction.belief import counted
    from netpurify.report.reproduction.markdown import plot, reproduction_markdown
    from netpurify.report.reproduction.page import reproduction_page
    from netpurify.report.reproduction.plots import draw
    from netpurify.report.reproduction.result import FigureResult
    from netpurify.report.results import page, record, sarif, summarise

_MODULES = {
    "comparison.detection": ("Detection",),
    "errata_page": ("errata_markdown",),
    "formats": ("FORMATS", "Format", "render", "write"),
    "hunt.words": ("percent", "points", "strongest_families"),
    "kit.files": ("save",),
    "kit.groups": (
        *("fold", "fold_healthy", "fold_skipped", "healthy_words", "same_reason", "skipped_words"),
        "unsettled",
    ),
    "kit.json_values": ("json_text",),
    "kit.names": ("module_name", "policy_name"),
    "kit.numbers": ("clock", "count", "duration", "number", "plural", "share", "size"),
    "kit.summary": ("Advice", "Statement", "Summary", "VerdictLine"),
    "kit.tensor_findings": ("finding_words", "other_words", "told_first"),
    "purification.counts": ("unit_columns",),
    "purification.entries": ("largest_changes", "place"),
    "purification.tolerances": ("MEANING", "TOLERANCES", "tolerance_rows"),
    "records.contamination": ("contamination_record",),
    "records.difference": ("describe_difference", "difference_record", "difference_sarif"),
    "records.examination": ("examination_record",),
    "records.schemas": ("schema",),
    "records.sweep": ("sweep_record",),
    "reproduction.belief": ("counted",),
    "reproduction.markdown": ("plot", "reproduction_markdown"),
    "reproduction.page": ("reproduction_page",),
    "reproduction.plots": ("draw",),
    "reproduction.result": ("FigureResult",),
    "results": ("page", "record", "sarif", "summarise"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "FORMATS",
    "MEANING",
    "TOLERANCES",
    "Advice",
    "Detection",
    "FigureResult",
    "Format",
    "Statement",
    "Summary",
    "VerdictLine",
    "clock",
    "contamination_record",
    "count",
    "counted",
    "describe_difference",
    "difference_record",
    "difference_sarif",
    "draw",
    "duration",
    "errata_markdown",
    "examination_record",
    "finding_words",
    "fold",
    "fold_healthy",
    "fold_skipped",
    "healthy_words",
    "json_text",
    "largest_changes",
    "module_name",
    "number",
    "other_words",
    "page",
    "percent",
    "place",
    "plot",
    "plural",
    "points",
    "policy_name",
    "record",
    "render",
    "reproduction_markdown",
    "reproduction_page",
    "same_reason",
    "sarif",
    "save",
    "schema",
    "share",
    "size",
    "skipped_words",
    "strongest_families",
    "summarise",
    "sweep_record",
    "told_first",
    "tolerance_rows",
    "unit_columns",
    "unsettled",
    "write",
]


def __getattr__(name: str) -> Any:
    """Loads what is asked for the first time; the command line needs the table of formats without torch."""
    if name in _MODULE_OF:
        return getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
