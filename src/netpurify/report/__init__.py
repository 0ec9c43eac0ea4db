"""Reports: plots and self-contained pages, made from tables of experiments and from purifications.

    results = [report.Result(figure, experiments.read(path), mode="full") for figure, path in ...]
    report.write("reproduction.html", report.page(results, about={"version": "0.1"}))
    report.draw(figure.panels(rows))                    one plot as SVG
    report.write("report.html", report.purification.page(result))        a purification as one page
    report.write("report.html", report.defence.page(result))             a defence as one page
    report.record(result)                               a purification or a defence as JSON, for programs
    report.sarif(result, file="model.safetensors")       the same as SARIF, for code scanning

Drawing needs matplotlib: ``pip install 'netpurify[report]'``.
"""

from netpurify.report import defence, purification
from netpurify.report.plots import draw
from netpurify.report.record import record, schema
from netpurify.report.reproduction import markdown, page, picture, write
from netpurify.report.result import Result
from netpurify.report.sarif import sarif

__all__ = [
    "Result",
    "defence",
    "draw",
    "markdown",
    "page",
    "picture",
    "purification",
    "record",
    "sarif",
    "schema",
    "write",
]
