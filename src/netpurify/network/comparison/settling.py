"""Tensors of which most entries have their initial bits: the others of the network tell whether they were trained.

Such a tensor is pending first: its differences are listed. Then ``settle`` calls them altered, or leaves them to
training.
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from scipy.special import pdtr

from netpurify.network.comparison.records import Entries, TensorComparison, TensorVerdict
from netpurify.network.policies.recovery import evidence

ONE_BY_ONE = "never trained: most entries have their initial bits, and the others differ one by one"
PENDING = "never trained: most entries have their initial bits, and so have the tensors beside it"
BESIDE = "never trained: most entries have their initial bits, as have all tensors of the same module"
SMALL = "never trained: a few entries differ by no more than rounding, and nearly all other tensors have their bits"
IN_PART = (
    "most entries have their initial bits, and the others differ in a pattern that training may have made, or in too "
    "few rows to tell"
)
ROUNDED = (
    "most entries have their initial bits, and the others differ as if they were trained in steps so short that most "
    "were rounded away"
)
_RUNNING = ("running_mean", "running_var")
"""Buffers of norms that are updated without gradients, also where the weights are frozen."""
_NEARLY_ALL = 0.9
"""Differences as small as rounding are alterations only if more than this share of the other tensors are frozen. Then
a single tensor whose training was rounded away does not speak for the others either."""
_TOO_LARGE = 0.5
"""If steps were rounded away somewhere in the network, a tensor is still altered if its differing entries are no
smaller than the others: if chance finds entries as small as these with a probability above this."""


def settle(comparisons: Iterable[TensorComparison]) -> tuple[TensorComparison, ...]:
    """Decide on the tensors that are pending.

    First, training in short steps may leave most entries as they were: a step is rounded away unless the entry is
    small. Where the network shows this, differences of small entries are left to training. Second, in a tensor with a
    single row, such as a bias or the weight of a norm, scattered differences cannot be told from structured ones. There
    the other tensors of the same module tell whether it was trained; without any, the majority of all tensors does, but
    only if the tensor is a vector in which few entries differ.
    Third, differences as small as rounding are altered only if nearly all tensors are frozen as well.
    """
    found = _leave_rounded(list(comparisons))
    found = [_altered(one) if _is_pending(one) and one.reason == ONE_BY_ONE else one for one in found]
    known = [one for one in found if one.verdict != TensorVerdict.UNKNOWN and not _is_pending(one)]
    frozen_share = sum(map(_is_frozen, known)) / max(len(known), 1)
    families: dict[tuple[str, bool], list[bool]] = {}
    for one in known:
        families.setdefault(_family(one), []).append(_is_frozen(one))
    for position, one in enumerate(found):
        if _is_pending(one):
            beside = families.get(_family(one))
            frozen_too = frozen_share > 0.5 and one.reason != BESIDE if beside is None else all(beside)
            if one.reason == SMALL:
                frozen_too &= frozen_share > _NEARLY_ALL
            found[position] = _altered(one) if frozen_too else _left(one, IN_PART)
    return tuple(found)


def _leave_rounded(found: list[TensorComparison]) -> list[TensorComparison]:
    """Leave small differences to training if it was rounded away somewhere in the network."""
    pending = [one.odds for one in found if _is_pending(one)]
    known = [one for one in found if one.verdict != TensorVerdict.UNKNOWN and not _is_pending(one)]
    rounded = any(one.reason == ROUNDED for one in known)
    # Where nearly all tensors have every bit, one that was rounded away, such as a head, says nothing of the others.
    rounded &= sum(map(_is_frozen, known)) <= _NEARLY_ALL * len(known)
    if not rounded and joint_odds(np.array(pending)) > evidence.UNLIKELY:
        return found
    return [_left(one, ROUNDED) if _is_pending(one) and _is_small(one) else one for one in found]


def _is_small(one: TensorComparison) -> bool:
    """Whether the entries that differ, or their differences, are as small as rounded training leaves them."""
    return one.odds <= _TOO_LARGE or one.reason == SMALL


def joint_odds(odds: np.ndarray) -> float:
    """The probability that independent odds are together as small as these, by Fisher's method."""
    with np.errstate(divide="ignore"):
        return float(pdtr(odds.size - 1, -np.log(odds).sum())) if odds.size else 1.0


def _is_pending(one: TensorComparison) -> bool:
    return one.verdict == TensorVerdict.TRAINED and len(one.altered) > 0


def _altered(one: TensorComparison) -> TensorComparison:
    return replace(one, verdict=TensorVerdict.ALTERED, impossible=Entries.none(), outliers=Entries.none(),
                   usual=float("nan"))  # fmt: skip


def _left(one: TensorComparison, reason: str) -> TensorComparison:
    return replace(one, altered=Entries.none(), altered_count=0, reason=reason)


def _is_frozen(one: TensorComparison) -> bool:
    return one.verdict in (TensorVerdict.SAME, TensorVerdict.ALTERED)


def _family(one: TensorComparison) -> tuple[str, bool]:
    """The module of a tensor, and whether the tensor is a running statistic."""
    module, _, own = one.name.rpartition(".")
    return module, own in _RUNNING
