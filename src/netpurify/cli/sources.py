"""What commands read: the network, its initial weights, the clean inputs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import netpurify
from netpurify.cli.factory import fill
from netpurify.cli.model_folders import same_weights
from netpurify.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor, nn

    from netpurify.cli.factory import Build
    from netpurify.network import Seeded

_DIGITS = 9


def read_network(weights: Path, build: Build) -> nn.Module:
    """The network with the weights of a file.

    Raises:
        InputError: They do not fit each other.
        CheckpointError: The file cannot be read safely.
    """
    state = netpurify.checkpoint.load_weights(weights)
    model = build()
    fill(model, state, file=weights)
    return model


def check_initial(file: Path | None, seed: int | None, *, needed: str = "") -> None:
    """Refuse options that do not say what the initial weights are.

    Args:
        file: ``--initial``.
        seed: ``--initial-seed``.
        needed: Who cannot do without, for the message; empty if none is needed.

    Raises:
        InputError: Both are given, or none though one is needed.
    """
    if file is not None and seed is not None:
        raise InputError("--initial and --initial-seed exclude each other; give the one that you have")
    if file is None and seed is None and needed:
        raise InputError(
            f"{needed} needs the initial weights, those before training; give --initial FILE or --initial-seed N; "
            "netpurify project and netpurify defend do without"
        )


def choose_initial(file: Path | None, seed: int | None, build: Build | None, *, weights: Path) -> Path | Seeded | None:
    """The initial weights that the options name.

    Args:
        file: ``--initial``.
        seed: ``--initial-seed``.
        build: The factory, which a seed needs.
        weights: The contaminated weights, which the initial ones must not be.

    Raises:
        InputError: The file is that of the contaminated weights, or there is a seed without a factory.
    """
    if seed is not None:
        if build is None:
            raise InputError("--initial-seed needs --factory, which makes the initial weights from the seed")
        return netpurify.Seeded(build, seed)
    if file is not None and same_weights(file, weights):
        raise InputError(f"--initial must be the weights before training; {file} is the file to purify itself")
    return file


@dataclass(frozen=True, slots=True)
class Inputs:
    """The clean inputs that the options name, not read yet.

    Attributes:
        path: A file or a folder.
        size: Height and width to resize images to.
        channels: Channels of images.
        limit: How many to take at most.
        mean: To subtract, one number or one for each channel.
        std: To divide by.
    """

    path: Path
    size: tuple[int, int] | None
    channels: int | None
    limit: int | None
    mean: list[float] | None
    std: list[float] | None

    @classmethod
    def of(
        cls, path: Path, size: str | None, channels: int | None, limit: int | None, mean: str | None, std: str | None
    ) -> Inputs:
        """As the options were written.

        Raises:
            InputError: An option does not fit.
        """
        return cls(path, _size(size), channels, limit, _numbers("--mean", mean), _numbers("--std", std))

    def read(self) -> Tensor:
        """The inputs themselves.

        Raises:
            InputError: An option does not fit what is there.
            DataError: The file or folder cannot be read.
        """
        found = netpurify.data.load_inputs(self.path, size=self.size, channels=self.channels, limit=self.limit)
        if self.mean is None and self.std is None:
            return found
        return netpurify.data.normalise(found, self.mean or [0.0], self.std or [1.0])


def check_sources(paths: Iterable[Path | None]) -> None:
    """Refuse files that are not there, before anything else is done.

    Raises:
        InputError: One of them cannot be found or reached.
    """
    for path in paths:
        try:
            if path is not None:
                path.stat()
        except OSError as problem:
            raise InputError(f"{path} must be there to be read; {problem.strerror}; check its name") from problem


def _size(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    height, _, width = text.lower().partition("x")
    # No image is so large that its height or width would have more digits, and Python reads no number of any length.
    if not all(part.isdecimal() and len(part) <= _DIGITS and int(part) for part in (height, width)):
        raise InputError(f"--size must be height x width, such as 32x32; got {text!r}")
    return int(height), int(width)


def _numbers(option: str, text: str | None) -> list[float] | None:
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError as error:
        raise InputError(
            f"{option} must be numbers with commas between, such as 0.485,0.456,0.406; got {text!r}"
        ) from error
