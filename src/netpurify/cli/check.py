"""``netpurify check``: what can be repaired in a network, before anything is done to it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

import netpurify
from netpurify.cli import options
from netpurify.cli.compiling import compiling
from netpurify.cli.factory import find_factory, prints_aside
from netpurify.cli.outputs import SCREEN, all_or_none, check_outputs, write_json
from netpurify.cli.screen import show_line
from netpurify.cli.sources import Inputs, check_initial, check_sources, choose_initial, read_network

if TYPE_CHECKING:
    from netpurify.network import Plan

_SCHEMA = 1


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
    with all_or_none():
        if record is not None:
            write_json(record, _record(plan))
        if record != SCREEN:
            if not quiet:
                show_plan(plan)
            show_line(_verdict(plan))
    raise typer.Exit(1 if not plan.layers or any(part.missed for part in plan.skipped) else 0)


def _verdict(plan: Plan) -> str:
    from netpurify.cli.tables import missed_parts

    if not plan.layers:
        return "no layer can be examined: purify would refuse this network, and nothing is known of its weights"
    good, total = len(plan.repairable), len(plan.layers)
    cost = f"about {plan.seconds:.1f} s, {plan.bytes / 1e6:.0f} MB of working memory"
    told = f"{good} of {total} layers can be recovered exactly; {cost}"
    return "; ".join([told, *missed_parts(plan.skipped, "layers that cannot be examined")])


def _record(plan: Plan) -> dict[str, Any]:
    layers = [asdict(layer) | {"ratio": layer.ratio} for layer in plan.layers]
    return {"schema": _SCHEMA, "repairable": list(plan.repairable), **asdict(plan), "layers": layers}
