"""``netpurify purify``: the purified network as a file, what was altered, and a proof."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import netpurify
from netpurify.cli import defend, options
from netpurify.cli.compiling import compiling
from netpurify.cli.factory import find_factory, prints_aside
from netpurify.cli.outputs import SCREEN, all_or_none, check_drawing, check_new, check_outputs, write_reports
from netpurify.cli.policies import refuse_others
from netpurify.cli.report_options import with_report_options
from netpurify.cli.screen import note, show_line
from netpurify.cli.sources import Inputs, check_initial, check_sources, choose_initial, read_network
from netpurify.engine import check_engine
from netpurify.errors import InputError

if TYPE_CHECKING:
    from netpurify.network import Purification


@with_report_options
def purify(
    context: typer.Context,
    weights: options.Weights,
    factory: options.Factory,
    data: options.Data,
    out: Annotated[Path, typer.Option("-o", "--out", help="The purified weights, .safetensors.")],
    factory_args: options.FactoryArgs = None,
    initial: options.Initial = None,
    initial_seed: options.InitialSeed = None,
    policy: Annotated[
        str,
        typer.Option(
            help="recover: altered after training. project: poisoned in training (Algorithm 2). "
            "defend: a deep network, poisoned in training; nothing is proven."
        ),
    ] = "recover",
    strength: defend.Strength = "auto",
    no_guard: defend.NoGuard = False,  # noqa: FBT002
    max_disagreement: defend.MaxDisagreement = None,
    rank: Annotated[
        str | None, typer.Option(metavar="N", help="For project: directions to keep, or their share of energy.")
    ] = None,
    noise_floor: Annotated[float | None, typer.Option(min=0.0, help="Residuals up to this are rounding.")] = None,
    decay: Annotated[float | None, typer.Option(help="Factor that weight decay left; else it is estimated.")] = None,
    layers: options.Layers = None,
    size: options.Size = None,
    channels: options.Channels = None,
    limit: options.Limit = None,
    mean: options.Mean = None,
    std: options.Std = None,
    batch: options.Batch = 32,
    reports: dict[str, Path | None] = {},  # noqa: B006
    proof: Annotated[Path | None, typer.Option(help="Write the proof here, .safetensors, for verify.")] = None,
    show: Annotated[int, typer.Option(min=0, help="How many altered weights to print.")] = 5,
    engine: Annotated[
        str | None, typer.Option(help="processes, inline, dask://host:port, ray or ray://host:port; else all cores.")
    ] = None,
    jobs: options.Jobs = None,
    force: options.Force = False,  # noqa: FBT002
    quiet: options.Quiet = False,  # noqa: FBT002
) -> None:
    """Purify a network with a few clean inputs, without labels and without training.

    Example, on the files of [bold]netpurify demo[/bold]:

    [bold]netpurify purify netpurify-demo/contaminated.safetensors --factory netpurify.experiments.demo:network
    --initial-seed 0 --data netpurify-demo/inputs.npy -o purified.safetensors --proof proof.safetensors[/bold]

    A deep network that was poisoned in training needs some hundred clean inputs and no initial weights:

    [bold]netpurify purify poisoned.safetensors --factory package.module:function --data inputs.npy
    -o defended.safetensors --policy defend --report page.html[/bold]

    Exit code 0: nothing found, or defended; 1: altered weights, units without enough evidence, layers that could not be
    examined or defended, or a defence that costs more than --max-disagreement; 2: bad input.
    """
    refuse_others(context, policy)
    foreign = {"project": {"--decay": decay}, "recover": {"--rank": rank}}.get(policy, {})
    for option, value in foreign.items():
        if value is not None:
            raise InputError(f"{option} cannot be used with --policy {policy}; leave it out")
    clean = Inputs.of(data, size, channels, limit, mean, std)
    directions, wanted = _rank(rank), defend.parse_strength(strength)
    if engine is not None:
        check_engine(engine, jobs)
    elif jobs is not None:
        raise InputError("--jobs is an option of --engine; without an engine all cores work; give --engine processes")
    for option, value in (("--noise-floor", noise_floor), ("--decay", decay)):
        if value is not None and not math.isfinite(value):
            raise InputError(f"{option} must be a finite number; got {value}; leave it out to have it estimated")
    check_initial(initial, initial_seed, needed="--policy recover" if policy == "recover" else "")
    check_sources([weights, initial, data])
    check_outputs([out, proof, *reports.values()], inputs=[weights, initial, data])
    for path in (out, proof):
        check_new(path, force=force)
    check_drawing(reports["page"])
    build = find_factory(factory, factory_args)
    start = choose_initial(initial, initial_seed, build, weights=weights)
    model, inputs = read_network(weights, build), clean.read()
    if policy == "defend":
        code = defend.run(
            model, inputs, strength=wanted, guard=not no_guard, max_disagreement=max_disagreement,
            layers=layers or None, batch=batch, files={"contaminated": weights, "data": data},
            origin={"factory": factory, "factory_args": factory_args},
            outputs=defend.Outputs(out, reports), quiet=quiet,
        )  # fmt: skip
        raise typer.Exit(code)
    fitting: dict[str, Any] = {
        "noise_floor": noise_floor, "proof": proof is not None, "engine": engine, "jobs": jobs
    }  # fmt: skip
    if policy == "recover":
        chosen = netpurify.Recover(start, decay=decay, **fitting)
    else:
        chosen = netpurify.Project(start, rank=directions, **fitting)

    from netpurify.cli.findings import show_summary
    from netpurify.cli.progress import LayerBar
    from netpurify.cli.tables import show_altered, show_layers
    from netpurify.network import resolve

    with prints_aside(), compiling(quiet=quiet), LayerBar(model, layers or None, len(inputs), quiet=quiet) as bar:
        result = netpurify.network.purify(
            model, inputs, policy=chosen, layers=layers or None, batch=batch, progress=bar.follow
        )
    origin = {"factory": factory, "factory_args": factory_args, "initial_seed": initial_seed}
    summary = netpurify.report.summarise(result)
    with all_or_none():
        metadata = {"netpurify": json.dumps(result.provenance | origin)}
        netpurify.checkpoint.save_weights(resolve(result.model), out, metadata=metadata)
        proof = _write_proof(result, proof)
        named = {"contaminated": weights, "initial": initial, "data": data, "purified": out, "proof": proof}
        write_reports(result, reports, {role: path for role, path in named.items() if path is not None})
        if SCREEN not in reports.values():
            if not quiet:
                show_layers(result)
                show_altered(result.altered, show)
            show_summary(summary, quiet=quiet)
            written = (out, proof, *reports.values())
            show_line(f"written: {', '.join(str(path) for path in written if path is not None)}")
    raise typer.Exit(summary.exit_code)


def _rank(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return int(text) if text.lstrip("+-").isdecimal() else float(text)
    except ValueError as error:
        raise InputError(
            f"--rank must be a number of directions, such as 36, or a share of energy, such as 0.99; got {text!r}"
        ) from error


def _write_proof(result: Purification, path: Path | None) -> Path | None:
    """Where the proof is; nowhere if there is nothing to prove."""
    if path is not None and not any(layer.proofs for layer in result.layers):
        note(f"{path} was not written: no unit was fitted, so there is nothing to prove")
        return None
    if path is not None:
        netpurify.network.save_proof(result, path)
    return path
