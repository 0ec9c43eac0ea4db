"""Arguments that several commands share, so that they are spelled and explained alike."""

import ast
import math
import re
from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from netpurify.errors import InputError


def _registered(file: str, register: str) -> tuple[str, ...]:
    """Names that a module gives to a decorator of its classes, read from its source: importing it would load torch."""
    source = resources.files("netpurify").joinpath(file).read_text(encoding="utf-8")
    classes = [node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]
    calls = [call for node in classes for call in node.decorator_list if isinstance(call, ast.Call)]
    return tuple(ast.literal_eval(call.args[0]) for call in calls if ast.unparse(call.func) == register)


def _figures() -> tuple[int, ...]:
    """Numbers of all figures in their registry, read from its source: importing it would load torch."""
    source = resources.files("netpurify").joinpath("experiments/figures/__init__.py").read_text(encoding="utf-8")
    names = [alias.name for node in ast.parse(source).body if isinstance(node, ast.ImportFrom) for alias in node.names]
    return tuple(sorted(int(name.removeprefix("figure")) for name in names if re.fullmatch(r"figure\d+", name)))


def _families() -> tuple[str, ...]:
    """Names of all families of triggers in the order of their table, read from its source."""
    room = "network/hunting/families"
    source = resources.files("netpurify").joinpath(room, "__init__.py").read_text(encoding="utf-8")
    first = next(node for node in ast.parse(source).body if isinstance(node, ast.ImportFrom))
    return tuple(name for alias in first.names for name in _registered(f"{room}/{alias.name}.py", "register_family"))


LAWS = _registered("contaminate/weights/laws.py", "LAWS.register")
FAMILIES = _families()
REGIMES = ("joint", "sequential", "sequential-fixed")
FIGURES = _figures()
LAST_OF_THE_PAPER = 13
STUDIES = (
    "defence",
    "recovery",
    "healthy",
    "transformers",
    "evidence",
    "limits",
    "half",
    "optimisers",
    "architectures",
    "unlearn",
)
DATA_SETS = ("mnist", "cifar10", "fashion-mnist")
_MANY = 10**9
"""More than any count of inputs, channels, workers or trials that means something."""

Weights = Annotated[
    Path,
    typer.Argument(metavar="WEIGHTS", help="The weights: .safetensors, .pt of torch.save, or a Hugging Face folder."),
]
Factory = Annotated[
    str | None,
    typer.Option(
        metavar="MODULE:FUNCTION",
        help="Builds the network; your own code, which is run. Not needed where a config.json is beside the weights.",
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(help="Settings from which transformers builds the network; else those beside the weights."),
]
Tokenizer = Annotated[Path | None, typer.Option(help="tokenizer.json for text; else the one beside the weights.")]
Length = Annotated[int | None, typer.Option(min=1, max=_MANY, help="Tokens at which a line of text is cut; else 128.")]
Dtype = Annotated[
    str, typer.Option(metavar="auto|float32|int64", help="Of the numbers in a file; auto keeps 32 and 64 bit integers.")
]
FactoryArgs = Annotated[
    str | None, typer.Option(metavar="JSON", help="Keyword arguments of the factory, as a JSON object.")
]
Data = Annotated[
    Path, typer.Option(help="Clean inputs without labels: .npy, .npz, .pt, .safetensors, .txt or a folder of images.")
]
Initial = Annotated[Path | None, typer.Option(help="The weights before training: .safetensors, .pt or a folder.")]
InitialSeed = Annotated[
    int | None,
    typer.Option(min=0, max=2**63 - 1, help="Instead: torch's seed with which the factory makes the initial weights."),
]
Families = Annotated[
    list[str] | None,
    typer.Option(
        "--family",
        metavar="NAME",
        help=f"Search this family of triggers; may be given again. Else all: {', '.join(FAMILIES)}.",
    ),
]
Expected = Annotated[
    Path | None,
    typer.Option(help="What healthy networks show, as calibrate(hunts, about).save wrote it; else as measured here."),
]
Layers = Annotated[
    list[str] | None, typer.Option("--layer", metavar="NAME", help="Only this layer; may be given again. Else all.")
]
Size = Annotated[str | None, typer.Option(metavar="HxW", help="Resize images to this height and width.")]
Channels = Annotated[int | None, typer.Option(min=1, max=_MANY, help="Channels of images: 1 grey, 3 colour.")]
Limit = Annotated[int | None, typer.Option(min=1, max=_MANY, help="Only the first so many clean inputs.")]
Mean = Annotated[str | None, typer.Option(metavar="A,B,...", help="Mean to subtract, one number or one per channel.")]
Std = Annotated[str | None, typer.Option(metavar="A,B,...", help="Deviation to divide by, one number or one each.")]
Batch = Annotated[int, typer.Option(min=1, max=_MANY, help="Inputs that go through the network at a time.")]
Frozen = Annotated[
    list[str] | None,
    typer.Option(
        "--frozen", metavar="PATTERN", help="Tensors that were never trained, such as 'backbone.*'; may be given again."
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress, no tables; the verdict and the exit code only.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="List every layer, also those of which the same is said.")]
Jobs = Annotated[int | None, typer.Option(min=1, max=_MANY, help="Most fits at the same time on an engine.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files of weights and proofs that are there already.")]
Ours = Annotated[bool, typer.Option("--ours", help="Only the figures that the paper does not have.")]
JsonOut = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write a JSON record here; - prints it.")]
SarifOut = Annotated[
    Path | None, typer.Option("--sarif", metavar="FILE", help="Write findings as SARIF 2.1.0 here; - prints them.")
]


def check_finite(option: str, value: float | None) -> None:
    """Refuse numbers that are not finite.

    Raises:
        InputError: The number is not.
    """
    if value is not None and not math.isfinite(value):
        raise InputError(f"{option} must be a finite number; got {value}; leave it out to have it estimated")
