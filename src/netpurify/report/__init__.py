"""Reports: plots and one self-contained page, made from the tables of experiments.

    results = [report.Result(figure, experiments.read(path), mode="full") for figure, path in ...]
    report.write("reproduction.html", report.page(results, about={"version": "0.1"}))
    report.draw(figure.panels(rows))                    one plot as SVG

Drawing needs matplotlib: ``pip install 'netpurify[report]'``.
"""

from netpurify.report.plots import draw
from netpurify.report.reproduction import markdown, page, picture, write
from netpurify.report.result import Result

__all__ = ["Result", "draw", "markdown", "page", "picture", "write"]
