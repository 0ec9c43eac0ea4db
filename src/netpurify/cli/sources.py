"""What commands read: the network, its initial weights, the clean inputs."""

from pathlib import Path

from torch import Tensor, nn

from netpurify import checkpoint, data
from netpurify.cli.factory import Build, fill
from netpurify.errors import InputError
from netpurify.network import Seeded


def read_network(weights: Path, build: Build) -> nn.Module:
    """The network with the weights of a file.

    Raises:
        InputError: They do not fit each other.
        CheckpointError: The file cannot be read safely.
    """
    state = checkpoint.load_weights(weights)
    model = build()
    fill(model, state, file=weights)
    return model


def choose_initial(
    file: Path | None, seed: int | None, build: Build | None, *, weights: Path | None = None, needed: str = ""
) -> Path | Seeded | None:
    """The initial weights that the options name.

    Args:
        file: ``--initial``.
        seed: ``--initial-seed``.
        build: The factory, which a seed needs.
        weights: The contaminated weights, which the initial ones must not be.
        needed: Who cannot do without, for the message; empty if none is needed.

    Raises:
        InputError: Both are given, or none though one is needed, or a seed without a factory.
    """
    if file is not None and seed is not None:
        raise InputError("--initial and --initial-seed exclude each other; give the one that you have")
    if file is None and seed is None and needed:
        raise InputError(
            f"{needed} needs the initial weights, those before training; give --initial FILE or --initial-seed N; "
            "--policy project and --policy defend do without"
        )
    if seed is not None:
        if build is None:
            raise InputError("--initial-seed needs --factory, which makes the initial weights from the seed")
        return Seeded(build, seed)
    if file is not None and weights is not None and file.exists() and weights.exists() and file.samefile(weights):
        raise InputError(f"--initial must be the weights before training; {file} is the file to purify itself")
    return file


def read_inputs(
    path: Path,
    *,
    size: str | None = None,
    channels: int | None = None,
    limit: int | None = None,
    mean: str | None = None,
    std: str | None = None,
) -> Tensor:
    """The clean inputs that the options name.

    Raises:
        InputError: An option does not fit.
        DataError: The file or folder cannot be read.
    """
    inputs = data.load_inputs(path, size=_size(size), channels=channels, limit=limit)
    if mean is None and std is None:
        return inputs
    return data.normalise(inputs, _numbers("--mean", mean or "0"), _numbers("--std", std or "1"))


def _size(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    height, _, width = text.lower().partition("x")
    if not (height.isdecimal() and width.isdecimal() and int(height) and int(width)):
        raise InputError(f"--size must be height x width, such as 32x32; got {text!r}")
    return int(height), int(width)


def _numbers(option: str, text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError as error:
        raise InputError(
            f"{option} must be numbers with commas between, such as 0.485,0.456,0.406; got {text!r}"
        ) from error
