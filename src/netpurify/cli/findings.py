"""The summary of a result on the terminal, in the words of the page and the record."""

from netpurify.cli.screen import show_line, show_table
from netpurify.report import Summary, count


def show_summary(summary: Summary, *, quiet: bool) -> None:
    """Advice, statements and the verdict; the verdict alone if ``quiet``."""
    if not quiet:
        _show_advice(summary)
        show_line("")
        for text in summary.texts:
            show_line(text)
    show_line(summary.headline)


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
