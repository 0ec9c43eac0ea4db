"""``netpurify contaminate``: alter weights on purpose, to see what purification makes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import netpurify
from netpurify.cli import options
from netpurify.cli.model_folders import check_new_folder, save_folder, writes_folder
from netpurify.cli.outputs import SCREEN, all_or_none, check_new, check_outputs, write_json
from netpurify.cli.screen import show_line, show_table
from netpurify.cli.sources import check_sources
from netpurify.errors import InputError
from netpurify.report import count


def contaminate(
    weights: options.Weights,
    out: Annotated[
        Path,
        typer.Option("-o", "--out", help="The contaminated weights, .safetensors; or a folder like that of WEIGHTS."),
    ],
    law: Annotated[str, typer.Option(help=f"What happens to a weight: {', '.join(options.LAWS)}.")] = "normal",
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Option of the law; may be given again.")
    ] = None,
    share: Annotated[float, typer.Option(help="Probability that a weight is hit, 0 to 1.")] = 0.1,
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Seed of the draw.")] = 0,
    names: Annotated[
        list[str] | None, typer.Option("--name", metavar="TENSOR", help="Only this tensor; may be given again.")
    ] = None,
    record: options.JsonOut = None,
    force: options.Force = False,  # noqa: FBT002
) -> None:
    """Alter a share of the weights by a law, and record exactly which ones.

    Example, on a file of [bold]netpurify demo[/bold]:

    [bold]netpurify contaminate netpurify-demo/initial.safetensors -o hit.safetensors --law normal --set sd=0.5
    --share 0.2[/bold]
    """
    given = _pairs(settings or [])
    if law not in options.LAWS:
        raise InputError(f"the law must be one of {', '.join(options.LAWS)}; got {law!r}")
    if not 0.0 <= share <= 1.0:
        raise InputError(f"share must be a number in [0, 1]; got {share}")
    check_sources([weights])
    folder = writes_folder(weights, out)
    check_outputs([record] if folder else [out, record], inputs=[weights])
    if folder:
        check_new_folder(weights, out, [record], force=force)
    else:
        check_new(out, force=force)

    from torch import Generator

    from netpurify import checkpoint
    from netpurify.contaminate import LAWS
    from netpurify.contaminate import contaminate as alter

    chosen = LAWS.make(law, given)
    state = checkpoint.load_weights(weights)
    found = alter(state, chosen, share=share, generator=Generator().manual_seed(seed), names=names or None)
    about: dict[str, object] = {"law": repr(chosen), "share": share, "seed": seed, "source": checkpoint.digest(state)}
    if not found.altered:
        kinds = sorted({str(value.dtype) for value in state.values()})
        raise InputError(f"{weights} must hold real floating weights to be altered; it holds {', '.join(kinds)} only")
    with all_or_none():
        notes = {name: str(value) for name, value in about.items()}
        if folder:
            save_folder(found.state, weights, out, metadata=notes, force=force)
        else:
            checkpoint.save_weights(found.state, out, metadata=notes)
        if record is not None:
            write_json(record, netpurify.report.contamination_record(found, state, settings=about))
        if record != SCREEN:
            rows = [(name, count(int(mask.sum())), count(mask.numel())) for name, mask in found.altered.items()]
            show_table("", ("tensor", "altered", "of"), rows, numbers=(1, 2))
            show_line(f"weights: {out}")


def _pairs(settings: list[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in settings]
    for key, mark, value in pairs:
        if not (key and mark and value):
            raise InputError(f"--set must be KEY=VALUE, such as sd=0.5; got {key + mark + value!r}")
    return {key: value for key, _, value in pairs}
