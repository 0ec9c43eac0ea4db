"""One row of the table of defences: train a network, or let a defence repair it, and judge the result.

A module of its own, because worker processes find the networks that they keep from row to row by its name.
"""

import time
from functools import cache
from pathlib import Path

import torch
from torch import Tensor, nn

from netpurify.contaminate import accuracy, measure
from netpurify.experiments.studies.defence.baseline import CleanData
from netpurify.experiments.studies.defence.defences import DEFENCES, PUBLISHED
from netpurify.experiments.studies.defence.memory import measured_memory
from netpurify.experiments.studies.defence.scenarios import FASTEST, SETTINGS, TESTED, Scenario, images_of
from netpurify.findings import TableRow
from netpurify.threads import one_torch_thread

COUNTS = (50, 100, 500, 1000)
"""Numbers of clean images."""
BATCH = 250
"""Test images that go through a network at once."""


def trained(settings: TableRow, seed: int, *, folder: str) -> list[TableRow]:
    """Train one network, or take it from the folder, and judge it as it is."""
    scenario = Scenario(str(settings["network"]), str(settings["attack"]), seed)
    training = scenario.train(Path(folder))
    before = classes_of(training.model, tested(scenario.network)[0])
    return [judge(scenario, training.model, before) | {"training_seconds": training.seconds}]


def defended(settings: TableRow, seed: int, *, folder: str) -> list[TableRow]:
    """Let one defence repair one network, and judge the repaired network."""
    scenario = Scenario(str(settings["network"]), str(settings["attack"]), seed)
    defence = (DEFENCES | PUBLISHED)[str(settings["defence"])]
    with one_torch_thread():
        network, before = _network(scenario, folder)
        images, labels = scenario.clean(int(settings["images"] or COUNTS[0]))
        clean = CleanData(images, labels, scenario.initial() if defence.initial else None, seed)
        with measured_memory() as memory:
            begun = time.perf_counter()
            repaired = defence.repair(network, clean)
            seconds = time.perf_counter() - begun
        rates = judge(scenario, repaired, before)
    return [rates | {"labels": defence.labels, "repair_seconds": seconds, "megabytes": memory.megabytes}]


@cache
def _network(scenario: Scenario, folder: str) -> tuple[nn.Module, Tensor]:
    """A trained network and its classes of the test images, once in each worker: its digest covers all its data."""
    network = scenario.train(Path(folder)).model
    return network, classes_of(network, tested(scenario.network)[0])


@cache
def tested(network: str) -> tuple[Tensor, Tensor]:
    """The test images on which a network is judged, and their labels."""
    images, labels = images_of(SETTINGS[network].data, "test")
    chosen = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))[:TESTED]
    return images[chosen].contiguous(memory_format=FASTEST), labels[chosen]


def judge(scenario: Scenario, repaired: nn.Module, before: Tensor) -> TableRow:
    """Clean accuracy, attack success, robust accuracy, and the share of test images whose class changed."""
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
        attack = measure(network, images, labels, trigger=scenario.trigger, target=scenario.target, batch=BATCH)
        rates = {"accuracy": attack.accuracy, "asr": attack.asr, "ra": attack.ra}
    now = torch.cat(classes)[: len(images)]  # clean images go first
    changed = (now != before).double().mean().item()
    return {"held_out": scenario.held_out, "target": scenario.target, "disagreement": changed} | rates


def classes_of(network: nn.Module, images: Tensor) -> Tensor:
    """The classes that a network gives to images, [n]."""
    with torch.no_grad():
        return torch.cat([network(batch).argmax(1) for batch in images.split(BATCH)])
