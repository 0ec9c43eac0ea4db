"""Every defence on every attack, network and number of clean images: the table of docs/defence-results.md.

    python benchmarks/defence/table.py --quick                  one small network on the bundled sample of MNIST
    python benchmarks/defence/table.py                          the networks on which settings were chosen
    python benchmarks/defence/table.py --full --markdown docs/defence-results.md      everything: a night on two cores

MNIST and CIFAR-10 must have been fetched for the last two. Kill it and start it again: networks go on training where
they were, and no row is made twice. ``--plan`` says what it will cost.
"""

import argparse
import sys
from functools import partial
from pathlib import Path

from netpurify import experiments
from netpurify.findings import Experiment, Mode, TableRow
from rows import COUNTS, DEFENCES, PUBLISHED, defended, trained
from scenarios import ATTACKS, DEVELOPMENT, QUICK, SETTINGS

SECONDS = {"nothing": 0.0, "CLP": 0.0, "fine-tuning": 35.0, "fine-pruning": 40.0, "ANP": 120.0, "Algorithm 2": 15.0,
           "least squares": 15.0, "defend": 35.0}  # fmt: skip
"""About what each takes on a network for CIFAR-10 with 1,000 images."""


def networks(mode: Mode) -> list[TableRow]:
    """Which networks a mode is about."""
    scenarios = {"quick": QUICK, "default": DEVELOPMENT}.get(mode)
    if scenarios is None:
        return [
            {"network": network, "attack": attack}
            for network in SETTINGS
            if network != "sample_cnn"
            for attack in ATTACKS
        ]
    return [{"network": one.network, "attack": one.attack} for one in scenarios]


def defences(mode: Mode) -> list[TableRow]:
    """Every defence on each of them; those without data once, ANP with 500 images only."""
    cells = []
    for cell in networks(mode):
        for name, defence in DEFENCES.items():
            counts = (500,) if name == "ANP" else COUNTS if defence.data else (0,)
            cells.extend(cell | {"defence": name, "images": count} for count in counts)
    return cells


def training(folder: Path) -> Experiment:
    """Training every network once, so that no two defences train the same one at the same time."""
    return Experiment(
        name="defence-networks",
        title="networks trained on poisoned data",
        grid=networks,
        trial=partial(trained, folder=str(folder)),
        cost=lambda cell: {"resnet": 450.0, "vgg": 350.0}.get(str(cell["network"]), 20.0),
        trials={"quick": 1, "default": 1, "full": 3},
    )


def table(folder: Path) -> Experiment:
    """Every defence on every network."""

    def cost(cell: TableRow) -> float:
        share = 0.1 if "cnn" in str(cell["network"]) else 1.0
        name, images = str(cell["defence"]), int(cell["images"] or 0)
        if name == "Algorithm 2" and images < 500:  # only then do the inputs leave it something to solve
            return 5.0 + share * 100.0
        return 5.0 + share * SECONDS.get(name, 30.0) * images / 1000

    return Experiment(
        name="defences",
        title="defences on poisoned networks",
        grid=defences,
        trial=partial(defended, folder=str(folder)),
        cost=cost,
        trials={"quick": 1, "default": 1, "full": 3},
    )


def published(folder: Path) -> Experiment:
    """Fine-tuning and fine-pruning as long as published, on one of three seeds: how much the shorter ones miss."""
    return Experiment(
        name="defences-published",
        title="published epochs",
        grid=lambda mode: [cell | {"defence": name, "images": 500} for cell in networks(mode) for name in PUBLISHED],
        trial=partial(defended, folder=str(folder)),
        cost=lambda cell: 15.0 if "cnn" in str(cell["network"]) else 95.0,
        trials={"quick": 1, "default": 1, "full": 1},
    )


def main() -> None:
    """Run what is missing, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument("--quick", action="store_const", dest="mode", const="quick", default="default")
    modes.add_argument("--full", action="store_const", dest="mode", const="full")
    parser.add_argument("--folder", type=Path, default=Path("defence-results"), help="tables, journals and networks")
    parser.add_argument("--jobs", type=int, help="rows at the same time; all cores unless given")
    parser.add_argument("--plan", action="store_true", help="say what it will cost, and stop")
    parser.add_argument("--markdown", type=Path, help="write the page and its figure here")
    given = parser.parse_args()
    for make in (training, table, published):
        experiment = make(given.folder / "networks")
        plan = experiments.plan(experiment, folder=given.folder, mode=given.mode, jobs=given.jobs)
        left = f"{plan.total - plan.done} of {plan.total} left, about {plan.wall_seconds / 60:.0f} min"
        print(f"{experiment.title}: {left} on {plan.workers} workers", flush=True)
        if not given.plan:
            path = experiments.run(experiment, folder=given.folder, mode=given.mode, jobs=given.jobs, progress=_show)
            print(f"\n{path}", flush=True)
    if given.markdown is not None:
        from page import write

        write(given.folder, given.markdown, given.mode)


def _show(state: experiments.RunProgress) -> None:
    left = "" if state.remaining is None else f", {state.remaining / 60:.0f} min left"
    end = "\r" if sys.stderr.isatty() else "\n"
    print(f"{state.done} of {state.total}, {state.failed} failed{left}    ", end=end, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
