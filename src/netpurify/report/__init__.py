"""Reports of purifications, defences and the paper's figures: pages, JSON records, SARIF logs and plots.

    report.save("report.html", report.page(result))     a purification or a defence as one page
    report.record(result)                               the same as JSON, for programs
    report.sarif(result, file="model.safetensors")      a purification as SARIF, for code scanning

    results = [report.FigureResult(figure, experiments.read(path), mode="full") for figure, path in ...]
    report.save("reproduction.html", report.reproduction_page(results, about={"version": "0.1"}))
    report.draw(figure.panels(rows))                    one plot as SVG

Drawing needs matplotlib: ``pip install 'netpurify[report]'``.
"""

from collections.abc import Mapping

from netpurify.errors import InputError
from netpurify.network import Defence, Plan, Purification
from netpurify.report.defence.page import defence_page
from netpurify.report.kit.files import save
from netpurify.report.purification.page import purification_page
from netpurify.report.purification.record import record, schema
from netpurify.report.purification.sarif import sarif
from netpurify.report.reproduction.page import plot, reproduction_markdown, reproduction_page
from netpurify.report.reproduction.plots import draw
from netpurify.report.reproduction.result import FigureResult

__all__ = [
    "FigureResult",
    "draw",
    "page",
    "plot",
    "record",
    "reproduction_markdown",
    "reproduction_page",
    "sarif",
    "save",
    "schema",
]


def page(
    result: Purification | Defence,
    *,
    title: str | None = None,
    command: str | None = None,
    files: Mapping[str, str] | None = None,
    plan: Plan | None = None,
) -> str:
    """A purification or a defence as one HTML page that loads nothing."""
    if isinstance(result, Purification):
        return purification_page(result, title=title, command=command, files=files, plan=plan)
    if plan is not None:
        raise InputError("a plan says what can be recovered, and a defence recovers nothing; leave plan out")
    return defence_page(result, title=title, command=command, files=files)
