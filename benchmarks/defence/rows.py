"""One row of the defences' table: train a network, or let a defence repair it and judge what comes out.

A module of its own, since worker processes find what they keep from row to row by its name.
"""

import ctypes
import time
from functools import cache
from pathlib import Path

import torch
from torch import Tensor, nn

from baselines import BASELINES, AdversarialPruning, Baseline, FinePruning, Finetuning
from netpurify.contaminate import accuracy, measure
from netpurify.findings import TableRow
from netpurify.threads import one_torch_thread
from ours import Defend
from scenarios import FASTEST, SETTINGS, TESTED, Scenario, images_of

COUNTS = (50, 100, 500, 1000)
BATCH = 250
"""Test images that go through a network at once."""
SHORTER = Finetuning(epochs=20)
"""A fifth of the published epochs, as ANP has a tenth of its iterations: five and ten times less to compute."""
SHORTENED: dict[str, Baseline] = {
    "fine-tuning": SHORTER,
    "fine-pruning": FinePruning(tuning=SHORTER),
    "ANP": AdversarialPruning(iterations=200),
}
DEFENCES: dict[str, Baseline] = {one.name: SHORTENED.get(one.name, one) for one in (*BASELINES, Defend())}
PUBLISHED: dict[str, Baseline] = {"fine-tuning, 100 epochs": Finetuning(), "fine-pruning, 100 epochs": FinePruning()}
"""What the shortened ones would do with all their epochs."""


def trained(settings: TableRow, seed: int, *, folder: str) -> list[TableRow]:
    """Train one network, or find that it is there."""
    scenario = Scenario(str(settings["network"]), str(settings["attack"]), seed)
    found = scenario.train(Path(folder))
    before = _classes(found.model, tested(scenario.network)[0])
    return [judge(scenario, found.model, before) | {"training_seconds": found.seconds}]


def defended(settings: TableRow, seed: int, *, folder: str) -> list[TableRow]:
    """Let one defence repair one network, and judge what comes out."""
    scenario = Scenario(str(settings["network"]), str(settings["attack"]), seed)
    defence = (DEFENCES | PUBLISHED)[str(settings["defence"])]
    with one_torch_thread():
        network, before = _network(scenario, folder)
        images, labels = scenario.clean(int(settings["images"] or COUNTS[0]))
        initial = scenario.initial() if defence.initial else None
        start = _memory_from_now()
        begun = time.perf_counter()
        repaired = defence.repair(network, images, labels, initial=initial, seed=seed)
        seconds = time.perf_counter() - begun
        megabytes = max(0.0, _memory("VmHWM") - start) / 1024
        found = judge(scenario, repaired, before)
    return [found | {"labels": defence.labels, "repair_seconds": seconds, "megabytes": megabytes}]


@cache
def _network(scenario: Scenario, folder: str) -> tuple[nn.Module, Tensor]:
    """A trained network and its classes of the test images, once in each worker: its digest is that of all its data."""
    network = scenario.train(Path(folder)).model
    return network, _classes(network, tested(scenario.network)[0])


@cache
def tested(network: str) -> tuple[Tensor, Tensor]:
    """The test images that a network is judged on, and their labels."""
    images, labels = images_of(SETTINGS[network].data, "test")
    chosen = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))[:TESTED]
    return images[chosen].contiguous(memory_format=FASTEST), labels[chosen]


def judge(scenario: Scenario, repaired: nn.Module, before: Tensor) -> TableRow:
    """Clean accuracy, what the trigger does, and how many test images change the class that they had before."""
    images, labels = tested(scenario.network)
    classes = []

    def network(batch: Tensor) -> Tensor:
        scores = repaired(batch)
        classes.append(scores.argmax(1))
        return scores

    rates: TableRow = {"asr": None, "ra": None}
    if scenario.trigger is None:
        rates["accuracy"] = accuracy(network, images, labels, batch=BATCH)
    else:
        found = measure(network, images, labels, trigger=scenario.trigger, target=scenario.target, batch=BATCH)
        rates = {"accuracy": found.accuracy, "asr": found.asr, "ra": found.ra}
    now = torch.cat(classes)[: len(images)]  # clean images go first
    changed = (now != before).double().mean().item()
    return {"held_out": scenario.held_out, "target": scenario.target, "disagreement": changed} | rates


def _classes(network: nn.Module, images: Tensor) -> Tensor:
    with torch.no_grad():
        return torch.cat([network(part).argmax(1) for part in images.split(BATCH)])


def _memory_from_now() -> float:
    """Kilobytes of this process, whose largest is counted from now on; where it cannot be, peaks are those so far.

    What earlier rows freed goes back to the system first, or this one would use it again and seem to need nothing.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    start = _memory("VmRSS")
    if Path("/proc/self/clear_refs").exists():
        Path("/proc/self/clear_refs").write_text("5")
    return start


def _memory(field: str) -> float:
    """Kilobytes of this process, by the system's name for them; NaN where it does not say."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((float(line.split()[1]) for line in lines if line.startswith(f"{field}:")), float("nan"))
