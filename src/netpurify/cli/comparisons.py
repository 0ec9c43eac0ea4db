"""Tensors beside their base on the terminal: those with findings first, then the largest changes, then the unknown."""

from collections.abc import Sequence
from heapq import nlargest

from netpurify.cli.screen import Bar, show_line, show_table
from netpurify.cli.tables import show_altered, show_layers
from netpurify.network import TensorComparison
from netpurify.report import Detection, count, finding_words, number, other_words, plural, told_first

_FINDINGS = ("tensor", "finding", "entries", "of", "largest change")
_CHANGES = ("changed weight", "is", "base", "finding")
_EXPECTED = ("changed weight", "is", "base, or expected", "finding")
_OTHERS = ("other tensor", "verdict", "differ", "of", "what was found")
_MOST_OTHERS = 20
"""Tensors with findings that are listed one by one; what is beyond is counted, and ``--verbose`` lists all."""
_TENSORS = ("tensor", "verdict", "differ", "of", "why")


class TensorBar:
    """Follows ``netpurify.scan``; every tensor counts alike."""

    def __init__(self, *, quiet: bool) -> None:  # noqa: D107
        self._bar = None if quiet else Bar("scan")

    def __enter__(self) -> "TensorBar":
        if self._bar is not None:
            self._bar.__enter__()
        return self

    def __exit__(self, *problem: object) -> None:
        if self._bar is not None:
            self._bar.__exit__(*problem)

    def follow(self, name: str, done: int, total: int) -> None:
        """As ``scan`` calls it: before each tensor, and at the end."""
        if self._bar is not None:
            now = f", now {name}" if done < total else ""
            self._bar.to(done, total or 1, f"{done} of {total} tensors{now}")


def show_detection(result: Detection, most: int, *, verbose: bool) -> None:
    """Findings, changes and what is unknown; with ``verbose`` every tensor."""
    findings = result.findings
    rows = [
        (one.tensor.name, one.label, count(one.count), count(one.tensor.entries), number(one.largest))
        for one in findings
    ]
    _show(_FINDINGS, rows, numbers=(2, 3, 4))
    changes = ((change, one) for one in findings for change in one.rows(most))
    largest = nlargest(most, changes, key=lambda pair: pair[0].size)
    _show(
        _EXPECTED if result.scan.merge is not None or result.scan.low_rank else _CHANGES,
        [
            (f"{one.tensor.name}{list(change.index)}", f"{change.was:.6g}", f"{change.base:.6g}", one.kind.label)
            for change, one in largest
        ],
        numbers=(1, 2),
    )
    _show(("unknown", "why"), [(one.name, one.reason) for one in result.unknown])
    _show(("only in the base",), [(name,) for name in result.scan.only_base])
    if verbose:
        _show(_TENSORS, [_tensor(one) for one in result.scan.tensors], numbers=(2, 3))
    if result.fits is not None:
        show_line("")
        show_line("with clean inputs; what would be replaced is named, and nothing is written:")
        show_layers(result.fits)
        show_altered(result.fits, most)


def show_others(compared: Sequence[TensorComparison], *, mended: bool, verbose: bool = False) -> None:
    """Tensors that are not part of a layer: those of which there is something to say, the others counted.

    Args:
        compared: Each of them beside its initial value.
        mended: Whether altered entries were set back; if not, they are only named.
        verbose: Whether to list every tensor.
    """
    told, others = told_first(compared)
    listed = [*told, *others] if verbose else told[:_MOST_OTHERS]
    rows = [
        (one.name, one.verdict.label, count(one.differing), count(one.entries), finding_words(one, mended=mended))
        for one in listed
    ]
    _show(_OTHERS, rows, numbers=(2, 3))
    if len(told) > len(listed):
        show_line(f"{plural(len(told) - len(listed), 'other tensor')} more like these; --verbose lists all")
    if others and not verbose:
        if not rows:
            show_line("")
        for text in other_words(others):
            show_line(text)


def _tensor(one: TensorComparison) -> tuple[str, ...]:
    return one.name, one.verdict.label, count(one.differing), count(one.entries), one.reason


def _show(columns: tuple[str, ...], rows: list[tuple[str, ...]], numbers: tuple[int, ...] = ()) -> None:
    if rows:
        show_line("")
        show_table("", columns, rows, numbers=numbers)
