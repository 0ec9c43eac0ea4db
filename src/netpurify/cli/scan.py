"""``netpurify scan``: what was altered in a file of weights, told from its base; nothing is repaired or written."""

# No ``from __future__ import annotations`` here: the fields below are options, whose types the parser reads.
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import netpurify
from netpurify.cli import options
from netpurify.cli.compiling import compiling
from netpurify.cli.factory import prints_aside
from netpurify.cli.groups import with_groups
from netpurify.cli.outputs import SCREEN, all_or_none, check_drawing, check_outputs, write_reports
from netpurify.cli.purifying import Source
from netpurify.cli.report_options import with_report_options
from netpurify.cli.screen import show_line
from netpurify.cli.sources import check_sources, count_inputs
from netpurify.errors import InputError

if TYPE_CHECKING:
    from netpurify.network import Purification


@dataclass(frozen=True, slots=True)
class CleanInputs:
    """Clean inputs, if there are any, and what builds the network that they go through."""

    data: Annotated[
        Path | None, typer.Option(help="Clean inputs, if there are any: what was trained is examined with them too.")
    ] = None
    factory: Annotated[
        str | None,
        typer.Option(metavar="MODULE:FUNCTION", help="With --data: builds the network; your own code, which is run."),
    ] = None
    factory_args: options.FactoryArgs = None
    size: options.Size = None
    channels: options.Channels = None
    limit: options.Limit = None
    mean: options.Mean = None
    std: options.Std = None
    batch: options.Batch = 32

    def source(self, weights: Path) -> Source | None:
        """The network and its clean inputs, not read yet; ``None`` without inputs, and then no code of anybody runs.

        Raises:
            InputError: One of both is missing, or an option does not fit.
        """
        if self.data is None:
            if self.factory is not None:
                raise InputError(
                    "--factory builds the network that clean inputs go through; there are none; give --data too, or "
                    "leave --factory out: weights are compared with their base without it"
                )
            return None
        if self.factory is None:
            raise InputError(
                "--data needs the network that the inputs go through; give --factory MODULE:FUNCTION, or leave --data "
                "out to compare weights with their base alone"
            )
        source = Source(
            weights=weights, factory=self.factory, data=self.data, factory_args=self.factory_args, size=self.size,
            channels=self.channels, limit=self.limit, mean=self.mean, std=self.std, batch=self.batch,
        )  # fmt: skip
        _ = source.inputs
        return source


@dataclass(frozen=True, slots=True)
class Manner:
    """How weights are compared, and how much is said."""

    frozen: options.Frozen = None
    strict: Annotated[bool, typer.Option("--strict", help="Code 1 also if weights were only compared.")] = False
    show: Annotated[int, typer.Option(min=0, help="How many changed weights to print.")] = 5
    quiet: options.Quiet = False
    verbose: Annotated[bool, typer.Option("--verbose", help="Print every tensor, not only findings.")] = False

    @property
    def patterns(self) -> tuple[str, ...]:
        """The patterns of tensors that were never trained."""
        return tuple(self.frozen or ())


@with_report_options("scan")
@with_groups
def scan(
    weights: Annotated[list[Path], typer.Argument(metavar="WEIGHTS...", help="The weights: .safetensors or .pt.")],
    base: Annotated[Path, typer.Option("--against", metavar="BASE", help="The weights before training or tuning.")],
    clean: CleanInputs,
    manner: Manner,
    reports: dict[str, Path | None],
) -> int:
    """Look for alterations in weights, against the weights before training; nothing is repaired or written.

    Every tensor is compared with its base. Clean inputs are not needed, and without them no code of anybody is run:
    this is the way to look at a file that nobody trusts. Example, on the files of [bold]netpurify demo[/bold]:

    [bold]netpurify scan netpurify-demo/contaminated.safetensors --against netpurify-demo/purified.safetensors[/bold]

    Exit code 0: nothing found; 1: altered, impossible or outlying weights, or tensors without a counterpart; 2: bad
    input.
    """
    if len(weights) > 1 and (clean.data is not None or any(reports.values())):
        raise InputError(
            f"reports and clean inputs are for one file of weights; got {len(weights)} files; scan them one by one"
        )
    sources = [clean.source(one) for one in weights]
    read = [*weights, base, clean.data]
    check_sources(read)
    check_outputs(reports.values(), inputs=read)
    check_drawing(reports["page"])
    if any(base.samefile(one) for one in weights):
        raise InputError(f"--against must be the weights before training; {base} is a file to scan itself")
    codes = []
    for one, source in zip(weights, sources, strict=True):
        if len(weights) > 1:
            show_line(f"{one}:")
        codes.append(_scan(one, base, source, manner, reports))
    return max(codes)


def _scan(weights: Path, base: Path, source: Source | None, manner: Manner, reports: dict[str, Path | None]) -> int:
    """Scan one file, write and show what was asked for, and give the exit code."""
    from netpurify.cli.comparisons import TensorBar, show_detection
    from netpurify.cli.findings import show_summary

    with TensorBar(quiet=manner.quiet) as bar:
        found = netpurify.scan(weights, base, frozen=manner.patterns, progress=bar.follow)
    fits = None if source is None else _fits(source, base, manner)
    result = netpurify.report.Detection(found, fits, strict=manner.strict)
    summary = netpurify.report.summarise(result)
    with all_or_none():
        files = {"weights": weights, "base": base} | ({} if source is None else {"data": source.data})
        write_reports(result, reports, files)
        if SCREEN not in reports.values():
            if not manner.quiet:
                show_detection(result, manner.show, verbose=manner.verbose)
            show_summary(summary, quiet=manner.quiet)
    return summary.exit_code


def _fits(source: Source, base: Path, manner: Manner) -> "Purification":
    """What clean inputs show; the repaired copy of the network is not kept.

    Raises:
        InputError: Something does not fit.
    """
    from netpurify.cli.progress import LayerBar

    quiet = manner.quiet
    model, inputs = source.read(source.build())
    policy = netpurify.Recover(base, proof=False, frozen=manner.patterns)
    with prints_aside(), compiling(quiet=quiet), LayerBar(model, None, count_inputs(inputs), quiet=quiet) as bar:
        return netpurify.network.purify(model, inputs, policy=policy, batch=source.batch, progress=bar.follow)
