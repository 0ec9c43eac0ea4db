"""The page of the table of defences: a function of the tables alone."""

from itertools import chain
from operator import itemgetter
from statistics import fmean

from netpurify.experiments.studies import markdown
from netpurify.experiments.studies.defence import means
from netpurify.experiments.studies.defence.defences import PUBLISHED
from netpurify.experiments.studies.defence.scenarios import TESTED
from netpurify.experiments.studies.markdown import number
from netpurify.experiments.studies.study import RunFacts, Tables
from netpurify.findings import TableRow

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


def defence_page(tables: Tables, facts: RunFacts) -> str:
    """The whole page."""
    rows, longer = tables["defences"], tables["defences-published"]
    parts = [INTRODUCTION.format(tested=TESTED, commands=facts.commands, cost=facts.core_time, count=means.COUNT)]
    for network in dict.fromkeys(str(row["network"]) for row in rows):
        for held_out in (True, False):
            chosen = [row for row in rows if row["network"] == network and row["held_out"] == held_out]
            if chosen:
                parts.append(section(network, chosen, held_out=held_out))
    return "\n".join([*parts, by_seed(rows), published_epochs(rows, longer), by_count(rows), everything(rows)])


def section(network: str, rows: list[TableRow], *, held_out: bool) -> str:
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
    return "\n".join([title, markdown.table(["defence", "uses", *heads], lines, texts=2), ""])


def by_seed(rows: list[TableRow]) -> str:
    """Each network alone, because a mean hides that one seed keeps its backdoor and another loses it."""
    seeds = sorted({int(row["seed"] or 0) for row in rows})
    lines = []
    for network, attack in dict.fromkeys((str(row["network"]), str(row["attack"])) for row in rows):
        cells = []
        for seed in seeds:
            own = [row for row in rows if (row["network"], row["attack"], row["seed"]) == (network, attack, seed)]
            cells.append(single(own, attack, "defend"))
        lines.append([means.TITLES[network], attack, *cells])
    title = f"## `defend` seed by seed\n\nEach network with {means.COUNT} images; *development* in italics.\n"
    return "\n".join(
        [title, markdown.table(["network", "attack", *(f"seed {seed}" for seed in seeds)], lines, texts=2), ""]
    )


def published_epochs(rows: list[TableRow], longer: list[TableRow]) -> str:
    """Fine-tuning and fine-pruning with all epochs and with fewer, and ``defend``, on the same networks."""
    network_of = itemgetter("network", "attack", "seed")
    networks = set(map(network_of, longer))
    rows = [row for row in rows if network_of(row) in networks] + longer
    attacks = list(dict.fromkeys(str(row["attack"]) for row in rows))
    lines = []
    for network in dict.fromkeys(str(row["network"]) for row in rows):
        own = [row for row in rows if row["network"] == network]
        for defence in ("defend", *chain.from_iterable((name.split(",")[0], name) for name in PUBLISHED)):
            cells = [single([row for row in own if row["attack"] == attack], attack, defence) for attack in attacks]
            if any(cells):
                seconds = mean(means.main_rows(own, defence), "repair_seconds")
                lines.append([means.TITLES[network], means.name(defence), *cells, seconds])
    seeds = ", ".join(map(str, sorted({int(row["seed"] or 0) for row in longer})))
    text = (
        "Fine-tuning and fine-pruning with the 100 epochs of BackdoorBench, beside the others on the same networks:\n"
        f"seed {seeds}, {means.COUNT} images, *development* of `defend` in italics. "
        "[The table](results/defences-published.csv.gz).\n"
    )
    table = markdown.table(["network", "defence", *attacks, "seconds"], lines, texts=2)
    return "\n".join(["## Published epochs\n", text, table, ""])


def single(rows: list[TableRow], attack: str, defence: str) -> str:
    """The cell of one network; of `defend`, in italics where its settings were chosen."""
    cell = means.lost(rows, attack, defence, means.before(rows, attack)[0]) if rows else ""
    return f"*{cell}*" if cell and defence == "defend" and not rows[0]["held_out"] else cell


def by_count(rows: list[TableRow]) -> str:
    """Means for each number of clean images, over the networks that were set aside, or over all if none was."""
    chosen = [row for row in rows if row["held_out"]] or rows
    counts = sorted({int(row["images"] or 0) for row in chosen} - {0})
    lines = []
    for defence in means.defences(chosen):
        cells = []
        for count in counts:
            measured = [
                row for row in chosen if row["defence"] == defence and row["images"] == count and row["asr"] is not None
            ]
            lost = [means.before(chosen, str(row["attack"]), row)[0] - number(row["accuracy"]) for row in measured]
            cells.append(
                means.cell(100 * fmean(lost), fmean(number(row["asr"]) for row in measured)) if measured else ""
            )
        if any(cells):
            lines.append([means.name(defence), *cells])
    aside = " that were set aside" if chosen[0]["held_out"] else ""
    title = f"## By the number of clean images\n\nMeans over all attacked networks{aside}.\n"
    return "\n".join([title, markdown.table(["defence", *(f"{count:,}" for count in counts)], lines), ""])


def everything(rows: list[TableRow]) -> str:
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
            measured = means.main_rows(own, defence)
            rates = [mean(measured, name, 100) for name in ("accuracy", "asr", "ra", "disagreement")]
            costs = [mean(measured, "repair_seconds"), f"{fmean(number(row['megabytes']) for row in measured):.0f}"]
            lines.append(
                [means.name(defence), means.uses(defence), *rates, *(costs if defence != "nothing" else ["", ""])]
            )
        parts += [f"### {means.TITLES[network]}\n", markdown.table(columns, lines, texts=2), ""]
    return "\n".join(parts)


def mean(rows: list[TableRow], name: str, factor: float = 1.0) -> str:
    """The mean over the rows that have a value; ASR and RA exist for attacked networks only."""
    return f"{factor * fmean(number(row[name]) for row in rows if row[name] is not None):.1f}"
