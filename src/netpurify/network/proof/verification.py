"""Check a purification again: every certificate is computed from the weights and the proof, without solver or data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from netpurify import lad
from netpurify.errors import InputError
from netpurify.network.adapter.form import Form, module_form, tensor_names
from netpurify.network.adapter.grid import HALF, HalfGrid
from netpurify.network.adapter.weights import Weights, part_of
from netpurify.network.comparison.comparing import Options, compare_tensors
from netpurify.network.comparison.records import TensorVerdict
from netpurify.network.fitting import column_floors, floors_of
from netpurify.network.policies.recovery import evidence
from netpurify.network.policies.recovery.frozen import restore_frozen
from netpurify.network.proof.matrices import Mask, State, covered_by, equal, form_of, matrix_of, same, values_of
from netpurify.network.records import Proof
from netpurify.network.rounded import judge


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
        half: Whether the layer is in half precision, where fits go through rounding and need not be minima.
    """

    name: str
    units: int
    certified: int
    recovered: int
    largest_gap: float
    kept: int
    unexplained: int
    half: bool = False


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
        frozen: Patterns of names of tensors that are said to be never trained. This is an assumption, not proven.
    """

    contaminated: State
    initial: State | None
    purified: State
    policy: str
    decays: Mapping[str, float]
    noise_floor: float | None = None
    frozen: tuple[str, ...] = ()


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
    settled = _never_trained(claim)
    checks = [_layer(name, blocks, settled, claim) for name, blocks in by_layer.items()]
    covered = covered_by([form_of(proof, contaminated) for proof in proofs], contaminated, purified)
    others = dict.fromkeys(name.rpartition(".")[0] for name in contaminated if not np.all(covered.get(name, False)))
    checks += [check for name in others if (check := _without_proof(name, covered, settled, claim)).unexplained]
    return ProofCheck(tuple(checks))


def _layer(name: str, proofs: Sequence[Proof], settled: set[str], claim: RepairClaim) -> LayerProofCheck:
    units = np.concatenate([proof.units for proof in proofs])
    if np.unique(units).size != units.size or name not in claim.decays or len({proof.groups for proof in proofs}) > 1:
        raise InputError(
            f"the proofs of {name!r} must name each unit once, agree on the number of groups, and have a decay"
        )
    if len({form_of(proof, claim.contaminated) for proof in proofs}) > 1:
        raise InputError(f"the proofs of {name!r} must agree on the form of the layer")
    before, after = (matrix_of(proofs[0], state, what) for state, what in
                     ((claim.contaminated, "contaminated weights"), (claim.purified, "purified weights")))  # fmt: skip
    unexplained = ~same(_array(after), _array(before))
    certificates, kept, recovered = [], 0, 0
    for proof in proofs:
        if proof.restored:
            explained = _restored(proof, settled, claim)
            unexplained[proof.group][:, proof.units - proof.group * unexplained.shape[2]] &= ~explained
            continue
        block = _check(proof, claim.decays[name], claim)
        index = np.ix_([proof.group], np.arange(unexplained.shape[1]), proof.units - proof.group * unexplained.shape[2])
        kept += int((block.altered & ~unexplained[index][0]).sum())
        unexplained[index] &= ~block.explained
        certificates.append(block.certificate)
        recovered += int(block.recovered.sum())
    return LayerProofCheck(
        name=name,
        units=sum(proof.units.size for proof in proofs if not proof.restored),
        certified=sum(int(certificate.certified.sum()) for certificate in certificates),
        recovered=recovered,
        largest_gap=max((float(one.relative_gap.max(initial=0.0)) for one in certificates), default=0.0),
        kept=kept,
        unexplained=int(unexplained.sum()),
        half=before.dtype in HALF,
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


def _weights(proof: Proof, claim: RepairClaim) -> tuple[Weights, NDArray[np.int64]]:
    """The weights of a proof's layer, and its units, counted within their group."""
    matrix = matrix_of(proof, claim.contaminated, "contaminated weights")
    initial = torch.zeros_like(matrix) if claim.initial is None else matrix_of(proof, claim.initial, "initial weights")
    matrix = _wide(matrix)  # so that initial weights in float32 are not rounded
    weights = Weights.of(matrix, initial.to(matrix), bias=0, grid=_grid(form_of(proof, claim.contaminated), claim))
    units = proof.units - proof.group * weights.units
    if proof.units.size and not 0 <= units.min() <= units.max() < weights.units:
        raise InputError(f"{proof.layer!r} has {weights.units} units in a group; the proof names others")
    return weights, units


def _restored(proof: Proof, settled: set[str], claim: RepairClaim) -> Mask:
    """Weights that may have been set back: those of units that were never trained, where they are the initial ones."""
    weights, units = _weights(proof, claim)
    after = matrix_of(proof, claim.purified, "purified weights")[proof.group]
    after = _array(after)[:, units]
    initial = weights.stored_initial[proof.group][:, units]
    if claim.initial is None or claim.policy != "recover":
        return np.zeros(after.shape, np.bool_)
    if settled.issuperset(form_of(proof, claim.contaminated).tensors):
        return after == initial
    return np.zeros(after.shape, np.bool_) if restore_frozen(part_of(weights, units)) is None else after == initial


def _check(proof: Proof, decay: float, claim: RepairClaim) -> _BlockCheck:
    weights, units = _weights(proof, claim)
    floor = floors_of(weights, proof.group, claim.noise_floor)[..., units]
    difference = weights.difference(proof.group, units, decay)
    design = lad.Design.prepare(proof.columns)
    certificate = lad.verify(design, difference, lad.Claim(proof.coefficients, proof.dual, column_floors(floor)))
    fitted = proof.columns @ proof.coefficients
    after = _array(matrix_of(proof, claim.purified, "purified weights")[proof.group])[:, units]
    predicted = weights.start(proof.group, units, decay) + fitted
    if weights.grid is None:
        fits = _near(after, predicted.astype(after.dtype))
        differs = ~(np.abs(difference - fitted) <= floor)
        recovered = evidence.proven(certificate, design, differs, np.isnan(difference), decayed=decay != 1.0)
    else:
        fits = _rounded(after, predicted, weights.grid)
        judgement = judge(design, difference, floor, fitted)
        differs, recovered = judgement.altered, judgement.proven | weights.untouched(proof.group, units)
    if claim.policy == "recover":
        return _BlockCheck(certificate, recovered, fits & differs & recovered, differs & recovered)
    return _BlockCheck(certificate, recovered, fits & certificate.certified, np.zeros_like(differs))


def _never_trained(claim: RepairClaim) -> set[str]:
    """Tensors that were never trained, by comparison with their initial values, so that differences are alterations."""
    if claim.policy != "recover" or claim.initial is None:
        return set()
    found = compare_tensors(claim.contaminated, claim.initial, Options(claim.frozen))
    return {one.name for one in found if one.verdict in (TensorVerdict.SAME, TensorVerdict.ALTERED)}


def _without_proof(name: str, covered: Mapping[str, Mask], settled: set[str], claim: RepairClaim) -> LayerProofCheck:
    """Check a module's tensors without a proof: they must be unchanged, or the initial ones if it was never trained."""
    unexplained = {
        tensor: ~equal(claim.purified[tensor], value) & ~covered.get(tensor, np.zeros((), np.bool_))
        for tensor, value in claim.contaminated.items()
        if tensor.rpartition(".")[0] == name
    }
    if any(mask.any() for mask in unexplained.values()) and _frozen(name, claim):
        for tensor in _tensors(name, claim.contaminated):
            initial = (claim.initial or {})[tensor].to(claim.contaminated[tensor])
            unexplained[tensor] &= ~equal(claim.purified[tensor], initial)
    for tensor in settled.intersection(unexplained):
        initial = (claim.initial or {})[tensor].to(claim.purified[tensor])
        unexplained[tensor] &= ~equal(claim.purified[tensor], initial)
    return LayerProofCheck(name, 0, 0, 0, 0.0, 0, sum(int(mask.sum()) for mask in unexplained.values()))


def _frozen(name: str, claim: RepairClaim) -> bool:
    names = _tensors(name, claim.contaminated)
    initial = claim.initial or {}
    if not all(tensor in initial and initial[tensor].shape == claim.contaminated[tensor].shape for tensor in names):
        return False
    if not names or claim.contaminated[names[0]].dim() < 2 or claim.policy != "recover":
        return False
    if len(names) > 1 and claim.contaminated[names[1]].shape != claim.contaminated[names[0]].shape[:1]:
        return False
    form = module_form(name, bias=len(names) > 1)
    given, start = (form.matrix(state) for state in (claim.contaminated, initial))
    given = _wide(given)
    return restore_frozen(Weights.of(given, start.to(given), bias=0, grid=_grid(form, claim))) is not None


def _grid(form: Form, claim: RepairClaim) -> HalfGrid | None:
    """In which dtypes a layer is stored, if in half precision."""
    came = tuple(value.dtype for value in values_of(form, claim.contaminated))
    base = () if claim.initial is None else tuple(value.dtype for value in values_of(form, claim.initial))
    return HalfGrid(came, base) if came and (claim.initial is None or len(base) == len(came)) else None


def _tensors(name: str, state: State) -> list[str]:
    return [tensor for tensor in tensor_names(name, bias=True) if tensor in state]


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
