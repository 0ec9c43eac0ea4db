"""Figures with made-up numbers, shaped like the real ones."""

from netpurify.findings import (
    Evidence,
    Experiment,
    Figure,
    Finding,
    Line,
    Mode,
    PlotPanel,
    Rule,
    SettingRow,
    TableRow,
    Verdict,
)
from netpurify.report import FigureResult

EPS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4)
WIDTHS = (64, 128, 256, 512, 1024, 2048)
NAN = float("nan")
LABELS = ("purified", "output layer only", "least squares", "contaminated", "initial weights")
RULE = Rule("wider is better", "V-Z", "the threshold rises by .05", "it beats the initial weights", "as the paper says")
TABLE = Evidence("thresholds; one trial", ["width", "eps"], [["256", "0.12"], ["512", "0.41"]])
FINDINGS = [
    Finding(RULE, Verdict.HOLDS, Verdict.FAILS, "thresholds .12 to .41"),
    Finding(Rule("exact up to .3"), Verdict.LIMITS, None, "exact up to .25", why="the ratio fan-in/rank is 2.1"),
    Finding(Rule("accuracy is back"), Verdict.FAILS, None, ".31 at eps .35", why="the fit follows the contamination"),
    Finding(Rule("we add this", measure="ours alone"), Verdict.LIMITS, None, "as measured", [TABLE], ours=True),
    Finding(Rule("three layers too"), Verdict.UNSEEN, None, "not run"),
]


def line(label: str, mean: list[float], *, baseline: bool = False, x: tuple[float, ...] = EPS) -> Line:
    return Line(label, x, mean, [0.8 * value for value in mean], [1.2 * value for value in mean], baseline)


def panel(width: int) -> PlotPanel:
    exact = 2 + WIDTHS.index(width)
    lines = [
        line(LABELS[0], [0.0] * exact + [0.1] * (8 - exact)),
        line(LABELS[1], [2e-9] * exact + [0.02] * (8 - exact)),
        line(LABELS[2], [0.3 * eps for eps in EPS], baseline=True),
        line(LABELS[3], [3.0 * eps for eps in EPS], baseline=True),
        line(LABELS[4], [0.8, 0.8, NAN, 0.8, 0.8, 0.8, 0.8, 0.8], baseline=True),
    ]
    return PlotPanel(f"width {width}", "share of altered weights", "relative error", lines, log=True)


def grid(_mode: Mode) -> list[TableRow]:
    return [{"width": width, "regime": "joint"} for width in (256, 512)]


def table(*, failed: int = 0, trials: int = 5, reason: str = "DivergenceError: take a smaller gamma") -> list[TableRow]:
    """Two cells; the first ``failed`` trials of each have a reason instead of rows."""
    rows: list[TableRow] = []
    for cell in grid("full"):
        for trial in range(trials):
            head: TableRow = {"experiment": "made", **cell, "trial": trial, "seed": trial, "seconds": 30.0}
            if trial < failed:
                rows.append({**head, "failure": reason})
                continue
            rows.extend({**head, "eps": eps, "error": 0.0, "failure": None} for eps in EPS)
    return rows


def result(
    number: int = 2,
    title: str = "Error against the share of altered weights",
    *,
    panels: int = 3,
    findings: list[Finding] | None = None,
    rows: list[TableRow] | None = None,
    remarks: tuple[str, ...] = ("The paper shows means only.",),
) -> FigureResult:
    experiment = Experiment("made", "made", grid, lambda _settings, _seed: [], lambda _settings: 1.0, {"full": 5})
    drawn = [panel(width) for width in WIDTHS[:panels]]
    judged = FINDINGS if findings is None else findings
    figure = Figure(number, title, [SettingRow("n", "5", "5")], experiment, lambda _: drawn, lambda _: judged, remarks)
    return FigureResult(figure, table() if rows is None else rows, "full")
