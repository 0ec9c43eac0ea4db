"""Findings: what was measured and what it says, as plain data that experiments make and reports show.

    rows = findings.read_table("results/quick/synthetic-p-k.csv")
    findings.summarise(findings.select(rows, method="l1"), ["p", "eps"], "W_exact")

An ``Experiment`` says what is measured, and a ``TableRow`` is one measurement. ``PlotPanel`` and ``Line`` describe a
plot without drawing it. A ``Rule`` says how a claim is judged, a ``Finding`` puts it beside a measurement with a
``Verdict`` and the ``Evidence`` for it, and a ``Figure`` reads panels and findings from a table and lists its
settings, each a ``SettingRow``. Nothing here runs an experiment, draws a plot or knows a network.
"""

from netpurify.findings.experiment import MODES, Experiment, Mode
from netpurify.findings.figure import Figure, SettingRow
from netpurify.findings.finding import CLAIM_VERDICTS, Evidence, Finding, Rule, Verdict
from netpurify.findings.panel import Line, PlotPanel
from netpurify.findings.table import (
    Scalar,
    TableRow,
    TrialSummary,
    group,
    read_table,
    select,
    summarise,
    write_table,
)

__all__ = [
    "CLAIM_VERDICTS",
    "MODES",
    "Evidence",
    "Experiment",
    "Figure",
    "Finding",
    "Line",
    "Mode",
    "PlotPanel",
    "Rule",
    "Scalar",
    "SettingRow",
    "TableRow",
    "TrialSummary",
    "Verdict",
    "group",
    "read_table",
    "select",
    "summarise",
    "write_table",
]
