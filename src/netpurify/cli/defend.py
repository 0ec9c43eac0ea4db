"""``netpurify purify --policy defend``: what it costs is said before anything is written."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

import netpurify
from netpurify.cli.factory import prints_aside
from netpurify.cli.outputs import SCREEN, all_or_none, write_reports
from netpurify.cli.screen import note, show_line
from netpurify.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor, nn

    from netpurify.network import Defence
    from netpurify.report import Summary

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
    """Where everything goes: the weights, and the reports by the name of their format."""

    out: Path
    reports: dict[str, Path | None]

    @property
    def on_screen(self) -> bool:
        """Whether a report is printed, so that nothing else may be."""
        return SCREEN in self.reports.values()


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
    summary = netpurify.report.summarise(result)
    with all_or_none():
        _say(result, summary, screen=not outputs.on_screen, quiet=quiet)
        _write(result, files, origin, outputs)
        if not outputs.on_screen:
            written = (outputs.out, *outputs.reports.values())
            show_line(f"written: {', '.join(str(path) for path in written if path is not None)}")
    return summary.exit_code


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


def _say(result: Defence, summary: Summary, *, screen: bool, quiet: bool) -> None:
    """What it costs and what was forgotten; on standard error where a record goes to standard output."""
    from netpurify.cli.findings import show_summary
    from netpurify.cli.tables import show_fits

    if not screen:
        for text in [] if quiet else summary.texts:
            note(text)
        return
    if not quiet:
        show_fits(result)
    show_summary(summary, quiet=quiet)


def _write(result: Defence, files: dict[str, Path], origin: dict[str, str | None], outputs: Outputs) -> None:
    from netpurify.network import resolve

    state = resolve(result.model)
    netpurify.checkpoint.save_weights(
        state, outputs.out, metadata={"netpurify": json.dumps(result.provenance | origin)}
    )
    write_reports(result, outputs.reports, files | {"defended": outputs.out})
