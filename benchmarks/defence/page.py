"""The page and the figure of the defences' table; both are functions of the table alone."""

import gzip
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean

from matplotlib.figure import Figure

from netpurify import experiments
from netpurify.atomic import write_atomically
from netpurify.experiments import Row
from rows import DEFENCES
from scenarios import TESTED

COUNT = 500
"""Clean images of the main tables and of the figure."""
TITLES = {"sample_cnn": "CNN on the MNIST sample", "mnist_cnn": "CNN without BatchNorm, MNIST",
          "resnet": "ResNet with BatchNorm, CIFAR-10", "vgg": "VGG-like network, CIFAR-10"}  # fmt: skip
COLOURS = {"defend": "#d55e00", "fine-tuning": "#0072b2", "fine-pruning": "#56b4e9", "CLP": "#009e73", "ANP": "#cc79a7",
           "Algorithm 2": "#e69f00", "least squares": "#999999"}  # fmt: skip
EDGE = 6.0
"""Where the figure ends, in points of accuracy; what lost more stands there with its number."""
MARKERS = {"patch": "s", "blended": "o", "sig": "^", "wanet": "D"}
INTRODUCTION = """# Defences side by side

Networks that were trained here on poisoned data, repaired by every defence with the same clean images from outside the
training set, and judged on the same {tested:,} test images. Made by

```
netpurify data fetch mnist
netpurify data fetch cifar10
python benchmarks/defence/table.py --full --markdown docs/defence-results.md
```

in {hours:.1f} hours of one core: [the table itself](results/defences.csv.gz). Each cell is *change of accuracy
in points / attack success in %*, the mean over seeds; below the attack stands what the network had before. ASR is
counted on images of other classes; without an attack there is none. **Set aside** are networks, attacks, seeds and
target classes on which no setting of `defend` was ever chosen, and none was changed after they had been looked at.
Its settings were chosen on the rows called *development*.

Three baselines are weaker here than as published, to save time: fine-tuning and fine-pruning run 20 epochs instead of
BackdoorBench's 100, in batches of 128 instead of 256, and ANP 200 iterations instead of 2,000 and with {count} images
only. How much more they would do was not measured; it would take 5 and 10 times as long. ANP and CLP were made for
networks with BatchNorm. Thresholds are the published ones, and no defence sees the attack.

![Accuracy lost against attack success](figures/defences.svg)
"""


def write(folder: Path, page: Path) -> None:
    """Write the page, its figure and the table beside it."""
    rows = [row for row in experiments.read(folder / "defences.csv") if row["failure"] is None]
    trained = [row for row in experiments.read(folder / "defence-networks.csv") if row["failure"] is None]
    seconds = sum(float(row["seconds"] or 0.0) for row in rows) + sum(
        _number(row, "training_seconds") for row in trained
    )
    parts = [INTRODUCTION.format(tested=TESTED, hours=seconds / 3600, count=COUNT)]
    for network in dict.fromkeys(str(row["network"]) for row in rows):
        for held_out in (True, False):
            chosen = [row for row in rows if row["network"] == network and row["held_out"] == held_out]
            if chosen:
                parts.append(_section(network, chosen, held_out=held_out))
    parts += [_seeds(rows), _counts(rows), _means(rows)]
    page.parent.mkdir(parents=True, exist_ok=True)
    with write_atomically(page) as stream:
        stream.write("\n".join(parts).encode())
    kept = page.parent / "results" / "defences.csv.gz"
    kept.parent.mkdir(exist_ok=True)
    with write_atomically(kept) as stream:
        stream.write(gzip.compress((folder / "defences.csv").read_bytes(), mtime=0))
    picture = page.parent / "figures" / "defences.svg"
    picture.parent.mkdir(exist_ok=True)
    with write_atomically(picture) as stream:
        draw(rows).savefig(stream, format="svg", metadata={"Date": None})


def _section(network: str, rows: list[Row], *, held_out: bool) -> str:
    """One network: a line for each defence, a column for each attack."""
    attacks = list(dict.fromkeys(str(row["attack"]) for row in rows))
    seeds = sorted({len({row["seed"] for row in rows if row["attack"] == attack}) for attack in attacks})
    before = {attack: _before(rows, attack) for attack in attacks}
    heads = [f"{attack}<br>{_cell(100 * before[attack][0], before[attack][1], sign='')}" for attack in attacks]
    lines = []
    for defence in _defences(rows):
        cells = [_lost(rows, attack, defence, before[attack][0]) for attack in attacks]
        lines.append([_name(defence), _uses(defence), *cells])
    kind = "set aside" if held_out else "development"
    often = "1 seed" if seeds == [1] else f"{' to '.join(map(str, sorted({seeds[0], seeds[-1]})))} seeds"
    title = f"## {TITLES[network]}: {kind} ({often}, {COUNT} clean images)\n"
    return "\n".join([title, *_table(["defence", "uses", *heads], lines)])


def _seeds(rows: list[Row]) -> str:
    """Each network by itself, since a mean hides that one seed keeps its backdoor and another loses it."""
    seeds = sorted({int(row["seed"] or 0) for row in rows})
    lines = []
    for network, attack in dict.fromkeys((str(row["network"]), str(row["attack"])) for row in rows):
        cells = []
        for seed in seeds:
            own = [row for row in rows if (row["network"], row["attack"], row["seed"]) == (network, attack, seed)]
            cell = _lost(own, attack, "defend", _before(own, attack)[0]) if own else ""
            cells.append(cell if not own or own[0]["held_out"] else f"*{cell}*")
        lines.append([TITLES[network], attack, *cells])
    title = f"## `defend` seed by seed\n\nEach network with {COUNT} images; *development* in italics.\n"
    return "\n".join([title, *_table(["network", "attack", *(f"seed {seed}" for seed in seeds)], lines)])


def _counts(rows: list[Row]) -> str:
    """How the number of clean images matters: means over networks and attacks that were set aside, or over all."""
    chosen = [row for row in rows if row["held_out"]] or rows
    counts = sorted({int(row["images"] or 0) for row in chosen} - {0})
    lines = []
    for defence in _defences(chosen):
        cells = []
        for count in counts:
            found = [
                row for row in chosen if row["defence"] == defence and row["images"] == count and row["asr"] is not None
            ]
            lost = [_before(chosen, str(row["attack"]), row)[0] - _number(row, "accuracy") for row in found]
            cells.append(_cell(100 * fmean(lost), fmean(_number(row, "asr") for row in found)) if found else "")
        if any(cells):
            lines.append([_name(defence), *cells])
    aside = " that were set aside" if chosen[0]["held_out"] else ""
    title = f"## By the number of clean images\n\nMeans over all attacked networks{aside}.\n"
    return "\n".join([title, *_table(["defence", *(f"{count:,}" for count in counts)], lines)])


def _means(rows: list[Row]) -> str:
    """Everything that was measured, a table for each network, with the images of the main tables."""
    parts = [
        "## Everything that was measured\n",
        f"Means over all seeds and attacks with {COUNT} images, in %: RA is the share of triggered images that get\n"
        "their own class, *changed* the share of clean ones that get another than before. Seconds are those of one\n"
        "repair on one core, MB what it takes above the network.\n",
    ]
    columns = ["defence", "uses", "accuracy", "ASR", "RA", "changed", "seconds", "MB"]
    for network in dict.fromkeys(str(row["network"]) for row in rows):
        own = [row for row in rows if row["network"] == network]
        lines = []
        for defence in ["nothing", *_defences(own)]:
            found = _of(own, defence)
            rates = [_mean(found, name, 100) for name in ("accuracy", "asr", "ra", "disagreement")]
            costs = [_mean(found, "repair_seconds"), f"{fmean(_number(row, 'megabytes') for row in found):.0f}"]
            lines.append([_name(defence), _uses(defence), *rates, *(costs if defence != "nothing" else ["", ""])])
        parts += [f"### {TITLES[network]}\n", *_table(columns, lines)]
    return "\n".join(parts)


def _mean(rows: list[Row], name: str, factor: float = 1.0) -> str:
    """The mean of those that have a value, since ASR and RA are of attacked networks only."""
    return f"{factor * fmean(_number(row, name) for row in rows if row[name] is not None):.1f}"


def draw(rows: list[Row]) -> Figure:
    """Points of accuracy lost against attack success, a panel for each network; the lower left corner is the aim."""
    networks = list(dict.fromkeys(str(row["network"]) for row in rows))
    figure = Figure(figsize=(3.9 * len(networks) + 1.8, 4.8), layout="constrained")
    panels = figure.subplots(1, len(networks), sharex=True, sharey=True, squeeze=False)[0]
    for panel, network in zip(panels, networks, strict=True):
        own = [row for row in rows if row["network"] == network]
        for defence, attack, lost, asr, held_out in _points(own):
            fill = COLOURS[defence] if held_out else "none"
            size, order = (9, 4) if defence == "defend" else (7, 3)
            panel.plot(min(lost, EDGE), 100 * asr, MARKERS[attack], color=COLOURS[defence], markerfacecolor=fill,
                       markersize=size, markeredgewidth=1.6, clip_on=False, zorder=order)  # fmt: skip
            if lost > EDGE:
                panel.annotate(f"{lost:.0f} \N{RIGHTWARDS ARROW}", (EDGE, 100 * asr), xytext=(-7, 0), fontsize=9,
                               textcoords="offset points", ha="right", va="center")  # fmt: skip
        panel.axvspan(-1, 2, ymax=0.05, color="#009e73", alpha=0.25, linewidth=0)
        panel.set(title=TITLES[network], xlabel="accuracy lost, points", xlim=(-1, EDGE), ylim=(0, 100))
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("attack success, %")
    for name, colour in COLOURS.items():
        panels[-1].plot([], [], "o", color=colour, label=name)
    for name, marker in MARKERS.items():
        panels[-1].plot([], [], marker, color="black", markerfacecolor="none", label=name)
    panels[-1].plot([], [], "o", color="black", label="set aside (hollow: development)")
    panels[-1].plot([], [], "s", color="#009e73", alpha=0.25, label="the aim")
    figure.legend(loc="outside right upper", frameon=False, fontsize=9)
    return figure


def _points(rows: list[Row]) -> Iterator[tuple[str, str, float, float, bool]]:
    for held_out in (False, True):
        for attack in MARKERS:
            own = [row for row in rows if row["attack"] == attack and row["held_out"] == held_out]
            for defence in COLOURS:
                found = _of(own, defence)
                if found:
                    lost = 100 * (_before(own, attack)[0] - fmean(_number(row, "accuracy") for row in found))
                    yield defence, attack, lost, fmean(_number(row, "asr") for row in found), held_out


def _before(rows: list[Row], attack: str, like: Row | None = None) -> tuple[float, float | None]:
    """Accuracy and attack success of the network as it came; of the one of a row if it is given."""
    found = [row for row in rows if row["defence"] == "nothing" and row["attack"] == attack]
    if like is not None:
        found = [row for row in found if row["network"] == like["network"] and row["seed"] == like["seed"]]
    asr = [_number(row, "asr") for row in found if row["asr"] is not None]
    return fmean(_number(row, "accuracy") for row in found), fmean(asr) if asr else None


def _lost(rows: list[Row], attack: str, defence: str, before: float) -> str:
    found = [row for row in _of(rows, defence) if row["attack"] == attack]
    if not found:
        return ""
    asr = [_number(row, "asr") for row in found if row["asr"] is not None]
    lost = before - fmean(_number(row, "accuracy") for row in found)
    return _cell(100 * lost, fmean(asr) if asr else None)


def _of(rows: list[Row], defence: str) -> list[Row]:
    """The rows of a defence with the images of the main tables, or with none if it takes none."""
    return [row for row in rows if row["defence"] == defence and row["images"] in (0, COUNT)]


def _defences(rows: list[Row]) -> list[str]:
    names = list(dict.fromkeys(str(row["defence"]) for row in rows if row["defence"] != "nothing"))
    return sorted(names, key=lambda name: name != "defend")


def _name(defence: str) -> str:
    return f"**{defence}**" if defence == "defend" else defence


def _uses(defence: str) -> str:
    """What a defence needs besides the network."""
    needs = DEFENCES[defence]
    words = ["labels" if needs.labels else "inputs"] if needs.data else []
    return ", ".join([*words, "initial weights"] if needs.initial else words)


def _cell(points: float, asr: float | None, sign: str = "+") -> str:
    shown = f"{round(-points, 1) + 0.0:{sign}.1f}" if sign else f"{points:.1f}"  # no -0.0
    return shown if asr is None else f"{shown} / {100 * asr:.1f}"


def _number(row: Row, name: str) -> float:
    value = row[name]
    return float(value) if isinstance(value, int | float) else float("nan")


def _table(columns: Sequence[str], lines: Sequence[Sequence[str]]) -> list[str]:
    words = {"defence", "uses", "network", "attack"}
    ruler = "|".join("---" if name in words else "---:" for name in columns)
    return [f"| {' | '.join(columns)} |", f"|{ruler}|", *(f"| {' | '.join(line)} |" for line in lines), ""]
