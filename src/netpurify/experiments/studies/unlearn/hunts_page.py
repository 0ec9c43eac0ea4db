"""Sections of the page about hunts: false alarms, what is found, and each family."""

from collections.abc import Sequence

from scipy.stats import binomtest

from netpurify.experiments.studies import markdown
from netpurify.experiments.studies.defence.means import TITLES
from netpurify.experiments.studies.defence.scenarios import ATTACKS
from netpurify.experiments.studies.markdown import number
from netpurify.experiments.studies.unlearn.alarms import HuntedNetwork, calibrated_on, calibration, kind_of
from netpurify.findings import TableRow, select
from netpurify.network import HealthyLevel

HELD, CHOSEN = "set aside", "chosen on"


def share(hits: Sequence[bool]) -> str:
    """So many of so many, with the exact 95 % interval."""
    if not hits:
        return ""
    interval = binomtest(sum(hits), len(hits)).proportion_ci(0.95)
    return f"{sum(hits)} of {len(hits)} ({100 * interval.low:.0f} to {100 * interval.high:.0f} %)"


def _held(hunt: HuntedNetwork) -> bool:
    """Whether nothing was chosen on the network, and it is not one of those from which levels come."""
    return not calibrated_on(hunt.row) if hunt.healthy else bool(hunt.row["set_aside"])


def alarms_section(judged: list[HuntedNetwork]) -> str:
    """How often a healthy network is suspect."""
    lines = []
    for network in dict.fromkeys(str(one.row["network"]) for one in judged):
        own = [one for one in judged if one.healthy and one.row["network"] == network]
        cells = [share([bool(one.suspects) for one in own if _held(one) == held]) for held in (False, True)]
        lines.append([TITLES[network], *cells])
    every = [bool(one.suspects) for one in judged if one.healthy and _held(one)]
    lines.append(["all", "", share(every)])
    text = (
        "## False alarms\n\nHunts in healthy networks in which a class is suspect, with the exact 95 % interval; three "
        "hunts with\ndifferent seeds in each network, so they are not independent, and the interval is too narrow for "
        "that.\n"
    )
    return "\n".join([text, markdown.table(["network", "calibrated on", HELD], lines), ""])


def power_section(judged: list[HuntedNetwork]) -> str:
    """How often the class of the backdoor is found."""
    lines = []
    for network in dict.fromkeys(str(one.row["network"]) for one in judged):
        for attack in ATTACKS:
            own = [one for one in judged if one.row["network"] == network and one.row["attack"] == attack]
            if own and attack != "none":
                cells = [share([one.found for one in own if _held(one) == held]) for held in (False, True)]
                lines.append([TITLES[network], attack, *cells])
    every = [one.found for one in judged if not one.healthy and one.row["attack"] in ATTACKS and _held(one)]
    lines.append(["all", "", "", share(every)])
    text = (
        "## What is found\n\nHunts in poisoned networks in which the class of the backdoor is suspect.\n\n"
        "![Share of hunts whose highest alarm reaches a level](figures/hunts.svg)\n\n*Share of hunts in healthy "
        "networks (of all seeds) whose highest alarm of any family reaches a level, and of hunts in\npoisoned networks "
        "in which a family that points to the backdoor does. From 1, the dotted line, on a class is suspect.*\n"
    )
    return "\n".join([text, markdown.table(["network", "attack", CHOSEN, HELD], lines, texts=2), ""])


def levels_section(hunts: list[TableRow], judged: list[HuntedNetwork]) -> str:
    """Each family: what healthy networks show, what it costs, and what no other family finds."""
    expected = calibration(hunts)
    parts = []
    for kind, levels in expected.items():
        own = [one for one in judged if kind_of(one.row) == kind and not one.healthy]
        times = {
            family: sum(number(row["family_seconds"]) for row in select(hunts, family=family) if kind_of(row) == kind)
            for family in levels.levels
        }
        lines = []
        for family, level in levels.levels.items():
            pointing = sum(one.row["target"] == one.suspects.get(family) for one in own)
            alone = sum(one.found and not one.found_without(family) for one in own)
            lines.append(
                [
                    family,
                    *(f"{value:.2f}" for value in _shown(level)),
                    str(pointing),
                    str(alone),
                    f"{100 * times[family] / sum(times.values()):.0f}",
                ]
            )
        columns = ["family", "success, median", "highest", "suspect from", "widest margin", "suspect from"]
        columns += ["points to the backdoor", "finds alone", "time, %"]
        parts += [f"### Families on {kind} images ({len(own)} hunts in poisoned networks)\n"]
        parts += [markdown.table(columns, lines), ""]
    text = (
        "## Family by family\n\nIn healthy networks of seeds 0 and 1: the highest success of any class (median and "
        "highest over hunts), and the widest\nmargin by which the best class stood out. A family is suspect if its "
        "success or its margin is at least halfway between\nthat of healthy networks and 1, and at least 0.5. *Points "
        "to the backdoor*: hunts in poisoned networks in which this\nfamily is suspect with the right class. *Finds "
        "alone*: hunts in which no other family does, so that leaving it out\nwould miss the backdoor. The last column "
        "is its share of the time of a hunt.\n"
    )
    return "\n".join([text, *parts])


def _shown(level: HealthyLevel) -> tuple[float, ...]:
    return level.success, level.highest, level.success_threshold, level.widest, level.threshold
