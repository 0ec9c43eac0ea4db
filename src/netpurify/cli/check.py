"""``netpurify check``: what can be repaired in a network, before anything is done to it."""

from __future__ import annotations

import typer

import netpurify
from netpurify.cli import options
from netpurify.cli.compiling import compiling
from netpurify.cli.factory import find_factory, prints_aside
from netpurify.cli.outputs import SCREEN, all_or_none, check_outputs, write_json
from netpurify.cli.screen import show_line
from netpurify.cli.sources import Inputs, check_initial, check_sources, choose_initial, read_network


def check(
    weights: options.Weights,
    factory: options.Factory,
    data: options.Data,
    factory_args: options.FactoryArgs = None,
    initial: options.Initial = None,
    initial_seed: options.InitialSeed = None,
    layers: options.Layers = None,
    size: options.Size = None,
    channels: options.Channels = None,
    limit: options.Limit = None,
    mean: options.Mean = None,
    std: options.Std = None,
    batch: options.Batch = 32,
    record: options.JsonOut = None,
    quiet: options.Quiet = False,  # noqa: FBT002
) -> None:
    """Say layer by layer what can be repaired, what share of altered weights it survives, and what it will cost.

    Example, on the files of [bold]netpurify demo[/bold]:

    [bold]netpurify check netpurify-demo/contaminated.safetensors --factory netpurify.experiments.demo:network
    --initial-seed 0 --data netpurify-demo/inputs.npy[/bold]

    Exit code 0: every layer can be examined; 1: some part cannot be, so that nothing will be known of it;
    2: bad input.
    """
    inputs = Inputs.of(data, size, channels, limit, mean, std)
    check_initial(initial, initial_seed)
    check_sources([weights, initial, data])
    check_outputs([record], inputs=[weights, initial, data])
    build = find_factory(factory, factory_args)
    start = choose_initial(initial, initial_seed, build, weights=weights)

    from netpurify.cli.tables import show_plan

    model = read_network(weights, build)
    clean = inputs.read()
    with prints_aside(), compiling(quiet=quiet):
        plan = netpurify.network.check(model, clean, initial=start, layers=layers or None, batch=batch)
    summary = netpurify.report.summarise(plan)
    with all_or_none():
        if record is not None:
            write_json(record, netpurify.report.record(plan))
        if record != SCREEN:
            if not quiet:
                show_plan(plan)
            show_line(summary.headline)
    raise typer.Exit(summary.exit_code)
