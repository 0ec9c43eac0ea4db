"""``netpurify hunt``: is there a backdoor? Nothing is changed or written but reports."""

# No ``from __future__ import annotations`` here: the fields below are options, whose types the parser reads.
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

import netpurify
from netpurify.cli import options
from netpurify.cli.factory import prints_aside
from netpurify.cli.groups import with_groups
from netpurify.cli.hunting import Material, Search, show_hunt
from netpurify.cli.outputs import SCREEN, all_or_none, check_drawing, check_outputs, write_reports
from netpurify.cli.report_options import with_report_options
from netpurify.cli.sources import check_sources, count_inputs


@dataclass(frozen=True, slots=True)
class HuntManner:
    """How much is said."""

    quiet: options.Quiet = False
    verbose: Annotated[bool, typer.Option("--verbose", help="List every class of every family.")] = False


@with_report_options("hunt")
@with_groups
def hunt(material: Material, search: Search, manner: HuntManner, reports: dict[str, Path | None]) -> int:
    """Hunt for a backdoor in an image network; nothing is changed, and nothing is written but reports.

    Families of triggers are searched for ones that send clean images of all classes to one class. A class that stands
    out further than in healthy networks is suspect. Needs some hundred clean images and no labels. Example:

    [bold]netpurify hunt poisoned.safetensors --factory package.module:function --data images.npy
    --report page.html[/bold]

    Exit code 0: nothing found, which does not mean that nothing is there; 1: a class is suspect; 2: bad input.
    """
    source = material.source()
    search.check()
    read = [*source.files, search.expected]
    check_sources(read)
    check_outputs(reports.values(), inputs=read)
    check_drawing(reports["page"])
    model, inputs = source.read(source.build(), padded=True)

    from netpurify.cli.findings import show_summary
    from netpurify.cli.progress import hunting

    settings = search.settings(source)
    with prints_aside(), hunting(count_inputs(inputs), search.number, quiet=manner.quiet) as follow:
        result = netpurify.hunt(model, inputs, **settings, progress=follow)
    summary = netpurify.report.summarise(result)
    with all_or_none():
        files = {"weights": source.weights, "data": source.data, "expected": search.expected}
        write_reports(result, reports, {role: path for role, path in files.items() if path is not None})
        if SCREEN not in reports.values():
            if not manner.quiet:
                show_hunt(result, verbose=manner.verbose)
            show_summary(summary, quiet=manner.quiet)
    return summary.exit_code
