"""Second opinions: does anything tell, without the trigger, how much of a backdoor a repair has left?

Repairs of every quality are made of one repair: the weights go part of the way from the contaminated to the repaired
ones. A repair that is not trained against the family that found the backdoor is added. Each indicator is then set
beside the attack success that the real trigger still has, which only a study knows.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import torch
from torch import Tensor, nn
from torch.nn import functional

import netpurify
from netpurify.experiments.studies.unlearn.rows import floor_of, judge, network_of
from netpurify.experiments.studies.unlearn.scenarios import UnlearnScenario
from netpurify.findings import TableRow
from netpurify.network import FoundTrigger, Hunt
from netpurify.threads import one_torch_thread

COUNT, HELD_OUT = 500, 5
"""Clean images, and the one in how many that no repair sees, and on which indicators are measured."""
_TEACHING = 0.03
"""Rate at which a network is taught to follow triggers again; the norm of a slope is at most 1."""
WAYS = (0.25, 0.5, 0.75, 1.0)
"""How far the weights go from the contaminated to the repaired ones."""
RADII = tuple(0.3 * 2.0 ** (place / 2) for place in range(12))
"""Sizes of universal patterns that are tried, as norms of the change of an image in [0, 1]; from 0.3 to 13.6."""
INDICATORS = {
    "change": "norm of the change of the weights, over the norm of the weights; knows nothing of any backdoor",
    "disagreement": "share of held-out images that change their class; knows nothing of any backdoor either",
    "alarm": "highest alarm of a family that points to the class, in the hunt after the repair",
    "success": "highest success towards the class of any family in that hunt",
    "held_back": "the same of families that the repair was not trained against",
    "size": "norm of the smallest free universal pattern that leads half of the images to the class, over the median "
    "of all classes; a backdoor makes it small",
    "pull": "by how much the triggers that were found raise the log-odds of the class",
    "direction": "share of the change of the last layer's inputs under these triggers that lies along one direction",
    "relearning": "success of these triggers after five steps of training the network to follow them again",
}
"""What is measured of a repaired network, in words."""


@dataclass(frozen=True, slots=True)
class Suspicion:
    """What is known of a backdoor before the repair.

    Attributes:
        target: The suspect class.
        triggers: The triggers that lead to it, of suspect families.
    """

    target: int
    triggers: tuple[FoundTrigger, ...]


@dataclass(frozen=True, slots=True)
class Repair:
    """A repaired network.

    Attributes:
        name: How it was repaired.
        way: How far the weights go from the contaminated to the repaired ones.
        model: The network.
        trained: Names of the families that the repair was trained against.
    """

    name: str
    way: float
    model: nn.Module
    trained: frozenset[str]


def second_opinions(settings: TableRow, seed: int, *, folder: str) -> list[TableRow]:
    """Repairs of one network, the indicators of each of them, and what the real trigger still does."""
    scenario = UnlearnScenario(str(settings["network"]), str(settings["attack"]), seed)
    with one_torch_thread():
        network = network_of(scenario, folder)
        every, _ = scenario.clean(COUNT)
        chosen = torch.arange(COUNT) % HELD_OUT == 0
        held, images = every[chosen], every[~chosen]
        before = netpurify.hunt(network, images, seed=seed)
        suspicion = _suspicion(before)
        rows, floor = [], floor_of(scenario, folder)
        for repair in _repairs(network, images, before, seed):
            after = netpurify.hunt(repair.model, every, seed=seed + 1000)
            measured = measure_indicators(network, repair, held, after, suspicion)
            known: TableRow = {"repair": repair.name, "way": repair.way, "floor": floor}
            rows.append(known | judge(scenario, repair.model) | measured)
    return rows


def _repairs(network: nn.Module, images: Tensor, before: Hunt, seed: int) -> list[Repair]:
    """The network as it came and, if something is suspect, repairs of it; none that has changed nothing."""
    found = [Repair("nothing", 0.0, network, frozenset())]
    if not before.suspects:
        return found
    strongest = before.suspects[0].family
    others = [one.family for one in before.families if one.family != strongest]
    for name, families in (("unlearn", None), ("without the strongest family", others)):
        result = netpurify.purify(network, images, policy=netpurify.Unlearn(families=families, seed=seed))
        if result.changed:
            trained = frozenset(one.family for one in result.before.families if one.suspect)
            ways = WAYS if families is None else (1.0,)
            found += [Repair(name, way, part_of_the_way(network, result.model, way), trained) for way in ways]
    return found


def _suspicion(before: Hunt) -> Suspicion:
    """The strongest suspect; if there is none, the class to which some trigger leads best all the same."""
    leading = before.suspects or before.found[:1]
    target = leading[0].target
    return Suspicion(target, tuple(one for one in leading if one.target == target))


def part_of_the_way(start: nn.Module, end: nn.Module, way: float) -> nn.Module:
    """A network whose weights lie between those of two others: the first for 0, the second for 1."""
    made = copy.deepcopy(start)
    with torch.no_grad():
        for value, goal in zip(made.parameters(), end.parameters(), strict=True):
            value.lerp_(goal, way)
    return made


def measure_indicators(
    before: nn.Module, repair: Repair, images: Tensor, after: Hunt, suspicion: Suspicion
) -> TableRow:
    """All indicators of a repaired network, on images that no repair has seen."""
    network, target = repair.model, suspicion.target
    towards = {one.family: one.successes(after.classes)[target] or 0.0 for one in after.families}
    untrained = [value for name, value in towards.items() if name not in repair.trained]
    pointing = [one.alarm for one in after.families if one.best.target == target]
    changes = [one.on(images) for one in suspicion.triggers]
    return {
        "found_after": bool(after.suspects),
        "change": change(before, network),
        "disagreement": disagreement(before, network, images),
        "alarm": max(pointing, default=0.0),
        "success": max(towards.values()),
        "held_back": max(untrained, default=0.0),
        "size": relative_size(network, images, target),
        "pull": pull(network, images, changes, target),
        "direction": direction(network, images, changes),
        "relearning": relearning(network, images, suspicion.triggers, target),
    }


def change(before: nn.Module, after: nn.Module) -> float:
    """Norm of the change of all weights, over their norm before."""
    pairs = [
        (one.detach().double(), other.detach().double())
        for one, other in zip(before.parameters(), after.parameters(), strict=True)
    ]
    moved = sum(float((other - one).square().sum()) for one, other in pairs)
    return (moved / sum(float(one.square().sum()) for one, _ in pairs)) ** 0.5


def disagreement(before: nn.Module, after: nn.Module, images: Tensor) -> float:
    """Share of images that two networks give different classes."""
    with torch.no_grad():
        return float((before(images).argmax(dim=1) != after(images).argmax(dim=1)).double().mean())


def pull(network: nn.Module, images: Tensor, changes: Sequence[Tensor], target: int) -> float:
    """Mean rise of the log-odds of a class from images of other classes to changed ones, for the strongest change."""
    with torch.no_grad():
        scores = network(images)
        others = scores.argmax(dim=1) != target
        before = _log_odds(scores[others], target)
        return max(float((_log_odds(network(changed[others]), target) - before).mean()) for changed in changes)


def _log_odds(scores: Tensor, target: int) -> Tensor:
    others = torch.cat([scores[:, :target], scores[:, target + 1 :]], dim=1)
    return scores[:, target] - others.logsumexp(dim=1)


def direction(network: nn.Module, images: Tensor, changes: Sequence[Tensor]) -> float:
    """Largest share of the energy of the shifts of the last layer's inputs that one direction holds."""
    last = [module for module in network.modules() if isinstance(module, nn.Linear)][-1]
    seen: list[Tensor] = []
    handle = last.register_forward_pre_hook(lambda _, given: seen.append(given[0].detach().double()))
    try:
        with torch.no_grad():
            for some in (images, *changes):
                network(some)
    finally:
        handle.remove()
    shares = []
    for features in seen[1:]:
        energies = torch.linalg.svdvals(features - seen[0]).square()
        shares.append(float(energies[0] / energies.sum()) if float(energies.sum()) > 0.0 else 0.0)
    return max(shares)


def relearning(network: nn.Module, images: Tensor, triggers: Sequence[FoundTrigger], target: int) -> float:
    """Success of triggers on every other image, after five steps that train the network on the rest to follow them."""
    student = copy.deepcopy(network).requires_grad_()
    taught, judged = images[::2], images[1::2]
    lessons = torch.cat([one.on(taught) for one in triggers])
    goal = torch.full((len(lessons),), target)
    optimiser = torch.optim.SGD(student.parameters(), lr=_TEACHING)
    for _ in range(5):
        optimiser.zero_grad()
        functional.cross_entropy(student(lessons), goal).backward()
        nn.utils.clip_grad_norm_(student.parameters(), 1.0)
        optimiser.step()
    with torch.no_grad():
        others = judged[network(judged).argmax(dim=1) != target]
        hits = [(student(one.on(others)).argmax(dim=1) == target).double().mean() for one in triggers]
    return float(torch.stack(hits).max())


def relative_size(network: nn.Module, images: Tensor, target: int) -> float:
    """Smallest universal pattern that leads half of the images to a class, over the median of all classes."""
    with torch.no_grad():
        own = network(images).argmax(dim=1)
        classes = network(images[:1]).shape[1]
    sizes = [smallest_size(network, images[own != goal], goal) for goal in range(classes)]
    return sizes[target] / median(sizes)


def smallest_size(network: nn.Module, images: Tensor, goal: int) -> float:
    """Norm of the smallest free pattern, added to all images, with which half of them are given a class."""
    half = len(images) // 2
    climbed, judged = images[:half][:24], images[half:]
    frozen = copy.deepcopy(network).requires_grad_(requires_grad=False)
    pattern = torch.zeros_like(images[:1])
    labels = torch.full((len(climbed),), goal)
    last, reached = 0.0, 0.0
    for radius in RADII:
        for _ in range(4):
            pattern.requires_grad_()
            loss = functional.cross_entropy(frozen((climbed + pattern).clamp(0.0, 1.0)), labels)
            (slope,) = torch.autograd.grad(loss, [pattern])
            pattern = pattern.detach() - 0.5 * radius * slope / slope.norm().clamp(min=1e-12)
            pattern = pattern * (radius / pattern.norm().clamp(min=1e-12)).clamp(max=1.0)
        with torch.no_grad():
            hits = float((frozen((judged + pattern).clamp(0.0, 1.0)).argmax(dim=1) == goal).double().mean())
        if hits >= 0.5:
            return last + (radius - last) * (0.5 - reached) / (hits - reached)
        last, reached = radius, hits
    return 2.0 * RADII[-1]
