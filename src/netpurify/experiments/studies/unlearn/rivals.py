"""Every repair of one network in one trial, so that what is compared was done to the very same weights.

Training amplifies rounding: the same seed gives other weights on another processor. Rows of different trials are of one
network only if one machine has run them; rows of this trial always are.
"""

import time

from torch import nn

from netpurify.experiments.studies.defence.baseline import CleanData
from netpurify.experiments.studies.unlearn.methods import METHODS, OneAfterTheOther
from netpurify.experiments.studies.unlearn.rows import COUNT, floor_of, judge, network_of, scenario_of
from netpurify.findings import TableRow
from netpurify.threads import one_torch_thread

RIVALS = tuple(METHODS)
"""What is done to a network, in this order; a repair of a repaired network comes after the first of both."""
LONGEST, TRIED_ON = "ANP, 2,000 iterations", ("none", "patch")
"""A repair that takes longer than all others together, and the attacks on which it is tried."""


def repairs_of(attack: str) -> list[str]:
    """The repairs that are tried on networks with this attack."""
    return [name for name in RIVALS if name != LONGEST or attack in TRIED_ON]


Repaired = tuple[nn.Module, float]
"""A network after a repair, and the processor seconds that it took."""


def every_repair(settings: TableRow, seed: int, *, folder: str) -> list[TableRow]:
    """One row for each repair of one network, and one for the network as it came."""
    scenario = scenario_of(settings, seed)
    floor = floor_of(scenario, folder)
    rows: list[TableRow] = []
    with one_torch_thread():
        network = network_of(scenario, folder)
        images, labels = scenario.clean(COUNT)
        clean = CleanData(images, labels, None, 0, augmented=True)
        done: dict[str, Repaired] = {}
        for name in repairs_of(scenario.attack):
            done[name] = _repair(name, network, clean, done)
            mended, seconds = done[name]
            known: TableRow = {"method": name, "images": COUNT, "hunt": 0, "floor": floor}
            known |= {"labels": METHODS[name].labels, "repair_seconds": seconds}
            rows.append(known | judge(scenario, mended))
    return rows


def _repair(name: str, network: nn.Module, clean: CleanData, done: dict[str, Repaired]) -> Repaired:
    """One repair; the first of two repairs is not done again."""
    method, spent = METHODS[name], 0.0
    if isinstance(method, OneAfterTheOther):
        network, spent = done[method.first.name]
        method = method.second
    begun = time.process_time()
    mended = method.repair(network, clean)
    return mended, spent + time.process_time() - begun
