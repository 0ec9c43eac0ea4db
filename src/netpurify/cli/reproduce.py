"""``netpurify reproduce``: the paper's figures, measured, as tables, plots and one page."""

from __future__ import annotations

import gzip
import hashlib
import os
import platform
import shutil
import subprocess
import time
from collections.abc import Iterable
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
from netpurify.cli.screen import complain, note, show_line, show_table
from netpurify.errors import InputError
from netpurify.report import duration, plural

if TYPE_CHECKING:
    from netpurify import report
    from netpurify.findings import Experiment, Mode


@with_groups
def reproduce(
    run: RunOptions,
    figures: Annotated[
        list[int] | None,
        typer.Argument(help="Numbers of figures: 2 to 13 are the paper's, later ones ours; all if none is given."),
    ] = None,
    ours: options.Ours = False,  # noqa: FBT002
    trials: Annotated[
        int | None, typer.Option(min=1, max=10**6, help="Trials of each cell, instead of the mode's number.")
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option(
            "--report",
            help="Write the page with plots and claims here; by default page.html beside the tables of the run.",
        ),
    ] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write it as Markdown here, with plots beside it.")] = None,
) -> None:
    """Measure the figures of the paper; what is done is never done again, whatever interrupts it.

    Example: [bold]netpurify reproduce 8 --quick --report figure8.html[/bold] (no download needed)
    """
    mode = run.mode
    numbers = _numbers(figures, ours=ours)
    run.check()

    from netpurify.experiments import figures as paper

    chosen = {paper.FIGURES[number].experiment.name: paper.FIGURES[number].experiment for number in numbers}
    start = time.monotonic()
    tables = run.tables
    if tables is None:
        plans = run.plans([*chosen.values()], trials)
        say_cost(plans, mode)
        if run.dry:
            show_plans(plans)
            return
        need_data(_data_sets(chosen.values(), mode), "choose figures that do not need")
        page = page or _default_page(run, markdown)
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
    about = _about(run, trials, time.monotonic() - start, results)
    top: dict[str, Any] = {
        "about": about,
        "digests": _digests(tables, results, mode),
        "conclusion": paper.conclusion({result.figure.number: result.findings for result in results}),
    }
    with all_or_none():
        if page:
            text = netpurify.report.reproduction_page(results, **top)
            netpurify.report.save(page, text)
            show_line(f"page: {page}")
        if markdown:
            _write_markdown(markdown, results, top)
    raise typer.Exit(1 if any(result.failures for result in results) else 0)


def _default_page(run: RunOptions, markdown: Path | None) -> Path | None:
    """Beside the tables of the run, where pages can be drawn; none if another page is asked for."""
    if markdown:
        return None
    if find_spec("matplotlib") is None:
        note("no page will be written: drawing needs matplotlib, pip install 'netpurify[report]'")
        return None
    return run.folder / run.mode / "page.html"


def _table(folder: Path, name: str) -> Path:
    found = [path for path in (folder / f"{name}.csv", folder / f"{name}.csv.gz") if path.is_file()]
    if not found:
        raise InputError(f"--tables must hold {name}.csv or {name}.csv.gz; {folder} has neither; choose other figures")
    return found[0]


def _numbers(figures: list[int] | None, *, ours: bool) -> list[int]:
    own = [number for number in options.FIGURES if number > options.LAST_OF_THE_PAPER]
    if ours and figures:
        raise InputError("--ours and numbers of figures exclude each other; give one of them")
    if ours and not own:
        raise InputError("there is no figure that the paper does not have; leave --ours out")
    unknown = [number for number in figures or () if number not in options.FIGURES]
    if unknown:
        raise InputError(f"figures are numbered {options.FIGURES[0]} to {options.FIGURES[-1]}; got {unknown}")
    return sorted(set(figures or (own if ours else options.FIGURES)))


def _data_sets(chosen: Iterable[Experiment], mode: Mode) -> set[str]:
    """The data sets that some experiments need; inputs that a trial draws itself, such as Gaussian ones, are none."""
    cells = [trial.settings for one in chosen for trial in netpurify.experiments.trials_of(one, mode=mode, trials=1)]
    named = {str(cell.get(column)) for cell in cells for column in ("data", "inputs")}
    return named & {*options.DATA_SETS, "mnist-sample"}


def _about(run: RunOptions, trials: int | None, seconds: float, results: list[report.FigureResult]) -> dict[str, str]:
    chosen = f" --trials {trials}" if trials else ""
    flag = "" if run.mode == "default" else f" --{run.mode}"
    figures = "".join(f" {result.figure.number}" for result in results) if len(results) < len(options.FIGURES) else ""
    libraries = [f"{name} {metadata.version(name)}" for name in ("torch", "numpy", "numba")]
    return {
        "Command": f"netpurify reproduce{figures}{flag}{chosen}",
        "Versions": ", ".join(
            [f"netpurify {netpurify.__version__}", f"Python {platform.python_version()}", *libraries]
        ),
        "Commit": f"{_commit()}, the code that made this page",
        "Tables": "made or completed by this command" if run.tables is None else "finished before, read with --tables",
        "Machine": f"{os.cpu_count()} cores, {platform.machine()}",
        "This call": duration(seconds),
    }


def _commit() -> str:
    """The commit of the sources that made the page, if they are in a working copy of git."""
    git = shutil.which("git")
    if git is None:
        return "unknown"
    command = [git, "-C", str(Path(netpurify.__file__).parent), "rev-parse", "HEAD"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout.strip() if found.returncode == 0 else "unknown"


def _digests(tables: Path, results: list[report.FigureResult], mode: Mode) -> dict[str, str]:
    """SHA-256 of the tables that were read, uncompressed, and of the files of the data sets behind them."""
    chosen = {result.figure.experiment.name: result.figure.experiment for result in results}
    found = {f"{name}.csv": _digest(_table(tables, name)) for name in chosen}
    for data in sorted(_data_sets(chosen.values(), mode)):
        found |= {f"{data}: {file}": digest for file, digest in netpurify.data.digests(data).items()}
    return found


def _digest(table: Path) -> str:
    content = table.read_bytes()
    return hashlib.sha256(gzip.decompress(content) if table.suffix == ".gz" else content).hexdigest()


def _write_markdown(path: Path, results: list[report.FigureResult], top: dict[str, Any]) -> None:
    pictures = {result.figure.number: netpurify.report.plot(result) for result in results}
    for number, picture in pictures.items():
        if picture is not None:
            netpurify.report.save(path.parent / "figures" / f"figure{number:02}.svg", picture)
    text = netpurify.report.reproduction_markdown(
        results, images=lambda number: f"figures/figure{number:02}.svg", **top
    )
    netpurify.report.save(path, text)
    show_line(f"markdown: {path}")


def _show_findings(results: list[report.FigureResult]) -> None:
    rows = [
        (str(result.figure.number), finding.claim, finding.measured, str(finding.by_measure),
         str(finding.against_nothing or "-"))
        for result in results
        for finding in result.claims
    ]  # fmt: skip
    if rows:
        columns = ("figure", "the paper's claim", "measured", "by the paper's measure", "against doing nothing")
        show_table("", columns, rows)
        show_line(netpurify.report.counted(results))
    own = [
        (str(result.figure.number), finding.claim, finding.measured, str(finding.by_measure))
        for result in results
        for finding in result.additions
    ]
    if own:
        show_table("what we add", ("figure", "our statement", "measured", "verdict"), own)


def _show_failures(results: list[report.FigureResult]) -> None:
    for result in results:
        for failure in result.failures:
            trials = plural(failure.count, "trial")
            complain(f"figure {result.figure.number}: {trials} failed: {failure.reason} ({failure.trials})")
