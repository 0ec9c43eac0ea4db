"""Tensors beside their base: what is wrong with their entries, one by one; and those of which nothing was found."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from netpurify.network import Entries, TensorComparison, TensorVerdict
from netpurify.report.kit.numbers import count, exact, number, plural

_VERDICTS = (TensorVerdict.ALTERED, TensorVerdict.UNKNOWN, TensorVerdict.TRAINED, TensorVerdict.SAME)
"""What is said of tensors, the gravest first."""
_SAID = {
    TensorVerdict.SAME: ("has every bit of {base}", "have every bit of {base}"),
    TensorVerdict.ALTERED: ("was never trained, and was altered", "were never trained, and were altered"),
    TensorVerdict.TRAINED: (
        "was trained: only what no training could have done would be seen",
        "were trained: only what no training could have done would be seen",
    ),
    TensorVerdict.UNKNOWN: ("has nothing to be compared with", "have nothing to be compared with"),
}


class Kind(Enum):
    """What is wrong with some entries of a tensor.

    The values are the word in tables, what a sentence says after their number, and what the second value of an entry
    is.
    """

    ALTERED = ("altered", "differ from the base, and the tensor was never trained", "base")
    IMPOSSIBLE = ("impossible", "are NaN, infinite or absurdly large, which no training leaves behind", "base")
    OUTLYING = ("outlying", "changed far more than all others of this tensor", "base")
    NOT_MERGED = ("not base and adapter", "are not what base and adapter make", "expected")
    OFF_RANK = ("off the low rank", "do not agree with the low rank of the tensor's change", "expected")

    @property
    def label(self) -> str:
        """The word in tables."""
        return self.value[0]

    @property
    def meaning(self) -> str:
        """What these entries do."""
        return self.value[1]

    @property
    def reference(self) -> str:
        """What the second value of such an entry is: its base, or what was expected."""
        return self.value[2]


@dataclass(frozen=True, slots=True)
class TensorFinding:
    """Entries of one tensor with which the same is wrong.

    Attributes:
        tensor: The tensor.
        kind: What is wrong.
        entries: The entries; of many, those with the largest changes. Their ``base`` is what was expected, if the kind
            says so.
        count: How many there are.
        note: More about it, for sentences; empty if there is no more.
    """

    tensor: TensorComparison
    kind: Kind
    entries: Entries
    count: int
    note: str = ""

    @property
    def largest(self) -> float:
        """The largest change; infinite if a value is not finite."""
        return float(_sizes(self.entries).max(initial=0.0))

    @property
    def label(self) -> str:
        """The word in tables, with the note."""
        return f"{self.kind.label} ({self.note})" if self.note else self.kind.label

    def rows(self, most: int) -> "Iterator[Change]":
        """The entries with the largest changes, one by one."""
        for row in np.argsort(-_sizes(self.entries), kind="stable")[:most].tolist():
            axes = np.unravel_index(self.entries.index[row], self.tensor.shape) if self.tensor.shape else ()
            index = tuple(int(axis) for axis in axes)
            yield Change(index, float(self.entries.was[row]), float(self.entries.base[row]), self.kind.reference)


@dataclass(frozen=True, slots=True)
class Change:
    """One entry.

    Attributes:
        index: Its position, a number for each axis.
        was: Its value.
        base: Its value in the base, or what was expected.
        reference: Which of both.
    """

    index: tuple[int, ...]
    was: float
    base: float
    reference: str = "base"

    @property
    def size(self) -> float:
        """Of the change; infinite if a value is not finite."""
        return abs(self.was - self.base) if np.isfinite(self.was) and np.isfinite(self.base) else np.inf

    @property
    def where(self) -> str:
        """Its position in words; empty for a tensor of one number."""
        return f" at index {', '.join(map(str, self.index))}" if self.index else ""

    @property
    def text(self) -> str:
        """The change in words."""
        values = f"is {exact(self.was)}, {self.reference} {exact(self.base)}"
        return f"largest change {number(self.size)}{self.where} ({values})"


def findings_in(one: TensorComparison) -> list[TensorFinding]:
    """What the comparison with its base shows of a tensor, by kind."""
    kinds = [
        (Kind.ALTERED, one.altered, one.altered_count),
        (Kind.IMPOSSIBLE, one.impossible, len(one.impossible)),
        (Kind.OUTLYING, one.outliers, len(one.outliers)),
    ]
    return [TensorFinding(one, kind, entries, total) for kind, entries, total in kinds if total]


def told_of(one: TensorComparison) -> bool:
    """Whether there is something to say of a tensor: a finding, or that nothing is known of it."""
    return bool(one.findings) or one.verdict == TensorVerdict.UNKNOWN


def told_first(compared: Iterable[TensorComparison]) -> tuple[list[TensorComparison], list[TensorComparison]]:
    """Tensors of which there is something to say, the gravest verdicts first, and all others."""
    ordered = sorted(compared, key=lambda one: _VERDICTS.index(one.verdict))
    return [one for one in ordered if told_of(one)], [one for one in ordered if not told_of(one)]


def verdict_words(
    tensors: Sequence[TensorComparison], noun: str = "tensor", base: str = "the base"
) -> list[tuple[TensorVerdict, str]]:
    """How many tensors have which verdict, a sentence each."""
    numbers = {verdict: sum(one.verdict == verdict for one in tensors) for verdict in _VERDICTS}
    return [
        (verdict, f"{plural(number, noun)} {_SAID[verdict][number > 1].format(base=base)}.")
        for verdict, number in numbers.items()
        if number
    ]


def other_words(tensors: Sequence[TensorComparison]) -> list[str]:
    """How many tensors that are not part of a layer have which verdict, a sentence each."""
    return [text for _, text in verdict_words(tensors, "other tensor", "the initial weights")]


def finding_words(one: TensorComparison, *, mended: bool) -> str:
    """What was found in a tensor that is not part of a layer, and what became of it if ``mended``; else the reason."""
    found = []
    for finding in findings_in(one):
        change = next(finding.rows(1))
        done = _BECAME[finding.kind] if mended else finding.kind.label
        now = "now" if mended and finding.kind != Kind.OUTLYING else "initially"
        values = f"{'was' if now == 'now' else 'is'} {exact(change.was)}, {now} {exact(change.base)}"
        found.append(f"{count(finding.count)} {done}; largest change {number(change.size)}{change.where} ({values})")
    return "; ".join(found) or one.reason


_BECAME = {
    Kind.ALTERED: "set back to the initial bits",
    Kind.IMPOSSIBLE: "impossible, replaced by the initial value",
    Kind.OUTLYING: "outlying, left unchanged",
}


def _sizes(entries: Entries) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore", over="ignore"):
        sizes = np.abs(entries.was - entries.base)
    return np.where(np.isfinite(sizes), sizes, np.inf)
