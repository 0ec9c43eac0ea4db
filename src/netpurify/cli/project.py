"""``netpurify project``: Algorithm 2 of the paper on a network in a file."""

from typing import Annotated

import typer

import netpurify
from netpurify.cli.groups import with_groups
from netpurify.cli.purifying import Fits, Source, Start, Target, repair
from netpurify.cli.report_options import with_report_options
from netpurify.errors import InputError


@with_report_options("purification")
@with_groups
def project(
    source: Source,
    target: Target,
    start: Start,
    fits: Fits,
    rank: Annotated[
        str | None, typer.Option(metavar="N", help="Number of directions to keep, or their share of the energy.")
    ] = None,
) -> int:
    """Give every weight its fitted value (Algorithm 2 of the paper), for weights that were poisoned in training.

    Without initial weights, the weights themselves are fitted. Example, on the files of [bold]netpurify demo[/bold]:

    [bold]netpurify project netpurify-demo/contaminated.safetensors --factory netpurify.experiments.demo:network
    --initial-seed 0 --data netpurify-demo/inputs.npy -o projected.safetensors[/bold]

    Exit code 0: all units were projected; 1: units were left alone, fits have no certificate, or layers could not be
    examined; 2: bad input.
    """
    _ = source.inputs
    directions = parse_rank(rank)
    fits.check()
    start.check()
    target.check(source, more_inputs=[start.initial], proof=fits.proof)
    build = source.build()
    policy = netpurify.Project(start.choose(source, build), rank=directions, **fits.fields)
    return repair(policy, source, target, build=build, start=start, fits=fits)


def parse_rank(text: str | None) -> float | None:
    """The rank that was written.

    Raises:
        InputError: It is not a number.
    """
    if text is None:
        return None
    try:
        return int(text) if text.lstrip("+-").isdecimal() else float(text)
    except ValueError as error:
        raise InputError(
            f"--rank must be a number of directions, such as 36, or a share of energy, such as 0.99; got {text!r}"
        ) from error
