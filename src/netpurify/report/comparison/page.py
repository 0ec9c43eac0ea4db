"""A scan as one page that loads nothing: findings first, then every tensor, then what was asked."""

from netpurify.network import Scan, TensorComparison
from netpurify.report.comparison.detection import Detection
from netpurify.report.comparison.summary import summarise_detection
from netpurify.report.kit.context import Context
from netpurify.report.kit.numbers import count, duration, exact, number, plural
from netpurify.report.kit.pages import render_result
from netpurify.report.kit.tables import Cell, Table, counted, if_known
from netpurify.report.kit.tensor_findings import TensorFinding

_TITLE = "Report of a scan"
_POLICY = "scan: every tensor beside its base; nothing is repaired, and nothing was written but this report"
_FINDINGS = ("Tensor", "Finding", "Entries", "Of", "Largest change")
_CHANGES = ("Weight", "Index", "Is", "Base, or expected", "Finding")
_TENSORS = ("Tensor", "Verdict", "Shape", "Dtype", "Differing", "Findings", "Usual change")
_MERGED = "compared with what base and adapter make, entry by entry"
_MOST = 200
"""Changed entries on the page; all of them are in the record."""
_EACH = 20
"""Changed entries on the page for each finding."""


def detection_page(result: Detection, context: Context) -> str:
    """One HTML file for desktop, phone and paper, light and dark, that needs no network."""
    findings = result.findings
    changes = [row for finding in findings for row in _changes(finding)]
    unknown = [(one.name, one.reason) for one in result.unknown]
    unknown += [(name, "only the base has it") for name in result.scan.only_base]
    content = {
        "title": context.title or _TITLE,
        "summary": summarise_detection(result),
        "findings": findings_table(result),
        "changes": Table.of(_CHANGES, changes[:_MOST], label="Largest changes", kind="altered sortable"),
        "shown": f"{plural(min(len(changes), _MOST), 'entry').replace('entrys', 'entries')} of "
        f"{count(sum(finding.count for finding in findings))}, the largest changes of each finding first.",
        "unknown": Table.of(("Tensor", "Why"), unknown, label="Unknown", kind="skipped"),
        "tensors": Table.of(
            _TENSORS,
            [_tensor(one, result.scan, findings) for one in result.scan.tensors],
            label="Tensors",
            kind="layers sortable",
        ),
        "asked": [
            *context.asked(_POLICY),
            ("Frozen", ", ".join(result.scan.frozen) or "told from the tensors themselves"),
            ("Took", duration(result.scan.seconds)),
        ],
    }
    return render_result("scan.html", content)


def findings_table(result: Detection) -> Table:
    """What was found, the tensors with the largest changes first."""
    return Table.of(_FINDINGS, [_finding(it) for it in result.findings], label="Findings", kind="layers sortable")


def _finding(finding: TensorFinding) -> list[str | Cell]:
    tensor = finding.tensor
    return [
        tensor.name,
        Cell(finding.label, style="limits"),
        Cell(count(finding.count), finding.count),
        Cell(count(tensor.entries), tensor.entries),
        Cell(number(finding.largest), finding.largest),
    ]


def _changes(finding: TensorFinding) -> list[list[str | Cell]]:
    return [
        [
            finding.tensor.name,
            ", ".join(map(str, change.index)),
            Cell(exact(change.was), change.was),
            Cell(exact(change.base), change.base),
            finding.kind.label,
        ]
        for change in finding.rows(_EACH)
    ]


def _tensor(one: TensorComparison, scan: Scan, findings: list[TensorFinding]) -> list[str | Cell]:
    return [
        Cell(one.name, notes=[_MERGED if scan.merged(one.name) else one.reason]),
        one.verdict.label,
        " by ".join(map(str, one.shape)) or "one number",
        one.dtype if one.base_dtype in (None, one.dtype) else f"{one.dtype}, base {one.base_dtype}",
        Cell(count(one.differing), one.differing),
        counted(sum(it.count for it in findings if it.tensor is one)),
        if_known(number(one.usual), one.usual, known=one.usual == one.usual),
    ]
