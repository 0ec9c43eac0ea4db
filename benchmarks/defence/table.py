"""Every defence on every attack, network and number of clean images: the table of docs/defence-results.md.

    python benchmarks/defence/table.py --quick                  one small network on the bundled sample of MNIST
    python benchmarks/defence/table.py                          the networks on which settings were chosen
    python benchmarks/defence/table.py --full --markdown docs/defence-results.md      everything: a night on two cores

MNIST and CIFAR-10 must have been fetched for the last two. Kill it and start it again: networks go on training where
they were, and no row is made twice. ``--plan`` says what it will cost.
"""

import argparse
import sys
import time
from functools import cache, partial
from pathlib import Path

import torch
from torch import Tensor, nn

from baselines import BASELINES, AdversarialPruning, Baseline, FinePruning, Finetuning
from netpurify import experiments
from netpurify.contaminate import accuracy, measure
from netpurify.experiments import Experiment, Mode, Row
from netpurify.paper.threads import one_thread
from ours import Defend
from scenarios import ATTACKS, DEVELOPMENT, QUICK, SETTINGS, TESTED, Scenario, images_of

COUNTS = (50, 100, 500, 1000)
SHORTER = Finetuning(epochs=20)
"""A fifth of the published epochs: with them these two alone would take two nights."""
SHORTENED: dict[str, Baseline] = {
    "fine-tuning": SHORTER,
    "fine-pruning": FinePruning(tuning=SHORTER),
    "ANP": AdversarialPruning(iterations=200),
}
DEFENCES: dict[str, Baseline] = {one.name: SHORTENED.get(one.name, one) for one in (*BASELINES, Defend())}
SECONDS = {"nothing": 0.0, "CLP": 0.0, "fine-tuning": 30.0, "fine-pruning": 35.0, "ANP": 60.0, "Algorithm 2": 15.0,
           "least squares": 15.0, "defend": 60.0}  # fmt: skip
"""About what each takes on a network for CIFAR-10 with 1,000 images."""


def networks(mode: Mode) -> list[Row]:
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


def defences(mode: Mode) -> list[Row]:
    """Every defence on each of them; those without data once, ANP with 500 images only."""
    cells = []
    for cell in networks(mode):
        for name, defence in DEFENCES.items():
            counts = (500,) if name == "ANP" else COUNTS if defence.data else (0,)
            cells.extend(cell | {"defence": name, "images": count} for count in counts)
    return cells


def trained(settings: Row, seed: int, *, folder: str) -> list[Row]:
    """Train one network, or find that it is there."""
    scenario = Scenario(str(settings["network"]), str(settings["attack"]), seed)
    found = scenario.train(Path(folder))
    before = _classes(found.model, tested(scenario.network)[0])
    return [judge(scenario, found.model, before) | {"training_seconds": found.seconds}]


def defended(settings: Row, seed: int, *, folder: str) -> list[Row]:
    """Let one defence repair one network, and judge what comes out."""
    scenario = Scenario(str(settings["network"]), str(settings["attack"]), seed)
    defence = DEFENCES[str(settings["defence"])]
    with one_thread():
        network, before = _network(scenario, folder)
        images, labels = scenario.clean(int(settings["images"] or COUNTS[0]))
        initial = scenario.initial() if defence.initial else None
        start = _memory("VmRSS")
        _forget_peak()
        begun = time.perf_counter()
        repaired = defence.repair(network, images, labels, initial=initial, seed=seed)
        seconds = time.perf_counter() - begun
        megabytes = max(0.0, _memory("VmHWM") - start) / 1024
        found = judge(scenario, repaired, before)
    return [found | {"labels": defence.labels, "repair_seconds": seconds, "megabytes": megabytes}]


@cache
def _network(scenario: Scenario, folder: str) -> tuple[nn.Module, Tensor]:
    """A trained network and its classes of the test images, once in each worker: its digest is that of all its data."""
    network = scenario.train(Path(folder)).model
    return network, _classes(network, tested(scenario.network)[0])


@cache
def tested(network: str) -> tuple[Tensor, Tensor]:
    """The test images that a network is judged on, and their labels."""
    images, labels = images_of(SETTINGS[network].data, "test")
    chosen = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))[:TESTED]
    return images[chosen], labels[chosen]


def judge(scenario: Scenario, repaired: nn.Module, before: Tensor) -> Row:
    """Clean accuracy, what the trigger does, and how many test images change the class that they had before."""
    images, labels = tested(scenario.network)
    changed = (_classes(repaired, images) != before).double().mean().item()
    row: Row = {"held_out": scenario.held_out, "target": scenario.target, "disagreement": changed}
    if scenario.trigger is None:
        return row | {"accuracy": accuracy(repaired, images, labels, batch=250), "asr": None, "ra": None}
    rates = measure(repaired, images, labels, trigger=scenario.trigger, target=scenario.target, batch=250)
    return row | {"accuracy": rates.accuracy, "asr": rates.asr, "ra": rates.ra}


def _classes(network: nn.Module, images: Tensor) -> Tensor:
    with torch.no_grad():
        return torch.cat([network(part).argmax(1) for part in images.split(250)])


def _forget_peak() -> None:
    """Let the system count this process's largest memory from now on; where it cannot, peaks are those so far."""
    if Path("/proc/self/clear_refs").exists():
        Path("/proc/self/clear_refs").write_text("5")


def _memory(field: str) -> float:
    """Kilobytes of this process, by the system's name for them; NaN where it does not say."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((float(line.split()[1]) for line in lines if line.startswith(f"{field}:")), float("nan"))


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

    def cost(cell: Row) -> float:
        share = 0.1 if "cnn" in str(cell["network"]) else 1.0
        return 3.0 + share * SECONDS.get(str(cell["defence"]), 30.0) * int(cell["images"] or 0) / 1000

    return Experiment(
        name="defences",
        title="defences on poisoned networks",
        grid=defences,
        trial=partial(defended, folder=str(folder)),
        cost=cost,
        trials={"quick": 1, "default": 1, "full": 3},
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
    for experiment in (training(given.folder / "networks"), table(given.folder / "networks")):
        plan = experiments.plan(experiment, folder=given.folder, mode=given.mode, jobs=given.jobs)
        left = f"{plan.total - plan.done} of {plan.total} left, about {plan.wall_seconds / 60:.0f} min"
        print(f"{experiment.title}: {left} on {plan.workers} workers", flush=True)
        if not given.plan:
            path = experiments.run(experiment, folder=given.folder, mode=given.mode, jobs=given.jobs, progress=_show)
            print(f"\n{path}", flush=True)
    if given.markdown is not None:
        from page import write

        write(given.folder, given.markdown)


def _show(state: experiments.Progress) -> None:
    left = "" if state.remaining is None else f", {state.remaining / 60:.0f} min left"
    end = "\r" if sys.stderr.isatty() else "\n"
    print(f"{state.done} of {state.total}, {state.failed} failed{left}    ", end=end, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
