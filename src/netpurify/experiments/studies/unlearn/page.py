"""The page of hunts and unlearning: a function of the tables alone."""

from collections.abc import Sequence
from statistics import fmean

from netpurify.experiments.studies import markdown
from netpurify.experiments.studies.defence.means import TITLES, cell
from netpurify.experiments.studies.defence.scenarios import ATTACKS
from netpurify.experiments.studies.markdown import number
from netpurify.experiments.studies.study import RunFacts, Tables
from netpurify.experiments.studies.unlearn.alarms import (
    HuntedNetwork,
    calibrated_on,
    calibration,
    hunted_networks,
)
from netpurify.experiments.studies.unlearn.hunts_page import (
    HELD,
    alarms_section,
    left_out_section,
    levels_section,
    power_section,
    share,
)
from netpurify.experiments.studies.unlearn.leftovers import leftovers_section
from netpurify.experiments.studies.unlearn.methods import METHODS
from netpurify.experiments.studies.unlearn.opinions_page import opinions_section
from netpurify.experiments.studies.unlearn.rows import COUNT
from netpurify.findings import TableRow, group, select

UNSEEN = """## Attacks set aside

Written down together with the families, before anything was hunted. A family is near reflection, filter, low-frequency,
several-patches and clean-label (a stronger wave), and has the very patch of all-to-all, which leads every class to the
next. Input-aware and steganographic triggers depend on the image. Adaptive is the patch of a weak adaptive attacker,
who trained with random covers from these families.
"""
RIVALS = """## Every repair of one and the same network

Each column was made in one trial, so that all its rows are repairs of the very same weights, with 500 images and one
hunt. A repair of a repaired network goes on from the row of the first repair. ANP with 2,000 iterations, which takes
longer than all others together, was tried on two of them.
"""
INTRODUCTION = """# Hunting and unlearning, measured

Networks that were trained here on healthy or poisoned data, hunted and repaired with the same clean images from outside
the training set, and judged on the same 2,000 test images. Made by

```
{commands}
```

in {cost} of one core, most of the training not counted: [{hunts} hunts](results/hunts.csv.gz), [{repairs}
repairs](results/unlearnt.csv.gz), [every repair of one network](results/rivals.csv.gz) and [second
opinions](results/opinions.csv.gz). The command resumes where it stopped.

**What was chosen on what.** The recipe of unlearning comes from a prototype that was tuned on ResNets with the patch
and the wave, which had the triggers, the target class and the images of the ResNets of seed 1 here. Settings of `hunt`
and `Unlearn` were then chosen on seed 0: the healthy, patch, blended and SIG networks of the CNN for MNIST and the
ResNet, and WaNet for the CNN. The family `faint` was made on the ResNet with the blended trigger of seed 1. All these
count as chosen on. Thresholds come from healthy networks alone, by one rule that was fixed before. From which networks
was not: levels came from seed 0 alone until a healthy VGG-like network of seed 1 raised a false alarm (*tone*), then
also from seed 1, then from further data and networks, whose numbers were fixed before the rest was hunted. Everything
else is **set aside**: the other networks of seed 1, all of seed 2, whose target class, images *and triggers* are
others, the attacked VGG-like networks, and Fashion-MNIST. The VGG-like networks of the prototype, on which nothing was
chosen, had the target class and the images of seed 2. The attacks of the section on attacks set aside were written down
together with the families, before anything was hunted. On MNIST their hunts and repairs (seeds 1 and 2) and those of
the other attacked networks (seed 1) were seen once before the last changes (what is found is judged on images kept
apart, levels from more networks, the two strongest triggers of a family are never dropped), which they did not prompt.
There is one seed of attacked ResNets and VGG-like networks, so these columns show no spread over training: on many
networks of other seeds something was chosen. Baselines with labels have published settings made for networks and
numbers of images other than these, but for twice the rounds of I-BAU at its authors' rate and a threshold of RNP that
is chosen on the clean images, with which it prunes nothing here; all but I-BAU train on augmented images, as published.

**Two machines.** Training amplifies how processors round, so that the same seed gives another network on another
machine. The attacked Fashion-MNIST networks come from a second machine, with healthy networks of their own for the
floor; all else is from the first, and was taken from its tables by `--extend`. All rows about one poisoned network
are from one machine. The ResNets on which every repair was tried were trained once more, on a machine of the first
kind; they came out with the accuracy and the attack success of the others. That machine and the second one were
shared, and took about twice as many processor seconds.
"""


def unlearn_page(tables: Tables, facts: RunFacts) -> str:
    """The whole page."""
    hunts, repairs = tables["hunts"], tables["unlearnt"]
    expected = calibration(hunts)
    judged = hunted_networks(hunts, expected)
    heads = {"commands": facts.commands, "cost": facts.core_time, "hunts": len(judged), "repairs": len(repairs)}
    known, unseen = ([row for row in repairs if (row["attack"] in ATTACKS) == main] for main in (True, False))
    return "\n".join(
        [
            INTRODUCTION.format(**heads),
            alarms_section(hunts, judged),
            power_section(judged),
            levels_section(hunts, judged),
            left_out_section(judged),
            repairs_section(known),
            rivals_section(tables["rivals"]),
            by_seed_section(known),
            leftovers_section(known),
            unseen_section(judged, unseen),
            images_section(known),
            opinions_section(tables["opinions"]),
            cost_section(repairs),
        ]
    )


def _cells(rows: list[TableRow], attacks: Sequence[str], method: str) -> list[str]:
    return [_cell(rows, attack, method) for attack in attacks]


def _cell(rows: list[TableRow], attack: str, method: str) -> str:
    """Mean change of accuracy in points and attack success; over hunts first, then over networks."""
    chosen = select(rows, attack=attack, method=method, images=COUNT)
    changes, successes = [], []
    for own in group(chosen, ["network", "seed"]).values():
        base = _before(rows, own[0])
        if base is not None:
            changes.append(fmean(number(row["accuracy"]) for row in own) - base)
            successes += [fmean(number(row["asr"]) for row in own)] if own[0]["asr"] is not None else []
    return cell(-100 * fmean(changes), fmean(successes) if successes else None) if changes else ""


def _before(rows: list[TableRow], like: TableRow) -> float | None:
    same = select(rows, method="nothing", network=like["network"], attack=like["attack"], seed=like["seed"])
    return number(same[0]["accuracy"]) if same else None


def _head(rows: list[TableRow], attack: str) -> str:
    """The attack, what networks had before, and what healthy ones give for the trigger."""
    chosen = select(rows, attack=attack, method="nothing")
    if not chosen or chosen[0]["asr"] is None:
        return attack
    attack += "" if _set_aside(chosen[0]) else " \\*"
    asr, floor = (100 * fmean(number(row[name]) for row in chosen) for name in ("asr", "floor"))
    return f"{attack}<br>{asr:.1f}, floor {floor:.1f}"


def repairs_section(rows: list[TableRow]) -> str:
    """One table for each kind of network and seed."""
    parts = [
        f"## Repairs side by side\n\nEach cell is *change of accuracy in points / attack success in %* with {COUNT} "
        "images, for `unlearn` the mean over hunts. Below\nthe attack stands its success before, and the floor: what "
        "the same trigger does to the healthy network of the same kind\nand seed. A star marks networks on which "
        "something was chosen. Seed 2 has other triggers than those that were\ndeveloped on.\n"
    ]
    return "\n".join([*parts, *_side_by_side(rows)])


def rivals_section(rows: list[TableRow]) -> str:
    """The same for networks on which every repair was tried in one trial."""
    return "\n".join([RIVALS, *_side_by_side(rows)]) if rows else ""


def _side_by_side(rows: list[TableRow]) -> list[str]:
    """One table for each kind of network and seed."""
    parts: list[str] = []
    kinds, tables = list(TITLES), group(rows, ["network", "seed"])
    for (network, seed), own in sorted(
        tables.items(), key=lambda one: (kinds.index(str(one[0][0])), -number(one[0][1]))
    ):
        attacks = [attack for attack in ATTACKS if select(own, attack=attack, method="nothing")]
        methods = [name for name in METHODS if name != "nothing" and select(own, method=name)]
        lines = []
        for name in methods:
            uses = "labels" if METHODS[name].labels else "inputs"
            lines.append([f"**{name}**" if name == "unlearn" else name, uses, *_cells(own, attacks, name)])
        if lines:
            columns = ["repair", "uses", *(_head(own, attack) for attack in attacks)]
            parts += [f"### {TITLES[str(network)]}: seed {seed}\n", markdown.table(columns, lines, texts=2), ""]
    return parts


def _set_aside(row: TableRow) -> bool:
    return not calibrated_on(row) if row["attack"] == "none" else bool(row["set_aside"])


def by_seed_section(rows: list[TableRow]) -> str:
    """``unlearn`` network by network and hunt by hunt."""
    lines = []
    for (network, attack, seed), own in group(rows, ["network", "attack", "seed"]).items():
        base = select(own, method="nothing")
        repairs = sorted(select(own, method="unlearn", images=COUNT), key=lambda row: int(row["hunt"] or 0))
        if not base or not repairs:
            continue
        cells = [_single(row, number(base[0]["accuracy"])) for row in repairs]
        floor = "" if base[0]["floor"] is None else f"{100 * number(base[0]['floor']):.1f}"
        mark = HELD if _set_aside(base[0]) else ""
        lines.append([TITLES[str(network)], str(attack), str(seed), mark, floor, *cells, *[""] * (3 - len(cells))])
    columns = ["network", "attack", "seed", "", "floor", "hunt 0", "hunt 1", "hunt 2"]
    text = (
        "## `unlearn` network by network\n\nHunts with different seeds. In brackets the suspect classes that the hunt "
        "named; a dash: nothing was suspect, and nothing\nwas changed.\n"
    )
    return "\n".join([text, markdown.table(columns, lines, texts=4), ""])


def _single(row: TableRow, base: float) -> str:
    suspects = str(row["suspects"]).replace(" ", ", ") if row["suspects"] not in (None, "") else "\N{EN DASH}"
    return f"{_plain_cell(row, base)} ({suspects})"


def unseen_section(judged: list[HuntedNetwork], rows: list[TableRow]) -> str:
    """Attacks on which nothing was tuned; some have a family near them, and one knows the families."""
    lines = []
    for (network, attack), own in group(rows, ["network", "attack"]).items():
        hunts = [one for one in judged if (one.row["network"], one.row["attack"]) == (network, attack)]
        alarms = share([bool(one.suspects) for one in hunts])
        found = share([one.found for one in hunts]) if own[0]["target"] != "next" else "no single class"
        cells = [_cell(own, str(attack), name) for name in ("unlearn", "defend", "I-BAU")]
        lines.append([TITLES[str(network)], _head(own, str(attack)), alarms, found, *cells])
    columns = ["network", "attack", "hunts with a suspect", "with the right class", "unlearn", "defend", "I-BAU"]
    return "\n".join([UNSEEN, markdown.table(columns, lines, texts=2), ""])


def images_section(rows: list[TableRow]) -> str:
    """``unlearn`` by the number of clean images, on the networks on which several numbers were tried."""
    counts = sorted({int(row["images"] or 0) for row in rows})
    lines = []
    repairs = select(rows, method="unlearn", hunt=0)
    for (network, attack, seed), own in group(repairs, ["network", "attack", "seed"]).items():
        base = _before(rows, own[0])
        found = {int(row["images"] or 0): row for row in own}
        if base is not None and len(found) > 1:
            cells = [_plain_cell(found[count], base) if count in found else "" for count in counts]
            lines.append([TITLES[str(network)], str(attack), str(seed), *cells])
    if not lines:
        return ""
    columns = ["network", "attack", "seed", *(f"{count:,}" for count in counts)]
    return "\n".join(["## By the number of clean images\n", markdown.table(columns, lines, texts=3), ""])


def _plain_cell(row: TableRow, base: float) -> str:
    return cell(100 * (base - number(row["accuracy"])), None if row["asr"] is None else number(row["asr"]))


def cost_section(rows: list[TableRow]) -> str:
    """Processor seconds of each repair with 500 images."""
    networks = list(dict.fromkeys(str(row["network"]) for row in rows))
    lines = []
    for name in METHODS:
        cells = []
        for network in networks:
            seconds = [
                number(row["repair_seconds"]) for row in select(rows, method=name, network=network, images=COUNT)
            ]
            cells.append(f"{fmean(seconds):.0f}" if seconds else "")
        if name != "nothing" and any(cells):
            lines.append([name, *cells])
    return "\n".join(
        ["## Processor seconds\n", markdown.table(["repair", *(TITLES[one] for one in networks)], lines), ""]
    )
