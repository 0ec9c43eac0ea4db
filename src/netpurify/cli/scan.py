"""``netpurify scan``: what was altered in a file of weights, told from its base; nothing is repaired or written."""

# No ``from __future__ import annotations`` here: the fields below are options, whose types the parser reads.
from dataclasses import dataclass, fields
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
    """Clean inputs, if there are any, and what builds the network that they go through: the options of ``recover``."""

    data: Annotated[
        Path | None, typer.Option(help="Clean inputs, if there are any: what was trained is examined with them too.")
    ] = None
    factory: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:FUNCTION",
            help="With --data: builds the network; your own code, which is run. Not needed beside a config.json.",
        ),
    ] = None
    factory_args: options.FactoryArgs = None
    config: options.Config = None
    size: options.Size = None
    channels: options.Channels = None
    limit: options.Limit = None
    mean: options.Mean = None
    std: options.Std = None
    batch: options.Batch = 32
    dtype: options.Dtype = "auto"
    tokenizer: options.Tokenizer = None
    length: options.Length = None

    @property
    def files(self) -> list[Path | None]:
        """What is read, besides the weights."""
        return [self.data, self.config, self.tokenizer]

    def source(self, weights: Path) -> Source | None:
        """The network and its clean inputs, not read yet; ``None`` without inputs, and then no code of anybody runs.

        Raises:
            InputError: There are no inputs for the network, or an option does not fit.
        """
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        if self.data is None:
            odd = [name for name in _NEEDS_DATA if given[name] is not None]
            if odd:
                names = ", ".join(f"--{name}".replace("_", "-") for name in odd)
                raise InputError(
                    f"{names} must come with clean inputs, which go through the network; there are none; give --data "
                    "too, or leave it out: weights are compared with their base without it"
                )
            return None
        source = Source(weights=weights, **given)
        _ = source.inputs
        if self.factory is None and source.settings is None:
            raise InputError(
                "--data needs the network that the inputs go through; give --factory MODULE:FUNCTION, or --config FILE "
                "for a network of transformers, or leave --data out to compare weights with their base alone"
            )
        return source


_NEEDS_DATA = ("factory", "factory_args", "config", "tokenizer", "length")


@dataclass(frozen=True, slots=True)
class Manner:
    """How weights are compared, and how much is said."""

    frozen: options.Frozen = None
    adapter: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Of PEFT: the weights should be BASE with this LoRA adapter merged."),
    ] = None
    low_rank: Annotated[
        bool,
        typer.Option("--low-rank", help="Look for changes of low rank in float32 matrices; seconds for each of them."),
    ] = False
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
    weights: Annotated[
        list[Path],
        typer.Argument(metavar="WEIGHTS...", help="The weights: .safetensors, .pt or a Hugging Face folder."),
    ],
    base: Annotated[Path, typer.Option("--against", metavar="BASE", help="The weights before training or tuning.")],
    clean: CleanInputs,
    manner: Manner,
    reports: dict[str, Path | None],
) -> int:
    """Look for alterations in weights, against the weights before training; nothing is repaired or written.

    Every tensor is compared with its base. Clean inputs are not needed, and without them no code of anybody is run:
    this is the way to look at a file that nobody trusts. Example, on the files of [bold]netpurify demo[/bold]:

    [bold]netpurify scan netpurify-demo/contaminated.safetensors --against netpurify-demo/purified.safetensors[/bold]

    With clean inputs the network is built from the config.json beside the weights, or by a factory of yours.

    Exit code 0: nothing found; 1: altered, impossible or outlying weights, weights that are not base and adapter, or
    tensors without a counterpart; 2: bad input.
    """
    if len(weights) > 1 and (clean.data is not None or any(reports.values())):
        raise InputError(
            f"reports and clean inputs are for one file of weights; got {len(weights)} files; scan them one by one"
        )
    sources = [clean.source(one) for one in weights]
    read = [*weights, base, *clean.files, manner.adapter]
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
    from netpurify.cli.model_folders import note_others

    for path in () if manner.quiet else (weights, base):
        note_others(path)
    with TensorBar(quiet=manner.quiet) as bar:
        asked = {"frozen": manner.patterns, "adapter": manner.adapter, "low_rank": manner.low_rank}
        found = netpurify.scan(weights, base, **asked, progress=bar.follow)
    fits = None if source is None else _fits(source, base, manner)
    result = netpurify.report.Detection(found, fits, strict=manner.strict)
    summary = netpurify.report.summarise(result)
    with all_or_none():
        files = {"weights": weights, "base": base, "adapter": manner.adapter}
        files |= {} if source is None else {"data": source.data}
        write_reports(result, reports, {role: path for role, path in files.items() if path is not None})
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
