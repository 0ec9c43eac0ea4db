"""Compare tensors with their base, one by one, then settle those that cannot be told without their neighbours."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import numpy as np
import torch
from torch import Tensor

from netpurify.checkpoint import raw_bytes, unusual
from netpurify.errors import InputError
from netpurify.network.comparison import frozen, outliers
from netpurify.network.comparison.records import Entries, TensorComparison, TensorVerdict
from netpurify.network.comparison.settling import BESIDE, IN_PART, ONE_BY_ONE, PENDING, ROUNDED, SMALL, settle
from netpurify.network.policies.recovery import evidence

_DECLARED = "said to be frozen: any difference from the base is an alteration"
_OVERWRITTEN = "never trained: what differs was overwritten by one value"


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


def require_matches(options: Options, names: Iterable[str]) -> None:
    """Refuse patterns of frozen tensors that match no name: a misspelt one would switch a check off unseen.

    Raises:
        InputError: A pattern matches nothing.
    """
    known = list(names)
    for pattern in options.frozen:
        if not any(fnmatchcase(name, pattern) for name in known):
            raise InputError(
                f"frozen must be patterns that match names of tensors; {pattern!r} matches none of {len(known)}, such "
                f"as {known[:3]}; check its spelling"
            )


def compare_tensors(
    weights: Mapping[str, Tensor], base: Mapping[str, Tensor], options: Options | None = None
) -> tuple[TensorComparison, ...]:
    """Every tensor of ``weights`` beside the one of the same name in ``base``."""
    options = options or Options()
    pairs = (compare_tensor(name, value, base.get(name), options) for name, value in weights.items())
    return settle(pairs)


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
    if value.is_complex() and not options.declared(name):
        return one
    if options.declared(name):
        return _altered(one, _entries(value, rounded, differs), _DECLARED, options)
    if frozen.overwritten(value[differs], rounded[differs], one.shape):
        return _altered(one, _entries(value, rounded, differs), _OVERWRITTEN, options)
    if count <= frozen.MOST_DIFFER * value.numel():
        return _mostly_same(_trained(one, value, base), value, rounded, differs, options)
    return _trained(one, value, base)


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
    """A tensor of which most entries have their initial bits; ``settle`` decides on those that are pending."""
    entries = _entries(value, base, differs)
    kept, same = frozen.unchanged(base, differs)
    # A step that is rounded away at entries of the usual size changes only smaller ones.
    usual = 0.5 * float(np.median(kept)) if value.is_floating_point() and kept.size else 0.0
    steps = _steps(value, np.maximum(np.abs(entries.base), usual))
    if frozen.by_steps(entries.was, entries.base, steps) or _rounded_away(value, base, differs, entries):
        return replace(one, reason=ROUNDED)
    matrix = differs.reshape(frozen.matrix_shape(one.shape)).numpy()
    if frozen.in_lines(matrix) if frozen.narrow(matrix.shape) else not evidence.scattered(matrix):
        return replace(one, reason=IN_PART)
    few = frozen.narrow(matrix.shape) or len(entries) >= same
    small = frozen.by_rounding(entries.was, entries.base, steps)
    unsure = value.is_floating_point() and frozen.may_be_trained(matrix, value.dim())
    if unsure and small:
        return replace(one, reason=IN_PART)
    pending = replace(one, altered=_kept(entries, options), altered_count=len(entries))
    pending = replace(pending, reason=BESIDE if unsure else SMALL if small else PENDING if few else ONE_BY_ONE)
    if not value.is_floating_point():
        return pending
    sizes = np.maximum(np.abs(entries.was), np.abs(entries.base))
    return replace(pending, odds=frozen.odds_of_small(sizes, kept))


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
    return 2 * int((shows & differs).sum()) > int(shows.sum())


def _altered(one: TensorComparison, entries: Entries, reason: str, options: Options) -> TensorComparison:
    kept = _kept(entries, options)
    return replace(one, verdict=TensorVerdict.ALTERED, altered=kept, altered_count=len(entries), reason=reason)


def _kept(entries: Entries, options: Options) -> Entries:
    return entries if options.limit is None else entries.largest(options.limit)


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
    found = (tensor.reshape(-1)[index] for tensor in (value, base))
    was, initial = ((one.abs() if one.is_complex() else one).double().numpy() for one in found)
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
