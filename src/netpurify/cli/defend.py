"""``netpurify purify --policy defend``: what it costs is said before anything is written."""

from __future__ import annotations

import json
import math
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

import netpurify
from netpurify.cli.factory import prints_aside
from netpurify.cli.outputs import SCREEN, all_or_none, write_json, write_text
from netpurify.cli.screen import note, show_line
from netpurify.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor, nn

    from netpurify.network import Defence

Strength = Annotated[
    str, typer.Option(metavar="auto|NUMBER", help="For defend: how much to forget; auto chooses without labels.")
]
NoGuard = Annotated[bool, typer.Option("--no-guard", help="For defend: change weights only, keep no channel in range.")]
MaxDisagreement = Annotated[
    float | None,
    typer.Option(min=0.0, max=1.0, metavar="SHARE", help="For defend: refuse if more held-out inputs change class."),
]


@dataclass(frozen=True, slots=True)
class Outputs:
    """Where everything goes: the weights, the page, the record."""

    out: Path
    page: Path | None
    record: Path | None


def run(
    model: nn.Module,
    inputs: Tensor,
    *,
    strength: float | Literal["auto"],
    guard: bool,
    max_disagreement: float | None,
    layers: list[str] | None,
    batch: int,
    files: dict[str, Path],
    origin: dict[str, str | None],
    outputs: Outputs,
    quiet: bool,
) -> int:
    """Defend a network, write what was asked for, and give the exit code.

    Args:
        model: The contaminated network.
        inputs: The clean inputs.
        strength: As in ``network.defend``.
        guard: As in ``network.defend``.
        max_disagreement: As in ``network.defend``.
        layers: As in ``network.defend``.
        batch: As in ``network.defend``.
        files: The files that went in, for the page.
        origin: How the network was built, for the metadata of the weights.
        outputs: Where everything goes.
        quiet: Whether to show the verdict only.

    Raises:
        InputError: Something does not fit.
        DisagreementError: It would cost more than ``max_disagreement``; nothing was written.
    """
    from netpurify.cli.progress import sweeps

    with prints_aside(), sweeps(len(inputs), quiet=quiet) as follow:
        result = netpurify.network.purify(
            model,
            inputs,
            policy=netpurify.Defend(strength, guard=guard, max_disagreement=max_disagreement),
            layers=layers,
            batch=batch,
            progress=follow,
        )
    with all_or_none():
        _say(result, screen=outputs.record != SCREEN, quiet=quiet)
        _write(result, files, origin, outputs)
        if outputs.record != SCREEN:
            written = (outputs.out, outputs.page, outputs.record)
            show_line(f"written: {', '.join(str(path) for path in written if path is not None)}")
    return 1 if any(part.missed for part in result.skipped) else 0


def parse_strength(text: str) -> float | Literal["auto"]:
    """The strength that was written.

    Raises:
        InputError: It is neither ``auto`` nor a number above 0.
    """
    if text == "auto":
        return "auto"
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0.0 < found < math.inf:
        raise InputError(f"--strength must be auto or a number above 0, such as 0.1; got {text!r}")
    return found


def _say(result: Defence, *, screen: bool, quiet: bool) -> None:
    """What it costs and what was forgotten; on standard error where a record goes to standard output."""
    from netpurify.cli.tables import missed_parts, show_fits
    from netpurify.report.defence.summary import DefenceSummary

    summary = DefenceSummary.of(result)
    said = [text for _, text in summary.statements]
    if not screen:
        for text in [] if quiet else said:
            note(text)
        return
    if not quiet:
        show_fits(result)
    for text in [summary.headline] if quiet else [*said, summary.headline]:
        show_line(text)
    for text in missed_parts(result.skipped, "layers that could not be defended and are as they were"):
        show_line(text)


def _write(result: Defence, files: dict[str, Path], origin: dict[str, str | None], outputs: Outputs) -> None:
    from netpurify.network import resolve

    state = resolve(result.model)
    netpurify.checkpoint.save_weights(
        state, outputs.out, metadata={"netpurify": json.dumps(result.provenance | origin)}
    )
    if outputs.record is not None:
        write_json(outputs.record, netpurify.report.record(result))
    if outputs.page is not None:
        named = {name: path.as_posix() for name, path in (files | {"defended": outputs.out}).items()}
        command = shlex.join(["netpurify", *sys.argv[1:]])
        write_text(outputs.page, netpurify.report.page(result, command=command, files=named))
