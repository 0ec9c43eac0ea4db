"""``netpurify diff``: which weights of two files differ."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import netpurify
from netpurify.cli import options
from netpurify.cli.model_folders import note_others
from netpurify.cli.outputs import SCREEN, all_or_none, check_outputs, check_printed, write_json
from netpurify.cli.screen import show_line, show_table
from netpurify.cli.sources import check_sources
from netpurify.report import count

if TYPE_CHECKING:
    from netpurify.contaminate import Difference, TensorDifference


def diff(
    first: Annotated[Path, typer.Argument(metavar="A", help="Weights: .safetensors, .pt or a Hugging Face folder.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="Weights to compare them with.")],
    record: options.JsonOut = None,
    sarif: options.SarifOut = None,
    quiet: options.Quiet = False,  # noqa: FBT002
) -> None:
    """Compare two files or folders of weights bit for bit; exit code 0 if they are the same, 1 if not.

    Example, on the files of [bold]netpurify demo[/bold]:

    [bold]netpurify diff netpurify-demo/contaminated.safetensors netpurify-demo/purified.safetensors[/bold]
    """
    check_sources([first, second])
    check_outputs([record, sarif], inputs=[first, second])
    check_printed(record, sarif)
    for path in () if quiet else (first, second):
        note_others(path)
    with netpurify.checkpoint.open_weights(first) as one, netpurify.checkpoint.open_weights(second) as other:
        found = netpurify.contaminate.difference(one.state, other.state)
        digests = [] if record is None else [one.digest(), other.digest()]
    with all_or_none():
        if record is not None:
            write_json(record, netpurify.report.difference_record(found, digests=digests))
        if sarif is not None:
            write_json(sarif, netpurify.report.difference_sarif(found, file=first.as_posix()))
        if SCREEN not in (record, sarif):
            if not quiet:
                _show(found)
            show_line(netpurify.report.describe_difference(found))
    raise typer.Exit(0 if found.same else 1)


def _show(found: Difference) -> None:
    rows = [_row(tensor) for tensor in found.tensors]
    rows += [(name, "", "", "", "only in A") for name in found.only_first]
    rows += [(name, "", "", "", "only in B") for name in found.only_second]
    if rows:
        show_table("", ("tensor", "differ", "of", "largest change", "where"), rows, numbers=(1, 2, 3))


def _row(tensor: TensorDifference) -> tuple[str, ...]:
    if len(set(tensor.shapes)) > 1:
        where = f"shape {list(tensor.shapes[0])} in A, {list(tensor.shapes[1])} in B"
    elif len(set(tensor.dtypes)) > 1:
        where = f"{tensor.dtypes[0]} in A, {tensor.dtypes[1]} in B"
    else:
        more = ", ..." if tensor.changed > len(tensor.first) else ""
        where = f"at {', '.join(map(str, tensor.first))}{more}"
        return tensor.name, count(tensor.changed), count(tensor.entries), f"{tensor.largest:.3g}", where
    return tensor.name, "all", count(tensor.entries), "-", where
