"""Look for alterations in weights with nothing but their base: nothing is repaired, and no code is run."""

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor, nn

from netpurify import checkpoint
from netpurify.errors import InputError
from netpurify.network.adapter.reference import Initial, Seeded, resolve
from netpurify.network.comparison.comparing import Options, compare_tensor
from netpurify.network.comparison.records import Coverage, TensorComparison, TensorVerdict, coverage_of
from netpurify.network.comparison.settling import settle
from netpurify.network.policies.policy import Progress

KEPT = 10_000
"""Altered entries that are kept for each tensor, the largest changes first; all of them are counted."""


@dataclass(frozen=True, slots=True)
class Scan:
    """What a scan has shown.

    Attributes:
        tensors: Every tensor of the weights beside its base, in the order of the weights.
        only_base: Names of tensors that only the base has.
        frozen: The patterns of names that were said to be frozen.
        seconds: Time it took.
    """

    tensors: tuple[TensorComparison, ...]
    only_base: tuple[str, ...]
    frozen: tuple[str, ...]
    seconds: float

    @property
    def coverage(self) -> Coverage:
        """How many weights are known, compared only, and unknown."""
        return coverage_of(self.tensors)

    @property
    def found(self) -> tuple[TensorComparison, ...]:
        """The tensors with a finding."""
        return tuple(one for one in self.tensors if one.findings)

    def count(self, verdict: TensorVerdict) -> int:
        """How many tensors have this verdict."""
        return sum(one.verdict == verdict for one in self.tensors)


def scan(
    weights: nn.Module | Mapping[str, Tensor] | str | Path,
    base: Initial,
    *,
    frozen: tuple[str, ...] | list[str] = (),
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
        progress: Called as ``progress(name, done, total)`` before each tensor and at the end.

    Raises:
        InputError: The two have no tensor in common, or an argument is of a wrong type.
        CheckpointError: A file cannot be read safely.
    """
    if isinstance(frozen, str):
        raise InputError(
            f"frozen must be a collection of patterns; got the single string {frozen!r}; give [{frozen!r}]"
        )
    begun = time.perf_counter()
    options = Options(tuple(frozen), KEPT)
    with ExitStack() as stack:
        first, second = (stack.enter_context(_opened(one)) for one in (weights, base))
        names = list(first)
        if not any(name in second for name in names):
            raise InputError(
                "the weights and their base must be of the same network; they have no tensor in common: the weights "
                f"have {names[:5]}, the base {list(second)[:5]}"
            )
        missing = tuple(name for name in second if name not in first)
        found = []
        for number, name in enumerate(names):
            if progress is not None:
                progress(name, number, len(names))
            found.append(compare_tensor(name, first[name], second.get(name), options))
    if progress is not None:
        progress("", len(names), len(names))
    return Scan(settle(found), missing, options.frozen, time.perf_counter() - begun)


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
