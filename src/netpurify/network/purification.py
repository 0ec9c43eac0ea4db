"""The result of the policies that purify layer by layer."""

import time
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from netpurify.errors import InputError
from netpurify.network.adapter.reference import Skipped, resolve
from netpurify.network.agreement import Agreement, compare
from netpurify.network.comparison.others import restored_entries, standing_out, standing_out_of_layers
from netpurify.network.comparison.records import Coverage, TensorComparison, coverage_of
from netpurify.network.loop import layer_by_layer
from netpurify.network.policies.policy import LayerPolicy, Progress, settings_of
from netpurify.network.prepared import Network, peak_bytes, provenance
from netpurify.network.proof.verification import ProofCheck, RepairClaim, verify_proof
from netpurify.network.records import Altered, Grade, LayerRecord
from netpurify.network.shown import Shown


@dataclass(frozen=True, slots=True, repr=False)
class Purification(Shown):
    """The purified network and everything that is known about it. ``print`` shows what was found.

    Attributes:
        model: The purified network, in the mode in which the contaminated one came.
        policy: Name of the policy: ``"recover"``, ``"project"``, or that of another one that works layer by layer.
        layers: What was done to each layer, in the order of execution.
        compared: Every tensor that is not part of a layer, beside its initial value, if the policy compares them.
        compared_layers: Every tensor that is part of a layer, likewise.
        skipped: Everything else that has weights, with the reason.
        agreement: The two networks' outputs on the clean inputs.
        seconds: Time it took.
        peak_bytes: Most memory that this process has had so far; 0 where the system does not say.
        provenance: Digests of model, initial weights and data, versions, settings.
        contaminated: The contaminated weights.
        initial: The initial weights; ``None`` if there were none.
    """

    model: nn.Module
    policy: str
    layers: tuple[LayerRecord, ...]
    compared: tuple[TensorComparison, ...]
    compared_layers: tuple[TensorComparison, ...]
    skipped: tuple[Skipped, ...]
    agreement: Agreement
    seconds: float
    peak_bytes: int
    provenance: dict[str, Any]
    contaminated: dict[str, Tensor]
    initial: dict[str, Tensor] | None

    @property
    def altered(self) -> Altered:
        """All weights that were called altered: tensor, index, was, now, grade."""
        return Altered.join([*(layer.altered for layer in self.layers), self.restored])

    @property
    def restored(self) -> Altered:
        """Those of them that are in tensors which are not part of a layer, set back to their initial values."""
        return restored_entries(self.compared)

    @property
    def suspicious(self) -> Altered:
        """All weights that stand far out and were left as they are: tensor, index, was, now (the same), grade."""
        return Altered.join([*(layer.suspicious for layer in self.layers), self.outlying])

    @property
    def outlying(self) -> Altered:
        """Those of them that the comparison with the initial weights shows, and no fit has named."""
        told = [table for layer in self.layers for table in (layer.altered, layer.suspicious)]
        return Altered.join([standing_out_of_layers(self.compared_layers, told), standing_out(self.compared)])

    @property
    def coverage(self) -> Coverage:
        """How many weights of the network are known, compared only, and unknown."""
        layers = [(layer.fan_in * layer.units, layer.fan_in * layer.uncertain) for layer in self.layers]
        fitted = Coverage(sum(total - open_ones for total, open_ones in layers), sum(one for _, one in layers), 0)
        looked_at = fitted + coverage_of(self.compared)
        total = sum(value.numel() for value in self.contaminated.values())
        return looked_at + Coverage(0, 0, max(0, total - looked_at.total))

    def _brief(self) -> str:
        altered = sum(len(layer.altered) for layer in self.layers)
        return f"{self.policy!r}, layers={len(self.layers)}, altered={altered}, skipped={len(self.skipped)}"

    def count(self, grade: Grade) -> int:
        """Units of this grade, over all layers."""
        return sum(layer.count(grade) for layer in self.layers)

    def verify(self) -> ProofCheck:
        """Check every certificate again, with matrix products alone.

        A network is sound if every change in it is proven. Approximate repairs are not proven, and count as
        unexplained.

        Raises:
            InputError: The network was purified with ``proof=False``.
        """
        if not self.provenance["settings"]["proof"]:
            raise InputError("verify needs the coefficients and duals; purify with proof=True")
        proofs = [proof for layer in self.layers for proof in layer.proofs]
        decays = {layer.name: layer.decay for layer in self.layers}
        floor = self.provenance["settings"]["noise_floor"]
        frozen = tuple(self.provenance["settings"].get("frozen", ()))
        claim = RepairClaim(self.contaminated, self.initial, resolve(self.model), self.policy, decays, floor, frozen)
        return verify_proof(proofs, claim)


def purify_layers(
    network: Network,
    policy: LayerPolicy,
    progress: Progress | None = None,
    *,
    before: list[Tensor | None] | None = None,
    compared: tuple[TensorComparison, ...] = (),
) -> Purification:
    """Carry out a policy that works layer by layer, and gather the result.

    Args:
        network: The network.
        policy: The policy.
        progress: Called before each layer and at the end.
        before: The outputs of the network as it came; ``None`` if nothing was changed so far, and empty if outputs are
            not to be compared.
        compared: What was found in tensors that are not part of a layer.

    Raises:
        InputError: No layer can be purified.
    """
    begun = time.perf_counter()
    if not coverage_of(compared).examined:
        network.require_layers("purification")
    before = network.outputs() if before is None else before
    records = []
    for done in layer_by_layer(network, policy, progress):
        fitted = done.regressions
        spans, designs = ((), ()) if fitted is None else (fitted.spans, fitted.designs)
        records.append(done.outcome.record(done.layer, spans, designs, done.seconds))
    agreement = compare(before, network.outputs() if before else [])
    model = network.as_it_came(network.model)
    return Purification(
        model=model,
        policy=policy.name,
        layers=tuple(records),
        compared=compared,
        compared_layers=network.compared_layers,
        skipped=tuple(network.skipped),
        agreement=agreement,
        seconds=time.perf_counter() - begun,
        peak_bytes=peak_bytes(),
        provenance=provenance(network, model, settings_of(policy, network.chosen)),
        contaminated=network.contaminated,
        initial=network.initial,
    )
