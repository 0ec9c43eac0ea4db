"""The summary of a result on the terminal, in the words of the page and the record."""

from collections.abc import Sequence

from netpurify.cli.screen import show_line, show_table, show_verdict
from netpurify.report import Summary, count


def show_summary(summary: Summary, *, quiet: bool, more: Sequence[str] = ()) -> None:
    """Advice, statements and the verdict; the verdict alone if ``quiet``. ``more`` are further statements."""
    if not quiet:
        _show_advice(summary)
        show_line("")
        for text in (*summary.texts, *more):
            show_line(text)
        show_line("")
    for line in summary.verdict:
        show_verdict(line.symbol, line.text, line.outlook)


def _show_advice(summary: Summary) -> None:
    """What the status of fits says about units that were not recovered, and what to do."""
    if summary.advice:
        columns = ("units not recovered, by L1 fit", "units", "layers", "what it means", "what to do")
        rows = [
            (advice.status, count(advice.units), advice.where, advice.meaning, advice.remedy)
            for advice in summary.advice
        ]
        show_line("")
        show_table("", columns, rows, numbers=(1,))
