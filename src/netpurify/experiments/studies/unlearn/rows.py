"""Rows of the tables: one hunt, or one repair and its judgement.

A module of its own, because worker processes find the networks that they keep from row to row by its name.
"""

import time
from functools import cache
from pathlib import Path

from torch import nn

import netpurify
from netpurify.contaminate import Rates, accuracy, measure
from netpurify.experiments.studies.defence.baseline import CleanData
from netpurify.experiments.studies.defence.memory import measured_memory
from netpurify.experiments.studies.defence.rows import BATCH, tested
from netpurify.experiments.studies.unlearn.methods import METHODS
from netpurify.experiments.studies.unlearn.scenarios import UnlearnScenario
from netpurify.findings import TableRow
from netpurify.threads import one_torch_thread

COUNT = 500
"""Clean images of a hunt."""


def hunted(settings: TableRow, seed: int, *, folder: str) -> list[TableRow]:
    """Hunt in one network: one row for each family."""
    scenario = scenario_of(settings, seed)
    with one_torch_thread():
        network = network_of(scenario, folder)
        images, _ = scenario.clean(COUNT)
        begun = time.process_time()
        found = netpurify.hunt(network, images, seed=int(settings["hunt"] or 0))
        seconds = time.process_time() - begun
    return [
        {
            "set_aside": scenario.set_aside,
            "target": scenario.target,
            "family": one.family,
            "class": one.best.target,
            "success": one.best.success,
            "runner_up": one.runner_up,
            "margin": one.margin,
            "family_seconds": one.seconds,
            "hunt_seconds": seconds,
        }
        for one in found.families
    ]


def repaired(settings: TableRow, seed: int, *, folder: str) -> list[TableRow]:
    """Let one method repair one network, and judge the result."""
    scenario = scenario_of(settings, seed)
    method = METHODS[str(settings["method"])]
    with one_torch_thread():
        network = network_of(scenario, folder)
        images, labels = scenario.clean(int(settings["images"] or COUNT))
        clean = CleanData(images, labels, None, int(settings["hunt"] or 0), augmented=True)
        with measured_memory() as memory:
            begun = time.process_time()
            known, mended = _repair(str(settings["method"]), network, clean)
            seconds = time.process_time() - begun
        row = judge(scenario, mended) | known
    floor = floor_of(scenario, folder)
    return [row | {"floor": floor, "labels": method.labels, "repair_seconds": seconds, "megabytes": memory.megabytes}]


def _repair(name: str, network: nn.Module, clean: CleanData) -> tuple[TableRow, nn.Module]:
    """The repaired network, and what ``Unlearn`` itself says about it."""
    if name != "unlearn":
        return dict.fromkeys(("suspects", "families", "bound", "after")), METHODS[name].repair(network, clean)
    result = netpurify.purify(network, clean.images, policy=netpurify.Unlearn(seed=clean.seed))
    after = None if result.after is None else max(family.margin for family in result.after.families)
    known: TableRow = {
        "suspects": " ".join(map(str, result.before.goals)),
        "families": " ".join(family.family for family in result.before.families if family.suspect),
        "bound": result.bound,
        "after": after,
    }
    return known, result.model


def scenario_of(settings: TableRow, seed: int) -> UnlearnScenario:
    """The network and the attack of a cell."""
    return UnlearnScenario(str(settings["network"]), str(settings["attack"]), seed)


@cache
def network_of(scenario: UnlearnScenario, folder: str) -> nn.Module:
    """The trained network, once in each worker."""
    return scenario.train(Path(folder)).model


@cache
def floor_of(scenario: UnlearnScenario, folder: str) -> float | None:
    """What the same trigger does to the healthy network of this kind: its attack success."""
    if scenario.trigger is None:
        return None
    healthy = network_of(UnlearnScenario(scenario.network, "none", scenario.seed), folder)
    return _rates(scenario, healthy).asr


def _rates(scenario: UnlearnScenario, network: nn.Module) -> Rates:
    images, labels = tested(scenario.network)
    trigger = scenario.trigger
    if trigger is None:
        share = accuracy(network, images, labels, batch=BATCH)
        return Rates(share, float("nan"), float("nan"), float("nan"))
    return measure(network, images, labels, trigger=trigger, target=scenario.target, batch=BATCH)


def judge(scenario: UnlearnScenario, network: nn.Module) -> TableRow:
    """Clean accuracy, attack success and robust accuracy on test images."""
    rates = _rates(scenario, network)
    attacked = scenario.trigger is not None
    return {
        "set_aside": scenario.set_aside,
        "target": scenario.target,
        "accuracy": rates.accuracy,
        "asr": rates.asr if attacked else None,
        "ra": rates.ra if attacked else None,
    }
