"""The page of the defences' table: a function of the tables alone."""

import gzip
from itertools import chain
from operator import itemgetter
from pathlib import Path
from statistics import fmean

import matplotlib as mpl

import means
from figure import draw
from netpurify import findings
from netpurify.atomic import write_atomically
from netpurify.findings import Mode, TableRow
from rows import PUBLISHED
from scenarios import TESTED

INTRODUCTION = """# Defences side by side

Networks that were trained here on poisoned data, repaired by every defence with the same clean images from outside the
training set, and judged on the same {tested:,} test images. Made by

```
{commands}
```

in {cost} of one core: [the table itself](results/defences.csv.gz). Each cell is *change of accuracy
in points / attack success in %*, the mean over seeds; below the attack stands what the network had before. ASR is
counted on images of other classes; without an attack there is none. **Set aside** are networks, attacks, seeds and
target classes on which no setting of `defend` was ever chosen, and none was changed after they had been looked at.
Its settings were chosen on the rows called *development*.

Three baselines run shorter here than published, to save time: fine-tuning and fine-pruning 20 epochs instead of
BackdoorBench's 100, in batches of 128 instead of 256, and ANP 200 iterations instead of 2,000 and with {count} images
only. What the first two do with all their epochs stands [below](#published-epochs); of ANP it was not measured. ANP and
CLP were made for networks with BatchNorm. Thresholds are the published ones, and no defence sees the attack.

![Accuracy lost against attack success](figures/defences.svg)
"""
FETCH = ["netpurify data fetch mnist", "netpurify data fetch cifar10"]
"""What all tables but the quick one need."""
TABLES = ("defences", "defences-published")
"""Names of the tables that are kept beside the page."""


def write(folder: Path, page: Path, mode: Mode) -> None:
    """Write the page, its figure and the tables beside it."""
    rows, longer, trained = (_read(folder / f"{name}.csv") for name in (*TABLES, "defence-networks"))
    seconds = sum(means.number(row, "seconds") for row in (*rows, *longer))
    seconds += sum(means.number(row, "training_seconds") for row in trained)
    option = "" if mode == "default" else f" --{mode}"
    command = f"python benchmarks/defence/table.py{option} --markdown docs/defence-results.md"
    commands = "\n".join([*([] if mode == "quick" else FETCH), command])
    cost = f"{seconds / 3600:.1f} hours" if seconds > 3600 else f"{seconds / 60:.0f} minutes"
    parts = [INTRODUCTION.format(tested=TESTED, commands=commands, cost=cost, count=means.COUNT)]
    for network in dict.fromkeys(str(row["network"]) for row in rows):
        for held_out in (True, False):
            chosen = [row for row in rows if row["network"] == network and row["held_out"] == held_out]
            if chosen:
                parts.append(_section(network, chosen, held_out=held_out))
    parts += [_seeds(rows), _published(rows, longer), _counts(rows), _means(rows)]
    page.parent.mkdir(parents=True, exist_ok=True)
    with write_atomically(page) as stream:
        stream.write("\n".join(parts).encode())
    for name in TABLES:
        kept = page.parent / "results" / f"{name}.csv.gz"
        kept.parent.mkdir(exist_ok=True)
        with write_atomically(kept) as stream:
            stream.write(gzip.compress((folder / f"{name}.csv").read_bytes(), mtime=0))
    picture = page.parent / "figures" / "defences.svg"
    picture.parent.mkdir(exist_ok=True)
    with write_atomically(picture) as stream, mpl.rc_context({"svg.hashsalt": "defences"}):
        draw(rows).savefig(stream, format="svg", metadata={"Date": None})


def _read(path: Path) -> list[TableRow]:
    return [row for row in findings.read_table(path) if row["failure"] is None]


def _section(network: str, rows: list[TableRow], *, held_out: bool) -> str:
    """One network: a line for each defence, a column for each attack."""
    attacks = list(dict.fromkeys(str(row["attack"]) for row in rows))
    seeds = sorted({len({row["seed"] for row in rows if row["attack"] == attack}) for attack in attacks})
    before = {attack: means.before(rows, attack) for attack in attacks}
    heads = [f"{attack}<br>{means.cell(100 * before[attack][0], before[attack][1], sign='')}" for attack in attacks]
    lines = []
    for defence in means.defences(rows):
        cells = [means.lost(rows, attack, defence, before[attack][0]) for attack in attacks]
        lines.append([means.name(defence), means.uses(defence), *cells])
    kind = "set aside" if held_out else "development"
    often = "1 seed" if seeds == [1] else f"{' to '.join(map(str, sorted({seeds[0], seeds[-1]})))} seeds"
    title = f"## {means.TITLES[network]}: {kind} ({often}, {means.COUNT} clean images)\n"
    return "\n".join([title, *means.table(["defence", "uses", *heads], lines)])


def _seeds(rows: list[TableRow]) -> str:
    """Each network by itself, since a mean hides that one seed keeps its backdoor and another loses it."""
    seeds = sorted({int(row["seed"] or 0) for row in rows})
    lines = []
    for network, attack in dict.fromkeys((str(row["network"]), str(row["attack"])) for row in rows):
        cells = []
        for seed in seeds:
            own = [row for row in rows if (row["network"], row["attack"], row["seed"]) == (network, attack, seed)]
            cells.append(_alone(own, attack, "defend"))
        lines.append([means.TITLES[network], attack, *cells])
    title = f"## `defend` seed by seed\n\nEach network with {means.COUNT} images; *development* in italics.\n"
    return "\n".join([title, *means.table(["network", "attack", *(f"seed {seed}" for seed in seeds)], lines)])


def _published(rows: list[TableRow], longer: list[TableRow]) -> str:
    """What all the epochs give beside fewer and beside ours, on the same networks."""
    place = itemgetter("network", "attack", "seed")
    places = set(map(place, longer))
    rows = [row for row in rows if place(row) in places] + longer
    attacks = list(dict.fromkeys(str(row["attack"]) for row in rows))
    lines = []
    for network in dict.fromkeys(str(row["network"]) for row in rows):
        own = [row for row in rows if row["network"] == network]
        for defence in ("defend", *chain.from_iterable((name.split(",")[0], name) for name in PUBLISHED)):
            cells = [_alone([row for row in own if row["attack"] == attack], attack, defence) for attack in attacks]
            if any(cells):
                seconds = _mean(means.of(own, defence), "repair_seconds")
                lines.append([means.TITLES[network], means.name(defence), *cells, seconds])
    seeds = ", ".join(map(str, sorted({int(row["seed"] or 0) for row in longer})))
    text = (
        "Fine-tuning and fine-pruning with the 100 epochs of BackdoorBench, beside the others on the same networks:\n"
        f"seed {seeds}, {means.COUNT} images, *development* of `defend` in italics. "
        "[The table](results/defences-published.csv.gz).\n"
    )
    return "\n".join(["## Published epochs\n", text, *means.table(["network", "defence", *attacks, "seconds"], lines)])


def _alone(rows: list[TableRow], attack: str, defence: str) -> str:
    """The cell of one network; of `defend`, in italics where its settings were chosen."""
    cell = means.lost(rows, attack, defence, means.before(rows, attack)[0]) if rows else ""
    return f"*{cell}*" if cell and defence == "defend" and not rows[0]["held_out"] else cell


def _counts(rows: list[TableRow]) -> str:
    """How the number of clean images matters: means over networks and attacks that were set aside, or over all."""
    chosen = [row for row in rows if row["held_out"]] or rows
    counts = sorted({int(row["images"] or 0) for row in chosen} - {0})
    lines = []
    for defence in means.defences(chosen):
        cells = []
        for count in counts:
            found = [
                row for row in chosen if row["defence"] == defence and row["images"] == count and row["asr"] is not None
            ]
            lost = [means.before(chosen, str(row["attack"]), row)[0] - means.number(row, "accuracy") for row in found]
            cells.append(
                means.cell(100 * fmean(lost), fmean(means.number(row, "asr") for row in found)) if found else ""
            )
        if any(cells):
            lines.append([means.name(defence), *cells])
    aside = " that were set aside" if chosen[0]["held_out"] else ""
    title = f"## By the number of clean images\n\nMeans over all attacked networks{aside}.\n"
    return "\n".join([title, *means.table(["defence", *(f"{count:,}" for count in counts)], lines)])


def _means(rows: list[TableRow]) -> str:
    """Everything that was measured, a table for each network, with the images of the main tables."""
    parts = [
        "## Everything that was measured\n",
        f"Means over all seeds and attacks with {means.COUNT} images, in %: RA is the share of triggered images that\n"
        "get their own class, *changed* the share of clean ones that get another than before. Seconds are those of\n"
        "one repair on one core, MB what it takes above the network.\n",
    ]
    columns = ["defence", "uses", "accuracy", "ASR", "RA", "changed", "seconds", "MB"]
    for network in dict.fromkeys(str(row["network"]) for row in rows):
        own = [row for row in rows if row["network"] == network]
        lines = []
        for defence in ["nothing", *means.defences(own)]:
            found = means.of(own, defence)
            rates = [_mean(found, name, 100) for name in ("accuracy", "asr", "ra", "disagreement")]
            costs = [_mean(found, "repair_seconds"), f"{fmean(means.number(row, 'megabytes') for row in found):.0f}"]
            lines.append(
                [means.name(defence), means.uses(defence), *rates, *(costs if defence != "nothing" else ["", ""])]
            )
        parts += [f"### {means.TITLES[network]}\n", *means.table(columns, lines)]
    return "\n".join(parts)


def _mean(rows: list[TableRow], name: str, factor: float = 1.0) -> str:
    """The mean of those that have a value, since ASR and RA are of attacked networks only."""
    return f"{factor * fmean(means.number(row, name) for row in rows if row[name] is not None):.1f}"
