"""One trial of the study of healthy networks: train a network, and purify it in all the ways that are wanted."""

import copy
import time
import zlib
from collections.abc import Callable

import torch
from torch import nn

import netpurify
from netpurify.contaminate import BitFlip, Law, Normal, SignFlip, contaminate
from netpurify.experiments.studies.healthy.networks import CLEAN, HealthyCase, HealthyNetwork, make
from netpurify.findings import TableRow
from netpurify.network import Altered, Grade, Purification

LAWS: dict[str, tuple[Callable[[str], Law], float]] = {
    "N(0, 1) added, 1 %": (lambda _: Normal(0.0, 1.0), 0.01),
    "N(0, 1) added, 10 %": (lambda _: Normal(0.0, 1.0), 0.1),
    "any bit flipped, 1 %": (lambda _: BitFlip(), 0.01),
    "any bit flipped, 10 %": (lambda _: BitFlip(), 0.1),
    "highest exponent bit flipped, 1 %": (lambda dtype: BitFlip(30 if dtype == "float32" else 62), 0.01),
    "sign flipped, 1 %": (lambda _: SignFlip(), 0.01),
}
"""How weights are altered: the law for a dtype, and the share of altered weights."""
ALTERED_EVERY = 6
"""One network in so many is altered too."""
Entry = tuple[str, int]


def healthy_trial(settings: TableRow, _: int) -> list[TableRow]:
    """One row for each purification of the network: healthy with each kind of clean inputs, then altered.

    The seed of the trial is not used: that of the network is a setting, so that a table may have seeds 0 and 2.
    """
    case = HealthyCase(
        str(settings["kind"]),
        str(settings["optimiser"]),
        int(settings["steps"] or 0),
        str(settings["dtype"]),
        int(settings["network_seed"] or 0),
    )
    trained = make(case)
    if not all(bool(value.isfinite().all()) for value in trained.network.state_dict().values()):
        return [{"clean": clean, "law": law, "diverged": True, "refused": None} for clean, law in purifications(case)]
    return [
        {"clean": clean, "law": law, "diverged": False} | purified(case, trained, clean, law)
        for clean, law in purifications(case)
    ]


def purifications(case: HealthyCase) -> list[tuple[str, str | None]]:
    """Clean inputs and law of each purification of a case; the law is ``None`` for the healthy network."""
    chosen = zlib.crc32(case.name.encode()) % ALTERED_EVERY == 0
    return [*((clean, None) for clean in CLEAN), *((CLEAN[0], law) for law in (LAWS if chosen else ()))]


def purified(case: HealthyCase, trained: HealthyNetwork, clean: str, law: str | None) -> TableRow:
    """Purify the network, altered if a law is given, and count its weights."""
    dirty, truth = (trained.network, set()) if law is None else altered(trained.network, law, case)
    begun = time.perf_counter()
    try:
        result = netpurify.purify(dirty, trained.clean[clean], policy=netpurify.Recover(trained.initial, proof=False))
    except netpurify.InputError as error:  # flips can make weights so small that a layer's inputs have no squares
        if law is None:
            raise
        return {"refused": str(error)}
    return {"refused": None, "purify_seconds": time.perf_counter() - begun} | counts(result, truth)


def altered(network: nn.Module, law: str, case: HealthyCase) -> tuple[nn.Module, set[Entry]]:
    """A copy with some weights of its Linear and Conv layers altered, and the altered entries."""
    names = [
        f"{name}.{key}"
        for name, module in network.named_modules()
        if isinstance(module, nn.Linear | nn.Conv2d)
        for key, _ in module.named_parameters(recurse=False)
    ]
    generator = torch.Generator().manual_seed(zlib.crc32(f"{case.name}, {law}".encode()))
    law_of, share = LAWS[law]
    contaminated = contaminate(network.state_dict(), law_of(case.dtype), share=share, generator=generator, names=names)
    dirty = copy.deepcopy(network)
    dirty.load_state_dict(contaminated.state)
    masks = contaminated.altered.items()
    return dirty, {(name, int(index)) for name, mask in masks for index in mask.reshape(-1).nonzero()}


def counts(result: Purification, truth: set[Entry]) -> TableRow:
    """Numbers of weights: in all, altered, replaced and suspicious, and those of them in which nothing was wrong."""
    replaced, suspicious = entries(result.altered), entries(result.suspicious)
    recovered = {
        entry for entry, grade in zip(replaced, result.altered.grade.tolist(), strict=True) if grade == Grade.RECOVERED
    }
    return {
        "weights": sum(layer.fan_in * layer.units for layer in result.layers),
        "altered": len(truth),
        "replaced": len(truth.intersection(replaced)),
        "healthy_replaced": len(set(replaced) - truth),
        "healthy_recovered": len(recovered - truth),
        "suspicious": len(truth.intersection(suspicious)),
        "healthy_suspicious": len(set(suspicious) - truth),
    }


def entries(table: Altered) -> list[Entry]:
    """Tensor and index of each entry of a table of weights."""
    return [(table.names[tensor], int(index)) for tensor, index in zip(table.tensor, table.index, strict=True)]
