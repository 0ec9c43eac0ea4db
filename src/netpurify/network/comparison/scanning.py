"""Look for alterations in weights with nothing but their base: nothing is repaired, and no code is run."""

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import Tensor, nn

from netpurify import checkpoint
from netpurify.errors import InputError
from netpurify.network.adapter.reference import Initial, Seeded, resolve
from netpurify.network.comparison.comparing import Options, compare_tensor, require_matches
from netpurify.network.comparison.records import Coverage, TensorComparison, TensorVerdict, coverage_of
from netpurify.network.comparison.settling import settle
from netpurify.network.peft.folder import Adapter, load_adapter
from netpurify.network.peft.merging import MergeCheck, check_merged
from netpurify.network.policies.policy import Progress
from netpurify.network.policies.recovery.low_rank import LowRankFinding, low_rank_alterations
from netpurify.network.shown import Shown

KEPT = 10_000
"""Entries of each finding that are kept for each tensor, the largest changes first; all of them are counted."""


@dataclass(frozen=True, slots=True, repr=False)
class Scan(Shown):
    """What a scan has shown. ``print`` shows what was found.

    Attributes:
        tensors: Every tensor of the weights beside its base, in the order of the weights.
        only_base: Names of tensors that only the base has.
        frozen: The patterns of names that were said to be frozen.
        seconds: Time it took.
        merge: The weights beside base and adapter; ``None`` if no adapter was given.
        low_rank: Trained matrices whose change has a low rank, by name, with the entries that do not agree with it;
            empty if they were not looked for.
    """

    tensors: tuple[TensorComparison, ...]
    only_base: tuple[str, ...]
    frozen: tuple[str, ...]
    seconds: float
    merge: MergeCheck | None = None
    low_rank: Mapping[str, LowRankFinding] = field(default_factory=dict)

    def _brief(self) -> str:
        unknown = self.count(TensorVerdict.UNKNOWN)
        return f"tensors={len(self.tensors)}, found={len(self.found)}, unknown={unknown}"

    @property
    def coverage(self) -> Coverage:
        """How many weights are known, compared only, and unknown; those compared with base and adapter are known."""
        merged = sum(one.entries for one in self.tensors if self.merged(one.name))
        return coverage_of(tuple(one for one in self.tensors if not self.merged(one.name))) + Coverage(merged, 0, 0)

    def merged(self, name: str) -> bool:
        """Whether a tensor of the weights was compared with base and adapter, entry by entry."""
        return self.merge is not None and name not in self.merge.unmatched

    @property
    def found(self) -> tuple[TensorComparison, ...]:
        """The tensors in which the comparison with the base alone shows something."""
        return tuple(one for one in self.tensors if one.findings)

    def count(self, verdict: TensorVerdict) -> int:
        """How many tensors have this verdict."""
        return sum(one.verdict == verdict for one in self.tensors)


def scan(
    weights: nn.Module | Mapping[str, Tensor] | str | Path,
    base: Initial,
    *,
    frozen: tuple[str, ...] | list[str] = (),
    adapter: Adapter | str | Path | None = None,
    low_rank: bool = False,
    progress: Progress | None = None,
) -> Scan:
    """Compare weights with their base, tensor by tensor, and name what is altered, impossible or stands far out.

    It needs neither the network's code nor clean inputs, so it is the way to look at files that nobody trusts.
    Files are read one tensor at a time.

    Args:
        weights: A network, a state dict, or a file or folder of weights.
        base: The weights before training or fine-tuning: a network, a state dict, a file or folder, or
            ``Seeded(factory, seed)``.
        frozen: Patterns of names, such as ``"backbone.*"`` or ``"*"``: tensors that were never trained, so that any
            difference is an alteration. Of the others it is told from the tensors themselves.
        adapter: What ``load_adapter`` gave, or a folder of PEFT: the weights should be the base with this adapter
            merged, and every entry is checked.
        low_rank: Whether to look for changes of low rank in matrices in float32 that were trained, and for entries
            that do not agree with them. It takes seconds for each large matrix.
        progress: Called as ``progress(name, done, total)`` before each tensor and at the end.

    Raises:
        InputError: The two have no tensor in common, an argument is of a wrong type, or the adapter does not fit the
            base.
        CheckpointError: A file cannot be read safely.
    """
    if isinstance(frozen, str):
        raise InputError(
            f"frozen must be a collection of patterns; got the single string {frozen!r}; give [{frozen!r}]"
        )
    begun = time.perf_counter()
    if isinstance(adapter, str | Path):
        adapter = load_adapter(adapter)  # before the long work, because it may be refused
    options = Options(tuple(frozen), KEPT)
    with ExitStack() as stack:
        first, second = (stack.enter_context(_opened(one)) for one in (weights, base))
        names = list(first)
        if not any(name in second for name in names):
            raise InputError(
                "the weights and their base must be of the same network; they have no tensor in common: the weights "
                f"have {names[:5]}, the base {list(second)[:5]}"
            )
        require_matches(options, names)
        missing = tuple(name for name in second if name not in first)
        found = []
        for number, name in enumerate(names):
            if progress is not None:
                progress(name, number, len(names))
            found.append(compare_tensor(name, first[name], second.get(name), options))
        tensors = settle(found)
        merge = None if adapter is None else check_merged(first, second, adapter, limit=KEPT)
        alone = Scan(tensors, missing, options.frozen, 0.0, merge)
        ranks = _low_ranks(alone, first, second) if low_rank else {}
    if progress is not None:
        progress("", len(names), len(names))
    return replace(alone, seconds=time.perf_counter() - begun, low_rank=ranks)


def _low_ranks(scanned: Scan, weights: Mapping[str, Tensor], base: Mapping[str, Tensor]) -> dict[str, LowRankFinding]:
    """Changes of low rank in trained matrices of which an adapter does not say more."""
    word = str(torch.float32).removeprefix("torch.")
    names = [
        one.name
        for one in scanned.tensors
        if one.verdict == TensorVerdict.TRAINED and len(one.shape) == 2 and one.dtype == word
        if not scanned.merged(one.name)
    ]
    found = {name: low_rank_alterations(weights[name].cpu(), base[name].cpu()) for name in names}
    return {name: one for name, one in found.items() if one is not None}


@contextmanager
def _opened(weights: nn.Module | Initial) -> Iterator[Mapping[str, Tensor]]:
    """Tensors by name; those of files are read when they are asked for, and not kept."""
    if isinstance(weights, str | Path):
        with checkpoint.open_weights(weights) as opened:
            yield opened.state
    elif isinstance(weights, nn.Module | Mapping | Seeded):
        yield resolve(weights)
    else:
        raise InputError(
            "weights and base must each be a network, a state dict, a file or Seeded(factory, seed); got "
            f"{type(weights).__name__}"
        )
