"""What ``recover``, ``project``, ``defend`` and ``unlearn`` have in common: options, checks, what they write."""

# No ``from __future__ import annotations`` here: the fields below are options, whose types the parser reads.
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import netpurify
from netpurify.cli import options
from netpurify.cli.compiling import compiling
from netpurify.cli.factory import find_factory, prints_aside
from netpurify.cli.model_folders import check_new_folder, save_folder, writes_folder
from netpurify.cli.outputs import SCREEN, all_or_none, check_drawing, check_new, check_outputs, write_reports
from netpurify.cli.screen import note, show_line
from netpurify.cli.sources import (
    Inputs,
    as_in_file,
    check_initial,
    check_sources,
    choose_initial,
    count_inputs,
    find_settings,
    read_network,
)
from netpurify.engine import check_engine
from netpurify.errors import InputError

if TYPE_CHECKING:
    from torch import nn

    from netpurify.cli.factory import Build
    from netpurify.cli.sources import Data
    from netpurify.network import Project, Purification, Recover


@dataclass(frozen=True, slots=True)
class Source:
    """The network, and the clean inputs."""

    weights: options.Weights
    data: options.Data
    factory: options.Factory = None
    factory_args: options.FactoryArgs = None
    config: options.Config = None
    layers: options.Layers = None
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
    def inputs(self) -> Inputs:
        """The clean inputs, not read yet.

        Raises:
            InputError: An option does not fit.
        """
        plain = Inputs.of(self.data, self.size, self.channels, self.limit, self.mean, self.std)
        settings = self.settings
        folder = None if settings is None else settings.parent
        found = replace(plain, dtype=self.dtype, tokenizer=self.tokenizer, length=self.length, folder=folder)
        found.check()
        return found

    @property
    def settings(self) -> Path | None:
        """From what transformers builds the network; ``None`` if a factory does."""
        return None if self.factory is not None else self.config or find_settings(self.weights)

    @property
    def files(self) -> list[Path | None]:
        """What is read, besides the initial weights."""
        return [self.weights, self.data, self.config, self.tokenizer]

    @property
    def origin(self) -> dict[str, Any]:
        """How the network was built, for the metadata of the weights."""
        settings = self.settings
        built = {"factory": self.factory, "factory_args": self.factory_args}
        return built if settings is None else built | {"config": str(settings)}

    def build(self) -> "Build":
        """What builds the network without its weights: the factory, or transformers from the settings.

        Raises:
            InputError: It cannot be found.
        """
        if self.factory is not None and self.config is not None:
            raise InputError("--factory and --config exclude each other; give the one that builds the network")
        if self.factory is not None:
            return find_factory(self.factory, self.factory_args)
        if self.factory_args is not None:
            raise InputError("--factory-args are arguments of --factory; give both, or none")
        settings = self.settings
        if settings is None:
            raise InputError(
                f"what builds the network must be known; there is no config.json beside {self.weights}; give --factory "
                "MODULE:FUNCTION, or --config FILE for a network of transformers"
            )
        return partial(netpurify.network.from_config, settings)

    def read(self, build: "Build", *, padded: bool = False) -> "tuple[nn.Module, Data]":
        """The network and the clean inputs; lines of text are filled up to one length if ``padded``.

        Raises:
            InputError: They do not fit each other.
        """
        model = read_network(self.weights, None if self.factory is None else build, self.settings)
        return model, self.inputs.read(None if padded else self.batch)


@dataclass(frozen=True, slots=True)
class Target:
    """What is written, and how much is said."""

    out: Annotated[
        Path, typer.Option("-o", "--out", help="The purified weights, .safetensors; or a folder like that of WEIGHTS.")
    ]
    reports: dict[str, Path | None]
    force: options.Force = False
    quiet: options.Quiet = False
    verbose: options.Verbose = False

    @property
    def on_screen(self) -> bool:
        """Whether a report is printed, so that nothing else may be."""
        return SCREEN in self.reports.values()

    def check(self, source: Source, *, more_inputs: Iterable[Path | None] = (), proof: Path | None = None) -> None:
        """Refuse files that cannot be read or written, before the long work.

        Raises:
            InputError: There are some.
        """
        read = [*source.files, *more_inputs]
        check_sources(read)
        others = [proof, *self.reports.values()]
        if writes_folder(source.weights, self.out):
            check_outputs(others, inputs=read)
            check_new_folder(source.weights, self.out, others, force=self.force)
        else:
            check_outputs([self.out, *others], inputs=read)
            check_new(self.out, force=self.force)
        check_new(proof, force=self.force)
        check_drawing(self.reports["page"])

    def say_written(self, *others: Path | None) -> None:
        """Name the files that were written."""
        written = (self.out, *others, *self.reports.values())
        show_line(f"written: {', '.join(str(path) for path in written if path is not None)}")


@dataclass(frozen=True, slots=True)
class Start:
    """The initial weights."""

    initial: options.Initial = None
    initial_seed: options.InitialSeed = None

    def check(self, *, needed: str = "") -> None:
        """Refuse options that do not say what the initial weights are; ``needed`` names who cannot do without.

        Raises:
            InputError: They do not.
        """
        check_initial(self.initial, self.initial_seed, needed=needed)

    def choose(self, source: Source, build: "Build") -> Any:
        """The initial weights that the options name.

        Raises:
            InputError: They are those of the contaminated network.
        """
        return choose_initial(self.initial, self.initial_seed, build, weights=source.weights)


@dataclass(frozen=True, slots=True)
class Fits:
    """How the L1 regressions are made, and what is shown and kept of them."""

    noise_floor: Annotated[float | None, typer.Option(min=0.0, help="Residuals up to this are rounding.")] = None
    proof: Annotated[Path | None, typer.Option(help="Write the proof here, .safetensors, for verify.")] = None
    show: Annotated[int, typer.Option(min=0, help="How many altered weights to print, the largest changes first.")] = 5
    engine: Annotated[
        str | None,
        typer.Option(help="processes, inline, dask, dask://host:port, ray or ray://host:port; else all cores."),
    ] = None
    jobs: options.Jobs = None

    def check(self) -> None:
        """Refuse options that have no meaning, before anything is read.

        Raises:
            InputError: There are some.
        """
        if self.engine is not None:
            check_engine(self.engine, self.jobs)
        elif self.jobs is not None:
            raise InputError(
                "--jobs is an option of --engine; without an engine all cores work; give --engine processes"
            )
        options.check_finite("--noise-floor", self.noise_floor)

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of ``Recover`` and ``Project`` that these options set."""
        return {
            "noise_floor": self.noise_floor, "proof": self.proof is not None, "engine": self.engine, "jobs": self.jobs
        }  # fmt: skip


def repair(
    policy: "Recover | Project", source: Source, target: Target, *, build: "Build", start: Start, fits: Fits
) -> int:
    """Purify a network layer by layer, write what was asked for, show it, and give the exit code.

    Raises:
        InputError: Something does not fit.
    """
    from netpurify.cli.comparisons import show_others
    from netpurify.cli.findings import show_summary
    from netpurify.cli.progress import LayerBar
    from netpurify.cli.tables import show_altered, show_layers

    quiet, layers = target.quiet, source.layers or None
    model, inputs = source.read(build)
    with prints_aside(), compiling(quiet=quiet), LayerBar(model, layers, count_inputs(inputs), quiet=quiet) as bar:
        result = netpurify.network.purify(
            model, inputs, policy=policy, layers=layers, batch=source.batch, progress=bar.follow
        )
    summary = netpurify.report.summarise(result)
    with all_or_none():
        save(result, target, source, {"initial_seed": start.initial_seed})
        proof = _write_proof(result, fits.proof)
        files = {
            "contaminated": source.weights, "initial": start.initial, "data": source.data, "purified": target.out,
            "proof": proof,
        }  # fmt: skip
        write_reports(result, target.reports, {role: path for role, path in files.items() if path is not None})
        if not target.on_screen:
            if not quiet:
                show_layers(result, verbose=target.verbose)
                show_others(result.compared, mended=True, verbose=target.verbose)
                show_altered(result, fits.show)
            show_summary(summary, quiet=quiet)
            target.say_written(proof)
    return summary.exit_code


def save(result: Any, target: Target, source: Source, more: dict[str, Any] | None = None) -> None:
    """Write the weights of a result, with their provenance, in the form and under the names in which they came.

    They become a file, or a folder like the one that they came in.
    """
    metadata = {"netpurify": json.dumps(result.provenance | source.origin | (more or {}))}
    state = netpurify.network.resolve(result.model)
    if source.settings is not None:
        state = as_in_file(state, result.model, netpurify.checkpoint.load_weights(source.weights))
    if writes_folder(source.weights, target.out):
        save_folder(state, source.weights, target.out, metadata=metadata, force=target.force)
    else:
        netpurify.checkpoint.save_weights(state, target.out, metadata=metadata)


def _write_proof(result: "Purification", path: Path | None) -> Path | None:
    """Where the proof is; nowhere if there is nothing to prove."""
    if path is not None and not any(layer.proofs for layer in result.layers):
        note(f"{path} was not written: no unit was fitted, so there is nothing to prove")
        return None
    if path is not None:
        netpurify.network.save_proof(result, path)
    return path
