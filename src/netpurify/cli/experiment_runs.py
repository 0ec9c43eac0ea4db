"""What ``reproduce`` and ``study`` share: options, the cost in advance, progress, and what interrupts a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import netpurify
from netpurify.cli.screen import Bar, complain, note, show_line, show_table
from netpurify.engine import check_engine
from netpurify.errors import DataError, InputError
from netpurify.report import duration, plural

if TYPE_CHECKING:
    from netpurify import experiments
    from netpurify.findings import Experiment, Mode


_OTHER_MODES: dict[Mode, str] = {
    "quick": "",
    "default": "; --quick takes smaller grids, --full all trials",
    "full": "",
}
"""What is said of other modes to somebody who chose none."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Which trials are run, and where; each field is an option of the command line."""

    quick: Annotated[bool, typer.Option("--quick", help="Small grids, one or two trials: minutes.")] = False
    full: Annotated[bool, typer.Option("--full", help="Full grids and numbers of trials: hours.")] = False
    jobs: Annotated[
        int | None, typer.Option(min=1, max=10**6, help="Trials at the same time; all cores if not given.")
    ] = None
    engine: Annotated[str, typer.Option(help="processes, inline, dask, dask://host:port, ray or ray://host:port.")] = (
        "processes"
    )
    folder: Annotated[Path, typer.Option(help="Where tables are kept; a second run goes on from there.")] = Path(
        "results"
    )
    tables: Annotated[Path | None, typer.Option(help="Run nothing; read finished tables from this folder.")] = None
    dry: Annotated[bool, typer.Option("--plan", help="Only say what it would cost.")] = False

    @property
    def mode(self) -> Mode:
        """The mode of the grids.

        Raises:
            InputError: Two modes are given.
        """
        if self.quick and self.full:
            raise InputError("--quick and --full exclude each other; give one of them, or none for a few trials of all")
        return "quick" if self.quick else "full" if self.full else "default"

    def check(self) -> None:
        """Refuse options that have no meaning, before anything is loaded.

        Raises:
            InputError: Two modes, or an unknown engine.
        """
        _ = self.mode
        check_engine(self.engine, self.jobs)

    def plans(self, chosen: Sequence[Experiment], trials: int | None = None) -> dict[str, experiments.RunPlan]:
        """What a run would cost, by the name of the experiment."""
        how = self._how(trials)
        return {experiment.name: netpurify.experiments.plan(experiment, **how) for experiment in chosen}

    def run(self, chosen: Sequence[Experiment], trials: int | None = None) -> Path:
        """Run all experiments, one after the other, and give the folder of their tables.

        Raises:
            Exit: The run was interrupted; finished trials are kept.
        """
        how = self._how(trials)
        try:
            for experiment in chosen:
                with Bar(experiment.name) as bar:
                    netpurify.experiments.run(experiment, progress=bar.follow, **how)
        except KeyboardInterrupt:
            complain("interrupted; trials that were finished are kept, and the same command goes on from there")
            raise typer.Exit(130) from None
        show_line(f"tables: {how['folder']}")
        return how["folder"]

    def _how(self, trials: int | None) -> dict[str, Any]:
        folder = self.folder / self.mode
        return {"folder": folder, "mode": self.mode, "trials": trials, "engine": self.engine, "jobs": self.jobs}


def say_cost(plans: dict[str, experiments.RunPlan], mode: Mode) -> None:
    """Say in one line what is left to do, and in which mode."""
    left = sum(plan.wall_seconds for plan in plans.values())
    missing = sum(plan.total - plan.done for plan in plans.values())
    workers = max(plan.workers for plan in plans.values())
    note(
        f"mode {mode}: {plural(len(plans), 'experiment')}, {plural(missing, 'trial')} to run, about "
        f"{duration(left)} on {plural(workers, 'worker')}{_OTHER_MODES[mode]}"
    )


def show_plans(plans: dict[str, experiments.RunPlan]) -> None:
    """Show what is done and what is left, for each experiment."""
    rows = [
        (name, str(plan.total), str(plan.done), duration(plan.seconds), duration(plan.wall_seconds))
        for name, plan in plans.items()
    ]
    show_table("", ("experiment", "trials", "done", "core time left", "time left"), rows, numbers=(1, 2, 3, 4))


def need_data(names: Iterable[str], remedy: str) -> None:
    """Fail before anything is run, and not in every trial.

    Raises:
        DataError: A data set was not fetched.
    """
    for name in sorted(set(names)):
        try:
            netpurify.data.load(name, split="train")
            netpurify.data.load(name, split="test")
        except DataError as problem:
            raise DataError(f"{problem}; or {remedy} {name}") from problem


def make_folders(paths: Iterable[Path | None]) -> None:
    """Make the folders of outputs.

    Raises:
        InputError: A folder cannot be made.
    """
    for path in paths:
        if path is None:
            continue
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise InputError(f"{path} cannot be written ({problem.strerror}); name a file elsewhere") from problem
