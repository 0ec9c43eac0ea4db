"""``netpurify study``: measurements of this library itself, as tables and pages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from netpurify.cli import options
from netpurify.cli.experiment_runs import RunOptions, make_folders, need_data, say_cost, show_plans
from netpurify.cli.groups import with_groups
from netpurify.cli.outputs import all_or_none, check_drawing, check_outputs
from netpurify.cli.screen import complain, note, show_line
from netpurify.errors import InputError
from netpurify.report import plural


@with_groups
def study(
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"Which study: {', '.join(options.STUDIES)}.")],
    run: RunOptions,
    markdown: Annotated[
        Path | None, typer.Option(help="Write its page here, with drawings and tables beside it.")
    ] = None,
    extend: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Count the trials in the tables of this folder as done."),
    ] = None,
) -> None:
    """Measure this library itself: defences compared, what is recovered, what is left alone, where the limits are.

    Example: [bold]netpurify study recovery --quick --markdown recovery.md[/bold] (no download needed)
    """
    if name not in options.STUDIES:
        raise InputError(f"the study must be one of {', '.join(options.STUDIES)}; got {name!r}")
    run.check()
    if extend is not None and (run.dry or run.tables is not None):
        raise InputError("--extend goes with a run; leave it out beside --plan and --tables")

    from netpurify.experiments.studies import STUDIES, failed_trials, require_libraries, take_up, write_page

    chosen = STUDIES[name]
    experiments = chosen.experiments(run.folder)
    tables = run.tables
    if tables is None:
        if run.dry:
            plans = run.plans(experiments)
            say_cost(plans, run.mode)
            show_plans(plans)
            return
        require_libraries(chosen)
        need_data(chosen.data_sets(run.mode), "give --quick, which does not need")
        make_folders([markdown])
        check_outputs([markdown], inputs=[])
        check_drawing(markdown)
        if extend is not None:
            taken = take_up(experiments, extend, folder=run.folder / run.mode, mode=run.mode)
            note(f"{plural(taken, 'trial')} taken from {extend}")
        say_cost(run.plans(experiments), run.mode)
        tables = run.run(experiments)
    failures = [row for experiment in experiments for row in failed_trials(experiment, tables)]
    for row in failures:
        complain(f"{row['experiment']}: a trial failed: {row['failure']}")
    if markdown:
        with all_or_none():
            write_page(chosen, markdown, tables=tables, mode=run.mode)
            show_line(f"page: {markdown}")
    if failures:
        complain(f"{plural(len(failures), 'trial')} failed; the same command tries them again")
    raise typer.Exit(1 if failures else 0)
