"""``netpurify unlearn``: hunt for a backdoor and train it away; what it costs is said before anything is written."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import netpurify
from netpurify.cli.factory import prints_aside
from netpurify.cli.groups import with_groups
from netpurify.cli.hunting import Material, Search, show_hunt, show_hunts
from netpurify.cli.outputs import all_or_none, check_outputs, write_reports
from netpurify.cli.purifying import Target, save
from netpurify.cli.report_options import with_report_options
from netpurify.cli.screen import note, show_line
from netpurify.cli.sources import count_inputs

if TYPE_CHECKING:
    from netpurify.network import Unlearning
    from netpurify.report import Summary


@with_report_options("unlearning")
@with_groups
def unlearn(
    material: Material,
    target: Target,
    search: Search,
    max_disagreement: Annotated[
        float | None,
        typer.Option(min=0.0, max=1.0, metavar="SHARE", help="Refuse if more held-out inputs change class."),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Save the run here now and then; go on from it after an interruption."),
    ] = None,
) -> int:
    """Hunt for a backdoor in an image network and train it away. Weights are trained, and nothing is proven.

    Needs some hundred clean images, no labels and no initial weights. If nothing is suspect, nothing is changed, and
    the weights are written as they came. Example:

    [bold]netpurify unlearn poisoned.safetensors --factory package.module:function --data images.npy
    -o repaired.safetensors --report page.html[/bold]

    Exit code 0: repaired, and nothing is found afterwards; or nothing was suspect and nothing was changed; 1: still
    found after the repair, or a repair that costs more than --max-disagreement; 2: bad input.
    """
    source = material.source()
    search.check()
    target.check(source, more_inputs=[search.expected])
    check_outputs([resume], inputs=[*source.files, search.expected, target.out, *target.reports.values()])
    model, inputs = source.read(source.build(), padded=True)

    from netpurify.cli.progress import unlearning

    policy = netpurify.Unlearn(**search.settings(source), max_disagreement=max_disagreement, resume=resume, keep=True)
    with prints_aside(), unlearning(count_inputs(inputs), search.number, quiet=target.quiet) as follow:
        result = netpurify.network.purify(model, inputs, policy=policy, batch=source.batch, progress=follow)
    summary = netpurify.report.summarise(result)
    with all_or_none():
        _say(result, summary, target)
        save(result, target, source)
        files = {"contaminated": source.weights, "data": source.data, "repaired": target.out}
        files |= {} if search.expected is None else {"expected": search.expected}
        write_reports(result, target.reports, files)
        if not target.on_screen:
            if not result.changed and not target.quiet:
                show_line("nothing was changed: the weights are written as they came, bit for bit")
            target.say_written()
    if resume is not None and result.changed:
        resume.unlink(missing_ok=True)  # only now is the repair somewhere else
    return summary.exit_code


def _say(result: "Unlearning", summary: "Summary", target: Target) -> None:
    """What was found and what it costs; on standard error where a record goes to standard output."""
    from netpurify.cli.findings import show_summary

    if target.on_screen:
        for text in [] if target.quiet else summary.texts:
            note(text)
        return
    if not target.quiet:
        if result.after is None:
            show_hunt(result.before, verbose=target.verbose)
        else:
            show_hunts(result.before, result.after)
    show_summary(summary, quiet=target.quiet)
