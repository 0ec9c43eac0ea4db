"""Compare tensors with their base, one by one, then settle those that cannot be told without their neighbours."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import numpy as np
import torch
from torch import Tensor

from netpurify.checkpoint import raw_bytes, unusual
from netpurify.network.comparison import frozen, outliers
from netpurify.network.comparison.records import Entries, TensorComparison, TensorVerdict
from netpurify.network.policies.recovery import evidence

_DECLARED = "said to be frozen: any difference from the base is an alteration"
_OVERWRITTEN = "never trained: entries were overwritten by one value, and the others have their initial bits"
_ONE_BY_ONE = "never trained: most entries have their initial bits, and the others differ one by one"
_BESIDE = "never trained: most entries have their initial bits, and so have the tensors beside it"
_IN_PART = (
    "most entries have their initial bits, and the others differ in a pattern that training may have made, or in too "
    "few rows to tell"
)
_ROUNDING = "a few entries differ by no more than rounding"
_NEARLY_ALL = 0.9
"""Differences as small as rounding are alterations only if more than this share of the other tensors are frozen."""
_RUNNING = ("running_mean", "running_var")
"""Buffers of norms that are updated without gradients, also where the weights are frozen."""
Read = Callable[[str], Tensor]
"""Gives a tensor by its name."""


@dataclass(frozen=True, slots=True)
class Options:
    """How tensors are compared.

    Attributes:
        frozen: Patterns of names such as ``"backbone.*"``: tensors that were never trained, where any difference is an
            alteration. Of others it is told from the tensors themselves.
        limit: How many altered entries are kept for each tensor, the largest changes first; ``None`` for all.
    """

    frozen: tuple[str, ...] = ()
    limit: int | None = None

    def declared(self, name: str) -> bool:
        """Whether a tensor was said to be frozen."""
        return any(fnmatchcase(name, pattern) for pattern in self.frozen)


def compare_tensors(
    weights: Mapping[str, Tensor], base: Mapping[str, Tensor], options: Options | None = None
) -> tuple[TensorComparison, ...]:
    """Every tensor of ``weights`` beside the one of the same name in ``base``."""
    options = options or Options()
    pairs = (compare_tensor(name, value, base.get(name), options) for name, value in weights.items())
    return settle(pairs, options)


def compare_tensor(name: str, value: Tensor, base: Tensor | None, options: Options) -> TensorComparison:
    """One tensor beside its base; see ``settle`` for those that cannot be told without their neighbours."""
    problem = _incomparable(value, base)
    if base is None or problem:
        return _comparison(name, value, base, TensorVerdict.UNKNOWN, reason=problem)
    value, base = value.detach().cpu(), base.detach().cpu()
    rounded = base.to(value.dtype)
    differs = _differs(value, rounded)
    count = int(differs.sum())
    if not count:
        return _comparison(name, value, base, TensorVerdict.SAME, reason=TensorVerdict.SAME.meaning)
    one = _comparison(name, value, base, TensorVerdict.TRAINED, differing=count, reason=TensorVerdict.TRAINED.meaning)
    if value.is_complex():
        return one
    if options.declared(name):
        return _altered(one, _entries(value, rounded, differs), _DECLARED, options)
    if count <= frozen.MOST_DIFFER * value.numel():
        return _mostly_same(one, value, rounded, differs, options)
    return _trained(one, value, base)


def settle(comparisons: Iterable[TensorComparison], options: Options) -> tuple[TensorComparison, ...]:
    """Call narrow tensors altered, such as biases and the weights of norms, if their neighbours were never trained.

    In a tensor with a single row, scattered differences cannot be told from structured ones. There the other tensors of
    the same module tell whether it was trained; without any, the majority of all tensors does. Differences as small as
    rounding may come from training with very short steps; they are altered only if nearly all tensors are frozen.
    """
    found = list(comparisons)
    known = [one for one in found if one.verdict != TensorVerdict.UNKNOWN and not _is_open(one)]
    frozen_share = sum(map(_is_frozen, known)) / max(len(known), 1)
    families: dict[tuple[str, bool], list[bool]] = {}
    for one in known:
        families.setdefault(_family(one), []).append(_is_frozen(one))
    for position, one in enumerate(found):
        if _is_open(one):
            beside = families.get(_family(one))
            frozen_too = frozen_share > 0.5 if beside is None else all(beside)
            if one.reason == _ROUNDING:
                frozen_too &= frozen_share > _NEARLY_ALL
            found[position] = (
                _altered(one, one.altered, _BESIDE, options)
                if frozen_too
                else replace(one, altered=Entries.none(), reason=_IN_PART)
            )
    return tuple(found)


def _is_open(one: TensorComparison) -> bool:
    """Whether the tensor's neighbours are to tell if it was trained: its entries are listed, but not counted."""
    return one.verdict == TensorVerdict.TRAINED and len(one.altered) > 0


def _is_frozen(one: TensorComparison) -> bool:
    return one.verdict in (TensorVerdict.SAME, TensorVerdict.ALTERED)


def _family(one: TensorComparison) -> tuple[str, bool]:
    """The module of a tensor, and whether the tensor is a running statistic."""
    module, _, own = one.name.rpartition(".")
    return module, own in _RUNNING


def _incomparable(value: Tensor, base: Tensor | None) -> str:
    """Why a tensor cannot be compared with its base; empty if it can."""
    if base is None:
        return "it has no base of this name"
    kind = unusual(value) or unusual(base)
    if kind:
        return f"a {kind} tensor cannot be compared"
    if value.shape != base.shape:
        return f"its shape is {list(value.shape)}, that of the base {list(base.shape)}"
    if value.dtype != base.dtype and not (value.is_floating_point() and base.is_floating_point()):
        return f"its dtype is {_word(value)}, that of the base {_word(base)}"
    return ""


def _differs(value: Tensor, base: Tensor) -> Tensor:
    """Entries with other bits, of the shape of the tensor."""
    size = value.element_size()
    pairs = (torch.from_numpy(raw_bytes(one)).view(value.numel(), size) for one in (value, base))
    if size in _WHOLE:
        first, second = (one.view(_WHOLE[size]).squeeze(1) for one in pairs)
        return (first != second).reshape(value.shape)
    first, second = pairs
    return (first != second).any(dim=1).reshape(value.shape)


_WHOLE = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def _mostly_same(
    one: TensorComparison, value: Tensor, base: Tensor, differs: Tensor, options: Options
) -> TensorComparison:
    """A tensor of which most entries have their initial bits."""
    entries = _entries(value, base, differs)
    steps = _steps(value, np.abs(entries.base))
    matrix = differs.reshape(frozen.matrix_shape(one.shape)).numpy()
    if frozen.by_steps(entries.was, entries.base, steps) or _rounded_away(value, base, differs, entries):
        return replace(_trained(one, value, base), reason=_IN_PART)
    if frozen.by_rounding(entries.was, entries.base, steps):
        return replace(one, altered=entries, reason=_ROUNDING)  # open; see ``settle``
    if frozen.same_value(entries.was, entries.base):
        return _altered(one, entries, _OVERWRITTEN, options)
    if not frozen.narrow(matrix.shape) and not evidence.scattered(matrix):
        return replace(_trained(one, value, base), reason=_IN_PART)
    # An entry that was zero and still is may have been pruned or masked: it does not show that nothing was trained.
    unchanged = matrix.size - len(entries) - int(((base == 0) & ~differs).sum())
    if frozen.narrow(matrix.shape) or len(entries) >= unchanged:
        return replace(one, altered=entries)  # open: the tensors beside this one tell; see ``settle``
    return _altered(one, entries, _ONE_BY_ONE, options)


def _rounded_away(value: Tensor, base: Tensor, differs: Tensor, entries: Entries) -> bool:
    """Whether the entries that have their initial bits are those whose rounding would hide changes of the usual size.

    In half precision, training changes the small weights and rounding hides what it does to the large ones.
    """
    if not value.is_floating_point():
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        usual = float(np.median(np.abs(entries.was - entries.base)))
    if not np.isfinite(usual):
        return False
    # A change shows if it is at least half a step; four times that, because changes are of different sizes.
    shows = base.float().abs() * torch.finfo(value.dtype).eps <= usual / 2.0
    visible = int(shows.sum())
    return 2 * int((shows & differs).sum()) > visible


def _altered(one: TensorComparison, entries: Entries, reason: str, options: Options) -> TensorComparison:
    kept = entries if options.limit is None else entries.largest(options.limit)
    return replace(one, verdict=TensorVerdict.ALTERED, altered=kept, altered_count=len(entries), reason=reason)


def _trained(one: TensorComparison, value: Tensor, base: Tensor) -> TensorComparison:
    """A tensor that was trained: what no training could have done in it."""
    if not value.is_floating_point():
        return one
    wide = torch.float64 if torch.float64 in (value.dtype, base.dtype) else torch.float32
    eps = max(torch.finfo(tensor.dtype).eps for tensor in (value, base))
    shape = frozen.matrix_shape(one.shape)
    wide_value, wide_base = (tensor.to(wide).reshape(shape) for tensor in (value, base))
    bad = outliers.impossible(wide_value, wide_base)
    index, usual = outliers.outliers(wide_value, wide_base, eps, bad)
    far = torch.zeros(value.numel(), dtype=torch.bool)
    far[torch.from_numpy(index)] = True
    rounded = base.to(value.dtype)
    return replace(
        one,
        impossible=_entries(value, rounded, bad.reshape(value.shape)),
        outliers=_entries(value, rounded, far.reshape(value.shape)),
        usual=usual,
    )


def _entries(value: Tensor, base: Tensor, chosen: Tensor) -> Entries:
    index = torch.nonzero(chosen.reshape(-1)).squeeze(1)
    was, initial = (tensor.reshape(-1)[index].double().numpy() for tensor in (value, base))
    return Entries(index.numpy(), was, initial)


def _steps(value: Tensor, sizes: np.ndarray) -> np.ndarray:
    """Steps of the grid of a tensor's dtype at numbers of these sizes."""
    if not value.is_floating_point():
        return np.zeros(sizes.shape)
    kind = torch.finfo(value.dtype)
    with np.errstate(invalid="ignore"):
        exponents = np.floor(np.log2(np.maximum(sizes, kind.tiny)))
    return kind.eps * np.exp2(exponents)


def _comparison(
    name: str, value: Tensor, base: Tensor | None, verdict: TensorVerdict, *, differing: int = 0, reason: str = ""
) -> TensorComparison:
    return TensorComparison(
        name=name,
        shape=tuple(value.shape),
        dtype=_word(value),
        base_dtype=None if base is None else _word(base),
        verdict=verdict,
        differing=differing,
        altered=Entries.none(),
        impossible=Entries.none(),
        outliers=Entries.none(),
        altered_count=0,
        usual=float("nan"),
        reason=reason,
    )


def _word(value: Tensor) -> str:
    return str(value.dtype).removeprefix("torch.")
