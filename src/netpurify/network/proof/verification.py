"""Check a purification again: every certificate is computed from the weights and the proof, without solver or data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from netpurify import lad
from netpurify.errors import InputError
from netpurify.network.adapter.grid import HALF, HalfGrid
from netpurify.network.adapter.layers import tensor_names, to_matrix
from netpurify.network.adapter.weights import Weights
from netpurify.network.fitting import column_floors, floors_of
from netpurify.network.policies.recovery import evidence
from netpurify.network.policies.recovery.frozen import restore_frozen
from netpurify.network.records import Proof
from netpurify.network.rounded import judge

State = Mapping[str, Tensor]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class LayerProofCheck:
    """The result of the check for one layer.

    Attributes:
        name: Its name in the network.
        units: How many units have a proof.
        certified: How many of these fits are proven to be minima of the L1 regression. In half precision, where a fit
            goes through rounding, few are; ``recovered`` then rests on how many weights agree within their rounding.
        recovered: How many of these units also have enough redundancy, so that the fit is the truth.
        largest_gap: Largest duality gap, relative to the objective.
        kept: Weights of recovered units that differ from the fit but were kept, because they were left unjudged.
        unexplained: Weights that were changed, but equal neither a proven fit nor, in a layer that was never trained,
            the initial weights. Approximate repairs are among them: they have no proof.
    """

    name: str
    units: int
    certified: int
    recovered: int
    largest_gap: float
    kept: int
    unexplained: int


@dataclass(frozen=True, slots=True)
class ProofCheck:
    """The result of the check, layer by layer."""

    layers: tuple[LayerProofCheck, ...]

    @property
    def sound(self) -> bool:
        """Whether every weight that was changed follows from what is proven."""
        return not any(layer.unexplained for layer in self.layers)


@dataclass(frozen=True, slots=True)
class RepairClaim:
    """The weights before and after, and how the purification says that they came about.

    Attributes:
        contaminated: The contaminated weights.
        initial: The initial weights, or ``None``.
        purified: The purified weights.
        policy: Name of the policy, ``"recover"`` or ``"project"``: what may be replaced depends on it.
        decays: Factor of the initial weights, by layer.
        noise_floor: The noise floor that the policy was given, or ``None``.
    """

    contaminated: State
    initial: State | None
    purified: State
    policy: str
    decays: Mapping[str, float]
    noise_floor: float | None = None


def verify_proof(proofs: Sequence[Proof], claim: RepairClaim) -> ProofCheck:
    """Check every proof, and that no weight was changed without one.

    Whether the columns of the designs come from clean inputs cannot be checked here; everything else is computed again.

    Args:
        proofs: One proof for each block of units.
        claim: What is to be checked.

    Raises:
        InputError: The weights do not fit one another or the proofs, or a unit has two proofs.
    """
    if claim.policy not in ("recover", "project"):
        raise InputError(f'policy must be "recover" or "project"; got {claim.policy!r}')
    contaminated, purified = claim.contaminated, claim.purified
    shapes = [{name: tuple(value.shape) for name, value in state.items()} for state in (contaminated, purified)]
    if shapes[0] != shapes[1]:
        names = sorted(
            name for name in shapes[0].keys() | shapes[1].keys() if shapes[0].get(name) != shapes[1].get(name)
        )
        raise InputError(
            f"the purified weights must have the names and shapes of the contaminated ones; {names} do not"
        )
    by_layer: dict[str, list[Proof]] = {}
    for proof in proofs:
        by_layer.setdefault(proof.layer, []).append(proof)
    checks = [_layer(name, blocks, claim) for name, blocks in by_layer.items()]
    covered = {tensor for name in by_layer for tensor in _tensors(name, contaminated)}
    others = dict.fromkeys(name.rpartition(".")[0] for name in contaminated if name not in covered)
    checks += [check for name in others if (check := _without_proof(name, covered, claim)).unexplained]
    return ProofCheck(tuple(checks))


def _layer(name: str, proofs: Sequence[Proof], claim: RepairClaim) -> LayerProofCheck:
    units = np.concatenate([proof.units for proof in proofs])
    if np.unique(units).size != units.size or name not in claim.decays or len({proof.groups for proof in proofs}) > 1:
        raise InputError(
            f"the proofs of {name!r} must name each unit once, agree on the number of groups, and have a decay"
        )
    before, after = (_matrix(proofs[0], state, what) for state, what in
                     ((claim.contaminated, "contaminated weights"), (claim.purified, "purified weights")))  # fmt: skip
    unexplained = ~_same(_array(after), _array(before))
    certificates, kept, recovered = [], 0, 0
    for proof in proofs:
        block = _check(proof, claim.decays[name], claim)
        index = np.ix_([proof.group], np.arange(unexplained.shape[1]), proof.units - proof.group * unexplained.shape[2])
        kept += int((block.altered & ~unexplained[index][0]).sum())
        unexplained[index] &= ~block.explained
        certificates.append(block.certificate)
        recovered += int(block.recovered.sum())
    return LayerProofCheck(
        name=name,
        units=units.size,
        certified=sum(int(certificate.certified.sum()) for certificate in certificates),
        recovered=recovered,
        largest_gap=max(float(certificate.relative_gap.max(initial=0.0)) for certificate in certificates),
        kept=kept,
        unexplained=int(unexplained.sum()),
    )


@dataclass(frozen=True, slots=True)
class _BlockCheck:
    """What the proof of one block of units shows.

    Attributes:
        certificate: The certificate of the units' fits.
        recovered: Units whose fit is the truth, [units].
        explained: Purified weights that equal a proven fit, where the policy may replace them, [fan-in, units].
        altered: Contaminated weights that are proven to be altered, [fan-in, units].
    """

    certificate: lad.Certificate
    recovered: Mask
    explained: Mask
    altered: Mask


def _check(proof: Proof, decay: float, claim: RepairClaim) -> _BlockCheck:
    matrix = _matrix(proof, claim.contaminated, "contaminated weights")
    initial = torch.zeros_like(matrix) if claim.initial is None else _matrix(proof, claim.initial, "initial weights")
    matrix = _wide(matrix)  # so that initial weights in float32 are not rounded
    weights = Weights.of(matrix, initial.to(matrix), bias=False, grid=_grid(proof.layer, claim))
    units = proof.units - proof.group * weights.units
    if proof.units.size and not 0 <= units.min() <= units.max() < weights.units:
        raise InputError(f"{proof.layer!r} has {weights.units} units in a group; the proof names others")
    floor = floors_of(weights, proof.group, claim.noise_floor)[..., units]
    difference = weights.difference(proof.group, units, decay)
    design = lad.Design.prepare(proof.columns)
    certificate = lad.verify(design, difference, lad.Claim(proof.coefficients, proof.dual, column_floors(floor)))
    fitted = proof.columns @ proof.coefficients
    after = _array(_matrix(proof, claim.purified, "purified weights")[proof.group])[:, units]
    predicted = weights.start(proof.group, units, decay) + fitted
    if weights.grid is None:
        fits = _near(after, predicted.astype(after.dtype))
        differs = ~(np.abs(difference - fitted) <= floor)
        recovered = evidence.proven(certificate, design, differs, np.isnan(difference))
    else:
        fits = _rounded(after, predicted, weights.grid)
        judgement = judge(design, difference, floor, fitted)
        differs, recovered = judgement.altered, judgement.proven | weights.untouched(proof.group, units)
    if claim.policy == "recover":
        return _BlockCheck(certificate, recovered, fits & differs & recovered, differs & recovered)
    return _BlockCheck(certificate, recovered, fits & certificate.certified, np.zeros_like(differs))


def _without_proof(name: str, covered: set[str], claim: RepairClaim) -> LayerProofCheck:
    """Check a module's tensors without a proof: they must be unchanged, or the initial ones if it was never trained."""
    tensors = [tensor for tensor in claim.contaminated if tensor.rpartition(".")[0] == name and tensor not in covered]
    unexplained = {tensor: ~_equal(claim.purified[tensor], claim.contaminated[tensor]) for tensor in tensors}
    if any(mask.any() for mask in unexplained.values()) and _frozen(name, claim):
        for tensor in _tensors(name, claim.contaminated):
            unexplained[tensor] &= ~_equal(
                claim.purified[tensor], (claim.initial or {})[tensor].to(claim.contaminated[tensor])
            )
    return LayerProofCheck(name, 0, 0, 0, 0.0, 0, sum(int(mask.sum()) for mask in unexplained.values()))


def _frozen(name: str, claim: RepairClaim) -> bool:
    names = _tensors(name, claim.contaminated)
    initial = claim.initial or {}
    if not all(tensor in initial and initial[tensor].shape == claim.contaminated[tensor].shape for tensor in names):
        return False
    if not names or claim.contaminated[names[0]].dim() < 2 or claim.policy != "recover":
        return False
    given, start = (
        to_matrix(state[names[0]], state[names[1]] if len(names) > 1 else None, 1)
        for state in (claim.contaminated, initial)
    )
    given = _wide(given)
    weights = Weights.of(given, start.to(given), bias=False, grid=_grid(name, claim))
    return restore_frozen(weights) is not None


def _grid(name: str, claim: RepairClaim) -> HalfGrid | None:
    """In which dtypes a layer is stored, if in half precision."""
    names = tuple(_tensors(name, claim.contaminated))
    if claim.initial is not None and not all(tensor in claim.initial for tensor in names):
        return None
    came, base = (
        () if state is None else tuple(state[tensor].dtype for tensor in names)
        for state in (claim.contaminated, claim.initial)
    )
    return HalfGrid(came, base) if names else None


def _tensors(name: str, state: State) -> list[str]:
    return [tensor for tensor in tensor_names(name, bias=True) if tensor in state]


def _matrix(proof: Proof, state: State, what: str) -> Tensor:
    names = tensor_names(proof.layer, bias=True)
    weight, bias = (state.get(name) for name in names)
    size = proof.columns.shape[0]
    if weight is None or weight.dim() < 2 or weight[0].numel() + (bias is not None) != size:
        shape = "nothing" if weight is None else list(weight.shape)
        raise InputError(f"the {what} must have {names[0]} with a fan-in of {size}, as the proof has; got {shape}")
    if weight.shape[0] % proof.groups or not 0 <= proof.group < proof.groups:
        raise InputError(f"the {what} have {weight.shape[0]} units in {names[0]}; the proof names others")
    return to_matrix(weight.detach(), None if bias is None else bias.detach(), proof.groups)


def _equal(a: Tensor, b: Tensor) -> Mask:
    return _same(*(value.detach().cpu().double().numpy() if value.is_floating_point() else value.detach().cpu().numpy()
                   for value in (a, b)))  # fmt: skip


def _same(a: NDArray, b: NDArray) -> Mask:
    return np.asarray((a == b) | ((a != a) & (b != b)))  # NaN is the same as NaN here


def _wide(values: Tensor) -> Tensor:
    return values.float() if values.dtype in HALF else values


def _array(values: Tensor) -> NDArray:
    return _wide(values).cpu().numpy()


def _rounded(stored: NDArray, values: NDArray, grid: HalfGrid) -> Mask:
    """Whether numbers are what is stored in place of these values, up to a thousandth of a step."""
    half = np.maximum(grid.half_steps(stored), grid.half_steps(values))
    return np.asarray((np.abs(stored - values) <= 1.002 * half) | (stored == grid.to_grid(values)))


def _near(a: NDArray, b: NDArray) -> Mask:
    """Equal up to two rounding units, since sums of the same numbers in another order round differently."""
    return np.abs(a - b) <= 2.0 * np.spacing(np.maximum(np.abs(a), np.abs(b)))
