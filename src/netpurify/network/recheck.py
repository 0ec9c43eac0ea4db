"""Check a purification again: every certificate from the weights and the proof alone, without solver or data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from netpurify import lad
from netpurify.errors import InputError
from netpurify.lad.solution import Solution, Statistics
from netpurify.network import evidence
from netpurify.network.layers import to_matrix
from netpurify.network.records import Proof
from netpurify.network.recover import Weights, frozen

State = Mapping[str, Tensor]


@dataclass(frozen=True, slots=True)
class LayerCheck:
    """What was found of one layer.

    Attributes:
        name: Its name in the network.
        units: Units with a proof.
        certified: Units whose fit is a proven minimum.
        recovered: Units with surplus evidence besides.
        largest_gap: Largest duality gap, relative to the objective.
        unexplained: Weights of recovered (or projected) units that are neither the contaminated ones nor what the fit
            says.
        unproven: Weights that were changed although no proof speaks of their unit, or one without surplus evidence:
            approximate repairs, or forged ones.
    """

    name: str
    units: int
    certified: int
    recovered: int
    largest_gap: float
    unexplained: int
    unproven: int


@dataclass(frozen=True, slots=True)
class Recheck:
    """What was found of a network, layer by layer."""

    layers: tuple[LayerCheck, ...]

    @property
    def sound(self) -> bool:
        """Whether every fit is a proven minimum, and every weight that was changed follows from one."""
        return all(
            layer.certified == layer.units and not layer.unexplained and not layer.unproven for layer in self.layers
        )


def recheck(
    proofs: Sequence[Proof],
    decays: Mapping[str, float],
    contaminated: State,
    initial: State | None,
    purified: State,
    policy: str,
) -> Recheck:
    """Check what the proofs claim.

    That the columns of the designs come from clean inputs cannot be seen from here; everything else is computed anew.

    Raises:
        InputError: A tensor is missing or has another shape than its proof.
    """
    _check_names(contaminated, purified)
    found: dict[str, list[LayerCheck]] = {}
    proven: dict[str, set[int]] = {}
    for proof in proofs:
        check, good = _check(proof, decays[proof.layer], contaminated, initial, purified, policy)
        found.setdefault(proof.layer, []).append(check)
        proven.setdefault(proof.layer, set()).update(good.tolist())
    for name in dict.fromkeys(tensor.rpartition(".")[0] for tensor in contaminated):
        changed = _unproven(name, proven.get(name, set()), contaminated, initial, purified)
        if changed:
            found.setdefault(name, []).append(LayerCheck(name, 0, 0, 0, 0.0, 0, changed))
    return Recheck(tuple(_join(name, parts) for name, parts in found.items()))


def _check_names(contaminated: State, purified: State) -> None:
    shapes = [{name: value.shape for name, value in state.items()} for state in (contaminated, purified)]
    if shapes[0] != shapes[1]:
        raise InputError("the contaminated and the purified weights must have the same names and shapes")


def _unproven(name: str, proven: set[int], before: State, initial: State | None, after: State) -> int:
    """Changed weights of a module outside the units that are proven; a layer that was never trained needs no proof."""
    prefix = f"{name}." if name else ""
    tensors = [tensor for tensor in before if tensor.rpartition(".")[0] == name]
    layer = [tensor for tensor in (f"{prefix}weight", f"{prefix}bias") if tensor in before]
    if initial is not None and _set_back(layer, before, initial, after):
        tensors = [tensor for tensor in tensors if tensor not in layer]
    count = 0
    for tensor in tensors:
        changed = ~_same(before[tensor].detach().cpu().numpy(), after[tensor].detach().cpu().numpy())
        if tensor in layer and changed.ndim:
            changed[sorted(proven)] = False
        count += int(changed.sum())
    return count


def _set_back(layer: Sequence[str], before: State, initial: State, after: State) -> bool:
    """Whether a layer was never trained, and what differed from the initial weights, and nothing else, was set back."""
    if not layer or any(name not in initial or initial[name].shape != before[name].shape for name in layer):
        return False
    bias = len(layer) > 1
    old, start, new = (
        to_matrix(state[layer[0]].detach(), state[layer[1]].detach() if bias else None, 1)
        for state in (before, initial, after)
    )
    weights = Weights.of(old, start.to(old), bias=bias)
    found = frozen(weights)
    return found is not None and bool(_same(new.cpu().numpy(), found.matrix).all())


def _check(
    proof: Proof,
    decay: float,
    contaminated: State,
    initial: State | None,
    purified: State,
    policy: str,
) -> tuple[LayerCheck, NDArray[np.int64]]:
    matrix, bias = _matrix(proof, contaminated, "contaminated weights")
    reference = torch.zeros_like(matrix) if initial is None else _matrix(proof, initial, "initial weights")[0]
    weights = Weights.of(matrix, reference.to(matrix), bias=bias)
    units = proof.units - proof.group * weights.units
    difference = weights.difference(proof.group, units, decay)
    design = lad.Design.prepare(proof.columns)
    certificate = lad.verify(design, difference, _solution(proof, design))
    fitted = proof.columns @ proof.coefficients
    with np.errstate(invalid="ignore"):
        keeps = np.abs(difference - fitted) <= proof.noise_floor
    predicted = (weights.start(proof.group, units, decay) + fitted).astype(weights.contaminated.dtype)
    after = _matrix(proof, purified, "purified weights")[0][proof.group].cpu().numpy()[:, units]
    before = weights.contaminated[proof.group][:, units]
    good = evidence.recovered(certificate, design.rank)
    follows = _near(after, predicted)
    if policy == "recover":
        # Units without evidence are outside of what the proof speaks of, and rows in doubt may keep what they had.
        follows = np.where(keeps, _same(after, before), follows | _same(after, before)) | ~good
    check = LayerCheck(
        name=proof.layer,
        units=units.size,
        certified=int(certificate.certified.sum()),
        recovered=int(good.sum()),
        largest_gap=float(certificate.relative_gap.max(initial=0.0)),
        unexplained=int((~follows).sum()),
        unproven=0,
    )
    return check, proof.units[good] if policy == "recover" else proof.units


def _solution(proof: Proof, design: lad.Design) -> Solution:
    count = proof.units.size
    nothing = np.zeros(count, np.int64)
    return Solution(
        coefficients=proof.coefficients,
        residual=np.zeros((0, count)),
        dual=proof.dual,
        status=np.zeros(count, np.int8),
        noise_floor=proof.noise_floor,
        erased=nothing,
        stage=nothing.astype(np.int8),
        rank=design.rank,
        statistics=Statistics({}, {}, 0),
    )


def _matrix(proof: Proof, state: State, what: str) -> tuple[Tensor, bool]:
    prefix = f"{proof.layer}." if proof.layer else ""
    weight, bias = state.get(f"{prefix}weight"), state.get(f"{prefix}bias")
    size = proof.columns.shape[0]
    if weight is None or weight.dim() < 2 or weight[0].numel() + (bias is not None) != size:
        shape = "nothing" if weight is None else list(weight.shape)
        raise InputError(f"the {what} must have {prefix}weight with a fan-in of {size}, as the proof has; got {shape}")
    if weight.shape[0] % proof.groups or (proof.units.size and int(proof.units.max()) >= weight.shape[0]):
        raise InputError(f"the {what} have {weight.shape[0]} units in {prefix}weight; the proof speaks of others")
    return to_matrix(weight.detach(), None if bias is None else bias.detach(), proof.groups), bias is not None


def _same(a: NDArray, b: NDArray) -> NDArray[np.bool_]:
    return (a == b) | (np.isnan(a) & np.isnan(b))


def _near(a: NDArray, b: NDArray) -> NDArray[np.bool_]:
    """Equal up to two rounding units: sums of the same numbers in another order."""
    return np.abs(a - b) <= 2.0 * np.spacing(np.maximum(np.abs(a), np.abs(b)))


def _join(name: str, parts: Sequence[LayerCheck]) -> LayerCheck:
    return LayerCheck(
        name=name,
        units=sum(part.units for part in parts),
        certified=sum(part.certified for part in parts),
        recovered=sum(part.recovered for part in parts),
        largest_gap=max(part.largest_gap for part in parts),
        unexplained=sum(part.unexplained for part in parts),
        unproven=sum(part.unproven for part in parts),
    )
