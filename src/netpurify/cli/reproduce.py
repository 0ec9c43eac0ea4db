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
from netpurify.cli.experiment_runs import (
    RunOptions,
    make_folders,
    need_data,
    say_cost,
    show_plans,
)
from netpurify.cli.groups import with_groups
from netpurify.cli.outputs import all_or_none, check_drawing, check_outputs
from netpurify.cli.screen import complain, show_line, show_table
from netpurify.errors import InputError
from netpurify.report import duration, plural

if TYPE_CHECKING:
    from netpurify import report
    from netpurify.findings import Experiment, Mode


@with_groups
def reproduce(
    run: RunOptions,
    figures: Annotated[
        list[int] | None, typer.Argument(help="Numbers of figures, 2 to 13; all if none is given.")
    ] = None,
    trials: Annotated[
        int | None, typer.Option(min=1, max=10**6, help="Trials of each cell, instead of the mode's number.")
    ] = None,
    page: Annotated[Path | None, typer.Option("--report", help="Write the page with plots and claims here.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write it as Markdown here, with plots beside it.")] = None,
) -> None:
    """Measure the figures of the paper; what is done is never done again, whatever interrupts it.

    Example: [bold]netpurify reproduce 8 --quick --report figure8.html[/bold] (no download needed)
    """
    mode = run.mode
    numbers = _numbers(figures)
    run.check()

    from netpurify.experiments import figures as paper

    chosen = {paper.FIGURES[number].experiment.name: paper.FIGURES[number].experiment for number in numbers}
    start = time.monotonic()
    tables = run.tables
    if tables is None:
        plans = run.plans([*chosen.values()], trials)
        say_cost(plans)
        if run.dry:
            show_plans(plans)
            return
        need_data(_data_sets(chosen.values(), mode), "choose figures that do not need")
        make_folders([page, markdown])
        check_outputs([page, markdown], inputs=[])
        check_drawing(page or markdown)
        tables = run.run([*chosen.values()], trials)
    rows = {name: netpurify.findings.read_table(_table(tables, name)) for name in chosen}
    results = [
        netpurify.report.FigureResult(paper.FIGURES[number], rows[paper.FIGURES[number].experiment.name], mode=mode)
        for number in numbers
    ]
    _show_findings(results)
    _show_failures(results)
    about = _about(mode, trials, time.monotonic() - start, results)
    with all_or_none():
        if page:
            netpurify.report.save(page, netpurify.report.reproduction_page(results, about=about))
            show_line(f"page: {page}")
        if markdown:
            _write_markdown(markdown, results, about)
    raise typer.Exit(1 if any(result.failures for result in results) else 0)


def _table(folder: Path, name: str) -> Path:
    found = [path for path in (folder / f"{name}.csv", folder / f"{name}.csv.gz") if path.is_file()]
    if not found:
        raise InputError(f"--tables must hold {name}.csv or {name}.csv.gz; {folder} has neither; choose other figures")
    return found[0]


def _numbers(figures: list[int] | None) -> list[int]:
    unknown = [number for number in figures or () if number not in options.FIGURES]
    if unknown:
        raise InputError(f"figures are numbered {options.FIGURES[0]} to {options.FIGURES[-1]}; got {unknown}")
    return sorted(set(figures or options.FIGURES))


def _data_sets(chosen: Iterable[Experiment], mode: Mode) -> set[str]:
    """The data sets that some experiments need."""
    cells = [trial.settings for one in chosen for trial in netpurify.experiments.trials_of(one, mode=mode, trials=1)]
    return {str(cell["data"]) for cell in cells if "data" in cell}


def _about(mode: Mode, trials: int | None, seconds: float, results: list[report.FigureResult]) -> dict[str, str]:
    chosen = f" --trials {trials}" if trials else ""
    flag = "" if mode == "default" else f" --{mode}"
    figures = "".join(f" {result.figure.number}" for result in results) if len(results) < len(options.FIGURES) else ""
    tables = {result.figure.experiment.name: result for result in results}
    spent = sum(
        netpurify.experiments.core_seconds(result.figure.experiment, result.rows, mode=mode)
        for result in tables.values()
    )
    return {
        "Command": f"netpurify reproduce{figures}{flag}{chosen}",
        "Version": netpurify.__version__,
        "Machine": f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}",
        "Time": f"{duration(spent)} of one core in all trials; this call took {duration(seconds)}",
    }


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


def _show_findings(results: list[report.FigureResult]) -> None:
    rows = [
        (
            str(result.figure.number),
            finding.claim,
            finding.measured,
            str(finding.by_measure),
            str(finding.against_nothing or "-"),
        )
        for result in results
        for finding in result.findings
    ]
    show_table("", ("figure", "the paper's claim", "measured", "by the paper's measure", "against doing nothing"), rows)


def _show_failures(results: list[report.FigureResult]) -> None:
    for result in results:
        for failure in result.failures:
            trials = plural(failure.count, "trial")
            complain(f"figure {result.figure.number}: {trials} failed: {failure.reason} ({failure.trials})")
