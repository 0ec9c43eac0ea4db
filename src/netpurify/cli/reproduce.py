"""``netpurify reproduce``: the paper's figures, measured, as tables, plots and one page."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import netpurify
from netpurify.cli import options
from netpurify.cli.outputs import all_or_none, check_drawing, check_outputs
from netpurify.cli.screen import Bar, complain, note, show_line, show_table
from netpurify.engine import check_engine
from netpurify.errors import DataError, InputError
from netpurify.report import duration, plural

if TYPE_CHECKING:
    from netpurify import experiments, report
    from netpurify.findings import Experiment, Mode, TableRow


def reproduce(
    figures: Annotated[
        list[int] | None, typer.Argument(help="Numbers of figures, 2 to 13; all if none is given.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small grids, one or two trials: minutes.")] = False,  # noqa: FBT002
    full: Annotated[bool, typer.Option("--full", help="The paper's own numbers of trials: hours.")] = False,  # noqa: FBT002
    trials: Annotated[
        int | None, typer.Option(min=1, max=10**6, help="Trials of each cell, instead of the mode's number.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, max=10**6, help="Trials at the same time; all cores if not given.")
    ] = None,
    engine: Annotated[
        str, typer.Option(help="processes, inline, dask://host:port, ray or ray://host:port.")
    ] = "processes",
    folder: Annotated[Path, typer.Option(help="Where tables are kept; a second run goes on from there.")] = Path(
        "results"
    ),
    page: Annotated[Path | None, typer.Option("--report", help="Write the page with plots and claims here.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write it as Markdown here, with plots beside it.")] = None,
    tables: Annotated[Path | None, typer.Option(help="Run nothing; read finished tables from this folder.")] = None,
    dry: Annotated[bool, typer.Option("--plan", help="Only say what it would cost.")] = False,  # noqa: FBT002
) -> None:
    """Measure the figures of the paper; what is done is never done again, whatever interrupts it.

    Example: [bold]netpurify reproduce 8 --quick --report figure8.html[/bold] (no download needed)
    """
    mode = _mode(quick=quick, full=full)
    numbers = _numbers(figures)
    check_engine(engine, jobs)

    from netpurify.experiments.figures import FIGURES

    chosen = {FIGURES[number].experiment.name: FIGURES[number].experiment for number in numbers}
    start = time.monotonic()
    if tables:
        paths = {name: _table(tables, name) for name in chosen}
    else:
        how = {"folder": folder / mode, "mode": mode, "trials": trials, "engine": engine, "jobs": jobs}
        plans = {name: netpurify.experiments.plan(experiment, **how) for name, experiment in chosen.items()}
        _say_cost(plans)
        if dry:
            _show_plans(plans)
            return
        _need_data(chosen.values(), mode)
        _make_folders(path for path in (page, markdown) if path is not None)
        check_outputs([page, markdown], inputs=[])
        check_drawing(page or markdown)
        paths = {}
        try:
            for name, experiment in chosen.items():
                with Bar(name) as bar:
                    paths[name] = netpurify.experiments.run(experiment, progress=bar.follow, **how)
        except KeyboardInterrupt:
            complain("interrupted; trials that were finished are kept, and the same command goes on from there")
            raise typer.Exit(130) from None
        show_line(f"tables: {folder / mode}")
    rows = {name: netpurify.findings.read_table(path) for name, path in paths.items()}
    results = [
        netpurify.report.FigureResult(FIGURES[number], rows[FIGURES[number].experiment.name], mode=mode)
        for number in numbers
    ]
    _show_findings(results)
    for result in results:
        for failure in result.failures:
            complain(
                f"figure {result.figure.number}: {plural(failure.count, 'trial')} failed: {failure.reason} "
                f"({failure.trials})"
            )
    about = _about(mode, trials, time.monotonic() - start, results)
    with all_or_none():
        if page:
            netpurify.report.save(page, netpurify.report.reproduction_page(results, about=about))
            show_line(f"page: {page}")
        if markdown:
            _write_markdown(markdown, results, about)
    raise typer.Exit(1 if any(result.failures for result in results) else 0)


def _say_cost(plans: dict[str, experiments.RunPlan]) -> None:
    left = sum(plan.wall_seconds for plan in plans.values())
    missing = sum(plan.total - plan.done for plan in plans.values())
    workers = max(plan.workers for plan in plans.values())
    note(
        f"{plural(len(plans), 'experiment')}, {plural(missing, 'trial')} to run, about {duration(left)} on "
        f"{plural(workers, 'worker')}"
    )


def _table(folder: Path, name: str) -> Path:
    found = [path for path in (folder / f"{name}.csv", folder / f"{name}.csv.gz") if path.is_file()]
    if not found:
        raise InputError(f"--tables must hold {name}.csv or {name}.csv.gz; {folder} has neither; choose other figures")
    return found[0]


def _make_folders(paths: Iterable[Path]) -> None:
    for path in paths:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise InputError(f"{path} cannot be written ({problem.strerror}); name a file elsewhere") from problem


def _mode(*, quick: bool, full: bool) -> Mode:
    if quick and full:
        raise InputError("--quick and --full exclude each other; give one of them, or none for a few trials of all")
    return "quick" if quick else "full" if full else "default"


def _numbers(figures: list[int] | None) -> list[int]:
    unknown = [number for number in figures or () if number not in options.FIGURES]
    if unknown:
        raise InputError(f"figures are numbered {options.FIGURES[0]} to {options.FIGURES[-1]}; got {unknown}")
    return sorted(set(figures or options.FIGURES))


def _need_data(chosen: Iterable[Experiment], mode: Mode) -> None:
    """Fails before anything is run, not in every trial."""
    from netpurify.experiments import trials_of

    cells = [trial.settings for experiment in chosen for trial in trials_of(experiment, mode=mode, trials=1)]
    for name in sorted({str(cell["data"]) for cell in cells if "data" in cell}):
        try:
            netpurify.data.load(name, split="train")
            netpurify.data.load(name, split="test")
        except DataError as problem:
            raise DataError(f"{problem}; or choose figures that do not need {name}") from problem


def _about(mode: Mode, trials: int | None, seconds: float, results: list[report.FigureResult]) -> dict[str, str]:
    chosen = f" --trials {trials}" if trials else ""
    flag = "" if mode == "default" else f" --{mode}"
    figures = "".join(f" {result.figure.number}" for result in results) if len(results) < len(options.FIGURES) else ""
    tables = {result.figure.experiment.name: result for result in results}
    spent = sum(float(row["seconds"] or 0.0) for result in tables.values() for row in _first_rows(result))
    return {
        "Command": f"netpurify reproduce{figures}{flag}{chosen}",
        "Version": netpurify.__version__,
        "Machine": f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}",
        "Time": f"{duration(spent)} of one core in all trials; this call took {duration(seconds)}",
    }


def _first_rows(result: report.FigureResult) -> list[TableRow]:
    """One row of each trial."""
    names = list(result.figure.experiment.grid(result.mode)[0])
    return [rows[0] for rows in netpurify.findings.group(result.rows, [*names, "trial"]).values()]


def _write_markdown(path: Path, results: list[report.FigureResult], about: dict[str, str]) -> None:
    pictures = {result.figure.number: netpurify.report.plot(result) for result in results}
    for number, picture in pictures.items():
        if picture is not None:
            netpurify.report.save(path.parent / "figures" / f"figure{number:02}.svg", picture)
    text = netpurify.report.reproduction_markdown(
        results, about=about, images=lambda number: f"figures/figure{number:02}.svg"
    )
    netpurify.report.save(path, text)
    show_line(f"markdown: {path}")


def _show_plans(plans: dict[str, experiments.RunPlan]) -> None:
    rows = [
        (name, str(plan.total), str(plan.done), duration(plan.seconds), duration(plan.wall_seconds))
        for name, plan in plans.items()
    ]
    show_table("", ("experiment", "trials", "done", "core time left", "time left"), rows, numbers=(1, 2, 3, 4))


def _show_findings(results: list[report.FigureResult]) -> None:
    rows = [
        (str(result.figure.number), finding.claim, finding.measured, str(finding.verdict))
        for result in results
        for finding in result.findings
    ]
    show_table("", ("figure", "the paper's claim", "measured", "verdict"), rows)
