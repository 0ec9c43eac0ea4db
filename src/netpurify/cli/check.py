"""``netpurify check``: what can be repaired in a network, before anything is done to it."""

import time

import netpurify
from netpurify.cli import options
from netpurify.cli.compiling import compiling
from netpurify.cli.factory import prints_aside
from netpurify.cli.groups import with_groups
from netpurify.cli.outputs import SCREEN, all_or_none, check_outputs, check_printed, write_json
from netpurify.cli.purifying import Source, Start
from netpurify.cli.sources import check_sources


@with_groups
def check(
    source: Source,
    start: Start,
    record: options.JsonOut = None,
    sarif: options.SarifOut = None,
    quiet: options.Quiet = False,  # noqa: FBT002
    verbose: options.Verbose = False,  # noqa: FBT002
) -> int:
    """Say layer by layer what can be repaired, what share of altered weights it survives, and what it will cost.

    The share is simulated on the layer's own clean inputs, for alterations of both signs and for such as lean to one
    sign; a large layer gets fewer simulated columns, or a sample of its rows.

    Example, on the files of [bold]netpurify demo[/bold]:

    [bold]netpurify check netpurify-demo/contaminated.safetensors --factory netpurify.experiments.demo:network
    --initial-seed 0 --data netpurify-demo/inputs.npy[/bold]

    Exit code 0: every layer can be examined; 1: some part cannot be, so that nothing will be known of it;
    2: bad input.
    """
    _ = source.inputs
    start.check()
    read = [*source.files, start.initial]
    check_sources(read)
    check_outputs([record, sarif], inputs=read)
    check_printed(record, sarif)
    build = source.build()
    initial = start.choose(source, build)

    from netpurify.cli.comparisons import show_others
    from netpurify.cli.findings import show_summary
    from netpurify.cli.progress import checking
    from netpurify.cli.tables import show_plan

    model, clean = source.read(build)
    begun = time.monotonic()
    with prints_aside(), compiling(quiet=quiet), checking(quiet=quiet) as follow:
        plan = netpurify.network.check(
            model, clean, initial=initial, layers=source.layers or None, batch=source.batch, progress=follow
        )
    spent = time.monotonic() - begun
    summary = netpurify.report.summarise(plan)
    with all_or_none():
        if record is not None:
            write_json(record, netpurify.report.record(plan))
        if sarif is not None:
            write_json(sarif, netpurify.report.sarif(plan, file=source.weights.as_posix()))
        if SCREEN not in (record, sarif):
            if not quiet:
                show_plan(plan, verbose=verbose)
                show_others(plan.compared, mended=False, verbose=verbose)
            show_summary(summary, quiet=quiet, more=[f"This check took {netpurify.report.duration(spent)}."])
    return summary.exit_code
