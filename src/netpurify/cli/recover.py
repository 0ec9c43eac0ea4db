"""``netpurify recover``: altered weights named and replaced, with a proof."""

from typing import Annotated

import typer

import netpurify
from netpurify.cli import options
from netpurify.cli.groups import with_groups
from netpurify.cli.purifying import Fits, Source, Start, Target, repair
from netpurify.cli.report_options import with_report_options


@with_report_options("purification")
@with_groups
def recover(
    source: Source,
    target: Target,
    start: Start,
    fits: Fits,
    decay: Annotated[float | None, typer.Option(help="Factor that weight decay left; else it is estimated.")] = None,
    frozen: options.Frozen = None,
) -> int:
    """Find and replace weights that were altered after training: noise, bit flips, tampering.

    Needs the weights before training and a few clean inputs; no labels. All other weights keep their exact bits.
    Example, on the files of [bold]netpurify demo[/bold]:

    [bold]netpurify recover netpurify-demo/contaminated.safetensors --factory netpurify.experiments.demo:network
    --initial-seed 0 --data netpurify-demo/inputs.npy -o purified.safetensors --proof proof.safetensors[/bold]

    Exit code 0: nothing found; 1: altered weights, units without enough evidence, or layers that could not be examined;
    2: bad input.
    """
    _ = source.inputs
    fits.check()
    options.check_finite("--decay", decay)
    start.check(needed="recover")
    target.check(source, more_inputs=[start.initial], proof=fits.proof)
    build = source.build()
    initial = start.choose(source, build)
    policy = netpurify.Recover(initial, decay=decay, frozen=tuple(frozen or ()), **fits.fields)
    return repair(policy, source, target, build=build, start=start, fits=fits)
