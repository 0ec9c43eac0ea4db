"""Purify a network: layer by layer in the order of execution, through what is already purified."""

import sys
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Literal

from torch import Tensor, nn

from netpurify import checkpoint
from netpurify.clusters import check_engine
from netpurify.errors import InputError
from netpurify.lad.blas import one_thread
from netpurify.network import project as projection
from netpurify.network.agreement import Agreement, compare
from netpurify.network.capture import Data, Forward, Runner, digest_of_data
from netpurify.network.layer_work import LayerWork
from netpurify.network.recheck import Recheck, recheck
from netpurify.network.records import Altered, Grade, LayerRecord
from netpurify.network.recover import Options
from netpurify.network.reference import (
    Initial,
    Skipped,
    differs,
    duplicate,
    mark_changed,
    reference_matrix,
    require_layers,
    resolve,
    sort_layers,
    ties,
    unreached,
)

Policy = Literal["recover", "project"]
Progress = Callable[[str, int, int], None]
"""Called with (name of the layer, layers done, layers in all)."""


@dataclass(frozen=True, slots=True)
class Purification:
    """The purified network and everything that is known about it.

    Attributes:
        model: The purified network, in the mode in which the contaminated one came.
        policy: ``"recover"`` or ``"project"``.
        layers: What was done to each layer, in the order of execution.
        skipped: Everything else that has weights, with the reason.
        agreement: The two networks' outputs on the clean inputs.
        seconds: Time it took.
        peak_bytes: Most memory that this process has had so far; 0 where the system does not say.
        provenance: Digests of model, initial weights and data, versions, settings.
        contaminated: The contaminated weights.
        initial: The initial weights; ``None`` if there were none.
    """

    model: nn.Module
    policy: Policy
    layers: tuple[LayerRecord, ...]
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
        return Altered.join([layer.altered for layer in self.layers])

    @property
    def suspicious(self) -> Altered:
        """All weights that stand far out and were left as they are: tensor, index, was, now (the same), grade."""
        return Altered.join([layer.suspicious for layer in self.layers])

    def count(self, grade: Grade) -> int:
        """Units of this grade, over all layers."""
        return sum(layer.count(grade) for layer in self.layers)

    def verify(self) -> Recheck:
        """Check every certificate again, with matrix products alone.

        Sound is a network in which every change is proven; approximate repairs are not, and count as unexplained.

        Raises:
            InputError: The network was purified with ``proof=False``.
        """
        if not self.provenance["settings"]["proof"]:
            raise InputError("verify needs the coefficients and duals; purify with proof=True")
        proofs = [proof for layer in self.layers for proof in layer.proofs]
        decays = {layer.name: layer.decay for layer in self.layers}
        floor = self.provenance["settings"]["noise_floor"]
        return recheck(
            proofs, decays, self.contaminated, self.initial, resolve(self.model), self.policy, noise_floor=floor
        )


def repair(
    model: nn.Module,
    data: Data,
    *,
    initial: Initial | None,
    policy: Policy,
    layers: Collection[str] | None,
    rank: float | None,
    forward: Forward | None,
    noise_floor: float | None,
    decay: float | None,
    proof: bool,
    engine: str | None,
    jobs: int | None,
    batch: int,
    progress: Progress | None,
) -> Purification:
    """``purify`` by the policies *recover* and *project*, where each option is told of."""
    begun = time.perf_counter()
    _check(policy, initial, rank, layers, batch)
    _check_fits(policy, noise_floor, decay, engine, jobs)
    copy = duplicate(model)
    modes = {name: module.training for name, module in copy.named_modules()}
    reference = None if initial is None else resolve(initial)
    if isinstance(initial, nn.Module | Mapping) and reference is not None:  # the caller may train it on
        reference = {name: value.clone() for name, value in reference.items()}
    chosen = None if layers is None else list(layers)
    known, skipped = sort_layers(copy, reference, chosen, ties(model))
    require_layers(known, skipped, "purification")
    if policy == "recover" and chosen is None and reference is not None:
        skipped = mark_changed(copy, known, skipped, reference)
    contaminated = {name: value.clone() for name, value in resolve(copy).items()}
    digest = digest_of_data(data)
    runner = Runner(copy, data, forward=forward, batch=batch)
    before = _outputs(runner)
    calls = runner.order(known)
    skipped += [unreached(it) for it in known if it.name not in calls]
    ordered = [layer for name in calls for layer in known if layer.name == name]
    require_layers(ordered, skipped, "purification")
    modules = dict(copy.named_modules())
    unknown = any(differs(modules[it.name], it.name, reference) for it in skipped)
    options = Options(noise_floor, decay, proof, engine, jobs)
    records: list[LayerRecord] = []
    works: list[LayerWork] = []
    with one_thread():
        for number, layer in enumerate(ordered):
            if progress is not None:
                progress(layer.name, number, len(ordered))
            doubt = unknown or any((record.grade != Grade.RECOVERED).any() or record.unjudged for record in records)
            work = LayerWork(layer, reference_matrix(layer, reference), runner, calls[layer.name], options, doubt=doubt)
            records.append(work.recover() if policy == "recover" else work.project(rank))
            works.append(work)
        for work in works:
            work.settle()
    if progress is not None:
        progress("", len(ordered), len(ordered))
    agreement = compare(before, _outputs(runner))
    for name, module in copy.named_modules():
        module.training = modes[name]
    settings = {"policy": policy, "layers": chosen, "rank": rank, "noise_floor": noise_floor, "decay": decay,
                "proof": proof}  # fmt: skip
    return Purification(
        model=copy,
        policy=policy,
        layers=tuple(records),
        skipped=tuple(skipped),
        agreement=agreement,
        seconds=time.perf_counter() - begun,
        peak_bytes=_peak(),
        provenance={
            "model": checkpoint.digest(contaminated),
            "initial": None if reference is None else checkpoint.digest(reference),
            "purified": checkpoint.digest(resolve(copy)),
            "data": digest,
            "versions": {name: version(name) for name in ("netpurify", "torch", "numpy", "scipy", "numba")},
            "settings": settings,
        },
        contaminated=contaminated,
        initial=reference,
    )


def _outputs(runner: Runner) -> list[Tensor | None]:
    return [None if found is None else found.detach().cpu() for found in runner.outputs()]


def _check(policy: str, initial: object, rank: float | None, layers: object, batch: int) -> None:
    if policy not in ("recover", "project"):
        raise InputError(f'policy must be "recover", "project" or "defend"; got {policy!r}')
    if initial is None and policy == "recover":
        raise InputError(
            'recover needs the initial weights; give initial=, or use policy="project", which without them fits the '
            'weights themselves, or policy="defend" for a deep network that was poisoned'
        )
    if rank is not None and policy == "recover":
        raise InputError('rank is an option of policy="project"; recover takes all that the clean inputs span')
    projection.check_rank(rank)
    if isinstance(layers, str):
        raise InputError(f"layers must be a collection of names; got the single string {layers!r}; give [{layers!r}]")
    if batch < 1:
        raise InputError(f"batch must be at least 1; got {batch}")


def _check_fits(policy: str, floor: float | None, decay: float | None, engine: str | None, jobs: int | None) -> None:
    if floor is not None and not 0.0 <= floor < float("inf"):
        raise InputError(f"noise_floor must be None or a finite number, at least 0; got {floor}")
    if decay is not None and policy == "project":
        raise InputError('decay is an option of policy="recover"; project starts from the initial weights as they are')
    if decay is not None and not 0.0 < decay <= 1.0:
        raise InputError(f"decay must be None or a number above 0 and up to 1; got {decay}")
    if engine is not None:
        check_engine(engine, jobs)
    elif jobs is not None:
        raise InputError('jobs is an option of engine; without one all cores work; give engine="processes"')


def _peak() -> int:
    if sys.platform == "win32":  # which does not have the module
        return 0
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else used * 1024
