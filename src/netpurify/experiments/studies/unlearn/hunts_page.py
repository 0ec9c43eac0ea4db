"""Sections of the page about hunts: false alarms, what is found, and each family."""

from collections.abc import Sequence

from scipy.stats import beta

from netpurify.experiments.studies import markdown
from netpurify.experiments.studies.defence.means import TITLES
from netpurify.experiments.studies.defence.scenarios import ATTACKS
from netpurify.experiments.studies.markdown import number
from netpurify.experiments.studies.unlearn.alarms import (
    GREY,
    HuntedNetwork,
    calibrated_on,
    calibration,
    kind_of,
    without_themselves,
)
from netpurify.findings import TableRow, select
from netpurify.network import HealthyLevel

HELD, CHOSEN = "set aside", "chosen on"
ALL_OF = {"all for grey images": GREY, "all for colour images": ("resnet", "vgg", "short_resnet", "short_vgg")}
"""Kinds of networks that are also counted together: they share levels."""
ALARMS = """## False alarms

Healthy networks in which a class is suspect, in any of their hunts (three in some networks, one in others). *Each
without itself*: networks from which the levels come, each judged by levels that come from all others of its kind of
images. *Set aside*: networks from which no level comes, with the rate that is not exceeded with 95 % confidence
(one-sided, exact), if your networks are like these.
"""
LEVELS = """## Family by family

In the healthy networks from which levels come: the highest success of any class (median and highest over hunts), and
the widest margin by which the best class stood out. A family is suspect if its success or its margin is at least
halfway between that of healthy networks and 1, and at least 0.5. *Points to the backdoor*: hunts in poisoned networks
in which this family is suspect with the right class. *Finds alone*: hunts in which no other family does, so that
leaving it out would miss the backdoor. The last column is its share of the time of a hunt.
"""
OWN = {"patch": ("spot", "spots"), "blended": ("blend",), "sig": ("wave",), "wanet": ("flow",)}
"""The families that are made for each attack; several spots are near a single one."""
LEFT_OUT = """### Without the families of an attack

Hunts in poisoned networks that were set aside in which the class of the backdoor is suspect if the families made for
the attack are left out: for the patch `spot` and `spots`, which are near one another, so that neither is often the only
one that finds it. Where nothing is left, a family like the trigger is what the hunt depends on.
"""
POWER = """## What is found

Hunts in poisoned networks in which the class of the backdoor is suspect. The triggers of seed 2 are others than those
on which anything was developed: another patch at another place, another picture, wave and warp.

![Share of hunts whose highest alarm reaches a level](figures/hunts.svg)

*Share of hunts in healthy networks (of all seeds) whose highest alarm of any family reaches a level, and of hunts in
poisoned networks in which a family that points to the backdoor does. From 1, the dotted line, on a class is suspect.*
"""


def share(hits: Sequence[bool]) -> str:
    """So many of so many."""
    return f"{sum(hits)} of {len(hits)}" if hits else ""


def at_most(hits: Sequence[bool]) -> str:
    """So many of so many, and what the rate is below with 95 % confidence (one-sided, exact)."""
    return f"{share(hits)}, at most {100 * _highest_rate(sum(hits), len(hits)):.0f} %" if hits else ""


def at_least(hits: Sequence[bool]) -> str:
    """So many of so many, and what the rate is above with 95 % confidence (one-sided, exact)."""
    return f"{share(hits)}, at least {100 * (1 - _highest_rate(hits.count(False), len(hits))):.0f} %" if hits else ""


def _highest_rate(hits: int, tried: int) -> float:
    return 1.0 if hits == tried else float(beta.ppf(0.95, hits + 1, tried - hits))


def by_network(hunts: Sequence[HuntedNetwork]) -> list[list[HuntedNetwork]]:
    """Hunts in the same network together: networks are the sample, and hunts in one of them are alike."""
    found: dict[tuple[object, ...], list[HuntedNetwork]] = {}
    for one in hunts:
        found.setdefault((one.row["network"], one.row["attack"], one.row["seed"]), []).append(one)
    return list(found.values())


def _alarmed(hunts: Sequence[HuntedNetwork]) -> list[bool]:
    """Of each network, whether any hunt in it raises an alarm."""
    return [any(one.suspects for one in own) for own in by_network(hunts)]


def _held(hunt: HuntedNetwork) -> bool:
    """Whether nothing was chosen on the network, and it is not one of those from which levels come."""
    return not calibrated_on(hunt.row) if hunt.healthy else bool(hunt.row["set_aside"])


def alarms_section(rows: list[TableRow], judged: list[HuntedNetwork]) -> str:
    """How often a healthy network is suspect."""
    calibrated = without_themselves(rows)
    lines = []
    for name, kinds in (*((TITLES[one], (one,)) for one in TITLES), *ALL_OF.items()):
        mine = [one for one in calibrated if one.row["network"] in kinds]
        held = [one for one in judged if one.healthy and one.row["network"] in kinds and _held(one)]
        if mine or held:
            lines.append([name, share(_alarmed(mine)), at_most(_alarmed(held))])
    return "\n".join([ALARMS, markdown.table(["network", "each without itself", HELD], lines), ""])


def power_section(judged: list[HuntedNetwork]) -> str:
    """How often the class of the backdoor is found."""
    lines = []
    for network in dict.fromkeys(str(one.row["network"]) for one in judged):
        for attack in ATTACKS:
            own = [one for one in judged if one.row["network"] == network and one.row["attack"] == attack]
            if own and attack != "none":
                cells = [share([one.found for one in own if _held(one) == held]) for held in (False, True)]
                wrong = sum(bool(one.suspects) and not one.found for one in own)
                lines.append([TITLES[network], attack, *cells, str(wrong)])
    every = by_network([one for one in judged if not one.healthy and one.row["attack"] in ATTACKS and _held(one)])
    always = at_least([all(one.found for one in own) for own in every])
    lines.append(["networks in which every hunt finds it", "", "", always, ""])
    columns = ["network", "attack", CHOSEN, HELD, "only a wrong class"]
    return "\n".join([POWER, markdown.table(columns, lines, texts=2), ""])


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
            pointing = sum(one.row["target"] == one.suspects[family][0] for one in own if family in one.suspects)
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
    return "\n".join([LEVELS, *parts])


def left_out_section(judged: list[HuntedNetwork]) -> str:
    """How often the class of the backdoor is found without the families that are made for the attack."""
    lines = []
    for network in dict.fromkeys(str(one.row["network"]) for one in judged):
        own = [one for one in judged if one.row["network"] == network and not one.healthy and _held(one)]
        cells = [
            share([one.found_without(*families) for one in own if one.row["attack"] == attack])
            for attack, families in OWN.items()
        ]
        if any(cells):
            lines.append([TITLES[network], *cells])
    columns = ["network", *(f"{attack} without {' and '.join(families)}" for attack, families in OWN.items())]
    return "\n".join([LEFT_OUT, markdown.table(columns, lines), ""]) if lines else ""


def _shown(level: HealthyLevel) -> tuple[float, ...]:
    return level.success, level.highest, level.success_threshold, level.widest, level.threshold
