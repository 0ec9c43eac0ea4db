"""What was detected in a network, and its findings one by one: the largest changes first."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from netpurify.network import Coverage, Entries, Purification, Scan, TensorComparison, TensorVerdict
from netpurify.report.kit.tensor_findings import Kind, TensorFinding, findings_in, verdict_words


@dataclass(frozen=True, slots=True)
class Detection:
    """A scan, with what clean inputs show of the same network if there were any.

    Attributes:
        scan: Every tensor beside its base.
        fits: What ``purify`` found with clean inputs; nothing of its repair is used.
        strict: Whether weights that were only compared count as a finding.
    """

    scan: Scan
    fits: Purification | None = None
    strict: bool = False

    @property
    def coverage(self) -> Coverage:
        """How many weights are known, compared only, and unknown."""
        # Where an adapter is known, every entry has one value that it must have, which clean inputs cannot better.
        return self.scan.coverage if self.fits is None or self.scan.merge is not None else self.fits.coverage

    @property
    def unknown(self) -> tuple[TensorComparison, ...]:
        """Tensors that have nothing to be compared with."""
        return tuple(one for one in self.scan.tensors if one.verdict == TensorVerdict.UNKNOWN)

    @property
    def verdicts(self) -> list[tuple[TensorVerdict, str]]:
        """How many tensors have which verdict, a sentence each; without those that an adapter says more about."""
        return verdict_words([one for one in self.scan.tensors if not self.scan.merged(one.name)])

    @property
    def findings(self) -> list[TensorFinding]:
        """What was found without clean inputs, the tensors with the largest changes first."""
        by_name = {one.name: one for one in self.scan.tensors}
        found = [
            *(it for one in self.scan.found for it in findings_in(one) if self.scan.merge is None),
            *_not_merged(self.scan, by_name),
            *_off_rank(self.scan, by_name),
        ]
        return sorted(found, key=lambda finding: -finding.largest)

    @property
    def compared_only(self) -> tuple[TensorComparison, ...]:
        """Trained tensors, in which a moderate alteration could not be seen."""
        trained = (one for one in self.scan.tensors if one.verdict == TensorVerdict.TRAINED)
        return tuple(one for one in trained if not self.scan.merged(one.name))


def _not_merged(scan: Scan, by_name: dict[str, TensorComparison]) -> Iterator[TensorFinding]:
    """Entries that are not what base and adapter make.

    Of a tensor that was compared with both, the comparison with the base alone says nothing more, except of entries
    that no weights should have, whatever the adapter is.
    """
    if scan.merge is None:
        return
    differences = {one.tensor: one for one in scan.merge.differences}
    for name, one in differences.items():
        entries = Entries(one.index, one.was, one.expected)
        yield TensorFinding(by_name[name], Kind.NOT_MERGED, entries, one.count)
    for one in scan.found:
        told = differences[one.name].index if one.name in differences else np.zeros(0, np.int64)
        for it in findings_in(one):
            new = ~np.isin(it.entries.index, told)
            if not scan.merged(one.name):
                yield it
            elif it.kind == Kind.IMPOSSIBLE and new.any():
                left = Entries(it.entries.index[new], it.entries.was[new], it.entries.base[new])
                yield TensorFinding(one, it.kind, left, len(left))


def _off_rank(scan: Scan, by_name: dict[str, TensorComparison]) -> Iterator[TensorFinding]:
    """Entries that do not agree with a change of low rank."""
    for name, one in scan.low_rank.items():
        if one.index.size:
            entries = Entries(one.index, one.was, one.expected)
            yield TensorFinding(by_name[name], Kind.OFF_RANK, entries, one.index.size, f"rank {one.rank}")
