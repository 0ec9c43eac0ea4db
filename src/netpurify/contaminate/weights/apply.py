"""Contaminates a state: each entry, independently of the others, may take the value that a law proposes."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import torch
from torch import Tensor

from netpurify.contaminate.draws import check_generator, check_share, uniform
from netpurify.contaminate.weights.bits import check_float, from_bits, to_bits
from netpurify.contaminate.weights.laws import Law
from netpurify.contaminate.weights.shared_memory import check_overlaps, memory_key
from netpurify.errors import InputError


@dataclass(frozen=True, slots=True)
class Contaminated:
    """A contaminated state, and which of its entries changed.

    Attributes:
        state: The contaminated weights under the names of the given state, in its order; shares no tensor memory
            with it.
        altered: For every tensor that was chosen, a bool mask of its shape: True exactly where stored bits differ.
    """

    state: dict[str, Any]
    altered: dict[str, Tensor]


def contaminate(
    state: Mapping[str, Any],
    law: Law,
    *,
    share: float,
    generator: torch.Generator,
    names: Iterable[str] | None = None,
) -> Contaminated:
    """Replaces each entry of the chosen tensors, independently with probability ``share``, by the law's proposal.

    The choice and the proposals are drawn for every entry, tensor by tensor in the order of the state. So one seed with
    a larger share alters the same entries to the same values, and more besides.

    An entry that takes a proposal equal to itself (a zero set to zero, noise lost in rounding) does not count as
    altered; 0.0 that became -0.0 does.

    Tied names (same memory, shape and strides) are drawn once and stay tied in the result. If only one of them is
    chosen, the other keeps its values and the tie is cut.

    Args:
        state: A ``state_dict`` or any mapping like it; never modified. Values that are not tensors are passed through.
        law: What happens to an altered entry; see ``netpurify.contaminate.weights.laws``.
        share: Probability that an entry takes the proposal, the paper's epsilon.
        generator: Source of all draws; must be on the CPU, whatever the device of the tensors.
        names: Tensors to contaminate; ``None`` for every real floating one.

    Returns:
        Detached copies of everything, and the mask of altered entries for each chosen tensor.

    Raises:
        InputError: A name is unknown, a chosen tensor is not dense and real floating, chosen tensors overlap without
            being tied, the law's proposal does not fit the tensor, or an option has no meaning.
    """
    if not isinstance(state, Mapping):
        raise InputError(f"state must be a mapping of names to tensors; got {type(state).__name__}; give a state_dict")
    check_share("share", share)
    check_generator(generator)
    if isinstance(law, type) or not callable(getattr(law, "alter", None)):
        raise InputError(f"law must be an object with a method alter, such as Normal(); got {law!r}")
    # Read once: a lazy mapping may return a new tensor at every access, and ties would be missed.
    tensors = {name: value.detach() if isinstance(value, Tensor) else value for name, value in state.items()}
    chosen = _choose(tensors, names)
    check_overlaps(chosen)

    drawn: dict[Hashable, tuple[Tensor, Tensor]] = {}
    copied: dict[Hashable, Tensor] = {}
    result: dict[str, Any] = {}
    altered: dict[str, Tensor] = {}
    for name, value in tensors.items():
        if not isinstance(value, Tensor):
            result[name] = value
            continue
        key = memory_key(value)
        if name not in chosen:
            if key not in copied:
                copied[key] = value.clone()
            result[name] = copied[key]
            continue
        if key not in drawn:
            drawn[key] = _alter(name, value, law, share, generator)
        result[name], altered[name] = drawn[key]
    return Contaminated(state=result, altered=altered)


def _choose(tensors: Mapping[str, Any], names: Iterable[str] | None) -> dict[str, Tensor]:
    """The tensors to contaminate, in the order of the state."""
    if names is None:
        chosen = {
            name: value for name, value in tensors.items() if isinstance(value, Tensor) and value.is_floating_point()
        }
    else:
        if isinstance(names, str):
            raise InputError(f"names must be a collection of names; got the single string {names!r}; give [{names!r}]")
        asked = dict.fromkeys(names)
        for name in asked:
            if name not in tensors:
                raise _unknown(name, tensors)
        chosen = {name: value for name, value in tensors.items() if name in asked}
    for name, value in chosen.items():
        _check_tensor(name, value)
    return chosen


def _unknown(name: object, tensors: Mapping[str, Any]) -> InputError:
    close = get_close_matches(str(name), [str(known) for known in tensors], cutoff=0.4)
    advice = f"did you mean {' or '.join(close)}?" if close else f"it holds {', '.join(map(str, tensors)) or 'nothing'}"
    return InputError(f"names must be names of the state; it has no {name!r}; {advice}")


def _check_tensor(name: str, value: object) -> None:
    if not isinstance(value, Tensor):
        raise InputError(f"{name} must be a tensor to be contaminated; got {type(value).__name__}; leave it out")
    if value.is_quantized:
        raise InputError(f"{name} must hold floats; got a quantised tensor; leave it out or dequantise it first")
    if value.layout != torch.strided or value.is_nested:
        kind = "a nested tensor" if value.is_nested else f"layout {value.layout}"
        raise InputError(f"{name} must be a dense tensor; got {kind}; leave it out or make it dense first")
    if value.is_meta:
        raise InputError(f"{name} must hold values; got a tensor on the meta device; load the weights first")
    check_float(value, name)


def _alter(name: str, values: Tensor, law: Law, share: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """The contaminated copy of one tensor and the mask of its altered entries."""
    takes = (uniform(values.shape, generator) < share).to(values.device)
    # A copy is passed: a law that works in place must not reach the caller's weights.
    proposal = law.alter(values.clone(), generator)
    _check_proposal(name, proposal, values, law)
    # Selected and compared as integers: float operations may change the bits of a NaN, and no NaN equals another.
    before = to_bits(values)
    after = before.clone()
    after[takes] = to_bits(proposal.detach())[takes]
    return from_bits(after, values.dtype), after != before


def _check_proposal(name: str, proposal: Tensor, values: Tensor, law: Law) -> None:
    wanted = (values.shape, values.dtype, values.device)
    if isinstance(proposal, Tensor) and (proposal.shape, proposal.dtype, proposal.device) == wanted:
        return
    got = type(proposal).__name__
    if isinstance(proposal, Tensor):
        got = f"{list(proposal.shape)}, {proposal.dtype}, {proposal.device}"
    raise InputError(
        f"{name}: the law {law!r} must propose a tensor {list(values.shape)}, {values.dtype}, {values.device}, as the "
        f"values are; got {got}"
    )
