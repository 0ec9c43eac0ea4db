"""What every figure that the paper does not have must keep, on the table of a small run."""

from netpurify.findings import CLAIM_VERDICTS
from netpurify.report.reproduction import plots


def table(module, **small):
    """The rows of one trial of every cell of the quick grid, as the runner would write them."""
    rows = []
    for cell in module.EXPERIMENT.grid("quick"):
        settings = cell | small
        head = {"experiment": module.EXPERIMENT.name, **settings, "trial": 0, "seed": 0}
        rows += [{**head, **row, "seconds": 1.0, "failure": None} for row in module.EXPERIMENT.trial(settings, 0)]
    return rows


def check_figure(module, rows):
    """Lines without gaps, a drawing, findings of ours with a rule in numbers, settings apart from the paper's."""
    figure = module.FIGURE
    panels = figure.panels(rows)
    for panel in panels:
        assert panel.lines, panel.title
        for drawn in panel.lines:
            assert len(drawn.x) == len(drawn.median) == len(drawn.low) == len(drawn.high) > 1, (
                panel.title,
                drawn.label,
            )
            assert all(value == value for value in drawn.median), (panel.title, drawn.label)
    assert plots.draw(panels).startswith("<svg")
    for finding in figure.findings(rows):
        assert finding.by_measure in CLAIM_VERDICTS
        assert finding.against_nothing is None
        assert finding.ours
        assert any(digit.isdigit() for digit in finding.rule.measure) or "As for" in finding.rule.measure
        assert finding.rule.reason
        assert "nan" not in finding.measured.split()
        for evidence in finding.evidence:
            assert all(len(row) == len(evidence.columns) for row in evidence.rows)
            assert evidence.rows
    assert figure.ours
    assert figure.number >= 14
    assert {row.paper for row in figure.settings} == {"not in the paper"}
