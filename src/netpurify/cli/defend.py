"""``netpurify defend``: what it costs is said before anything is written."""

import math
from typing import TYPE_CHECKING, Annotated, Literal

import typer

import netpurify
from netpurify.cli.factory import prints_aside
from netpurify.cli.groups import with_groups
from netpurify.cli.model_folders import writes_folder
from netpurify.cli.outputs import all_or_none, write_reports
from netpurify.cli.purifying import Source, Target, save
from netpurify.cli.report_options import with_report_options
from netpurify.cli.screen import note
from netpurify.cli.sources import count_inputs
from netpurify.errors import InputError

if TYPE_CHECKING:
    from netpurify.network import Defence
    from netpurify.report import Summary


@with_report_options("defence")
@with_groups
def defend(
    source: Source,
    target: Target,
    strength: Annotated[
        str, typer.Option(metavar="auto|NUMBER", help="How much to forget; auto chooses without labels.")
    ] = "auto",
    no_guard: Annotated[  # noqa: FBT002
        bool, typer.Option("--no-guard", help="Change weights only, keep no channel in range.")
    ] = False,
    max_disagreement: Annotated[
        float | None,
        typer.Option(min=0.0, max=1.0, metavar="SHARE", help="Refuse if more held-out inputs change class."),
    ] = None,
) -> int:
    """Make a deep network that was poisoned in training forget what clean inputs cannot justify. Nothing is proven.

    Needs a few hundred clean inputs, no labels and no initial weights. Example:

    [bold]netpurify defend poisoned.safetensors --factory package.module:function --data inputs.npy
    -o defended.safetensors --report page.html[/bold]

    Exit code 0: defended; 1: layers that could not be defended, or a defence that costs more than --max-disagreement;
    2: bad input.
    """
    _ = source.inputs
    policy_strength = parse_strength(strength)
    target.check(source)
    if writes_folder(source.weights, target.out) and not no_guard:
        raise InputError(
            f"{target.out} would be a folder, which has no place for the guards of a defended network; give "
            "--no-guard, or -o a name that ends in .safetensors"
        )
    model, inputs = source.read(source.build(), padded=True)

    from netpurify.cli.progress import sweeps

    with prints_aside(), sweeps(count_inputs(inputs), quiet=target.quiet) as follow:
        policy = netpurify.Defend(policy_strength, guard=not no_guard, max_disagreement=max_disagreement)
        result = netpurify.network.purify(
            model, inputs, policy=policy, layers=source.layers or None, batch=source.batch, progress=follow
        )
    summary = netpurify.report.summarise(result)
    with all_or_none():
        _say(result, summary, target)
        save(result, target, source)
        files = {"contaminated": source.weights, "data": source.data, "defended": target.out}
        write_reports(result, target.reports, files)
        if not target.on_screen:
            target.say_written()
    return summary.exit_code


def parse_strength(text: str) -> float | Literal["auto"]:
    """The strength that was written.

    Raises:
        InputError: It is neither ``auto`` nor a number above 0.
    """
    if text == "auto":
        return "auto"
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0.0 < number < math.inf:
        raise InputError(f"--strength must be auto or a number above 0, such as 0.1; got {text!r}")
    return number


def _say(result: "Defence", summary: "Summary", target: Target) -> None:
    """What it costs and what was forgotten; on standard error where a record goes to standard output."""
    from netpurify.cli.findings import show_summary
    from netpurify.cli.tables import show_fits

    if target.on_screen:
        for text in [] if target.quiet else summary.texts:
            note(text)
        return
    if not target.quiet:
        show_fits(result, verbose=target.verbose)
    show_summary(summary, quiet=target.quiet)
