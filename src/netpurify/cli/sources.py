"""What commands read: the network, its initial weights, the clean inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import netpurify
from netpurify.cli.model_folders import same_weights
from netpurify.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor, nn

    from netpurify.cli.factory import Build
    from netpurify.network import Seeded

    Data = Tensor | dict[str, Tensor] | list[dict[str, Tensor]]
_DIGITS = 9
_DTYPES = ("auto", "float32", "int64")
_TOKENIZER, _PROCESSOR = "tokenizer.json", "preprocessor_config.json"


def read_network(weights: Path, build: Build | None, config: Path | None = None) -> nn.Module:
    """The network with the weights of a file or folder.

    Args:
        weights: The weights.
        build: The factory; ``None`` if the network is built from its settings.
        config: The settings.

    Raises:
        InputError: They do not fit each other.
        CheckpointError: The file cannot be read safely.
    """
    if build is None:
        return netpurify.network.load_pretrained(weights, config=config)
    state = netpurify.checkpoint.load_weights(weights)
    model = build()
    netpurify.network.fill(model, state, file=weights)
    return model


def find_settings(weights: Path) -> Path | None:
    """``config.json`` in a folder of weights, or beside a file of them; ``None`` if there is none."""
    path = (weights if weights.is_dir() else weights.parent) / "config.json"
    return path if path.is_file() else None


def as_in_file(state: Mapping[str, Tensor], model: nn.Module, file: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Weights of a network under the names that its file has: tied ones as often, and with all else that it holds."""
    names = netpurify.network.names_in(model, file)
    written = {given: state.get(name, file[given]) for given, name in names.items()}
    places = {value.data_ptr() for value in written.values()}
    known = set(names.values())
    # What the file does not have: guards of a defence. Second names of tied weights are in it under their first.
    return written | {
        name: value for name, value in state.items() if name not in known and value.data_ptr() not in places
    }


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
        dtype: Of a single array: auto, float32 or int64.
        tokenizer: File that makes tokens of text; ``None`` for the one beside the weights.
        length: Tokens of a line at most.
        folder: Hugging Face folder of the network, whose tokenizer and settings of images count; ``None`` if none.
    """

    path: Path
    size: tuple[int, int] | None = None
    channels: int | None = None
    limit: int | None = None
    mean: list[float] | None = None
    std: list[float] | None = None
    dtype: str = "auto"
    tokenizer: Path | None = None
    length: int | None = None
    folder: Path | None = None

    @classmethod
    def of(
        cls, path: Path, size: str | None, channels: int | None, limit: int | None, mean: str | None, std: str | None
    ) -> Inputs:
        """As the options were written.

        Raises:
            InputError: An option does not fit.
        """
        return cls(path, _size(size), channels, limit, _numbers("--mean", mean), _numbers("--std", std))

    @property
    def is_text(self) -> bool:
        """Whether they are lines of text."""
        return self.path.suffix.lower() == ".txt" or self.tokenizer is not None

    def check(self) -> None:
        """Refuse options that are for other inputs.

        Raises:
            InputError: There are some.
        """
        others = {
            "--size": self.size, "--channels": self.channels, "--mean": self.mean, "--std": self.std,
            "--dtype": None if self.dtype == "auto" else self.dtype,
        }  # fmt: skip
        if self.is_text and any(value is not None for value in others.values()):
            odd = ", ".join(name for name, value in others.items() if value is not None)
            raise InputError(f"{odd} must not be given for text, which becomes tokens; leave it out")
        if not self.is_text and self.length is not None:
            raise InputError(f"--length is for text; {self.path} is none; leave it out, or give a .txt file")
        if self.dtype not in _DTYPES or (self.dtype != "auto" and self.path.is_dir()):
            raise InputError(f"--dtype must be {', '.join(_DTYPES)}, and auto for images; got {self.dtype!r}")

    def read(self, batch: int | None = None) -> Data:
        """The inputs themselves.

        Args:
            batch: For text, how many lines of equal length go together; ``None`` to fill all up to one length.

        Raises:
            InputError: An option does not fit what is there.
            DataError: The file or folder cannot be read.
        """
        data = netpurify.data
        if self.is_text:
            return data.load_tokens(self.path, self._tokenizer(), length=self.length, limit=self.limit, batch=batch)
        images = {"size": self.size, "channels": self.channels, "limit": self.limit}
        processor = None if self.folder is None else self.folder / _PROCESSOR
        if processor is not None and processor.is_file() and self.path.is_dir():
            return data.load_processed(self.path, processor, **images, mean=self.mean, std=self.std)
        found = data.load_inputs(self.path, **images, dtype=self.dtype)  # pyright: ignore[reportArgumentType]
        if self.mean is None and self.std is None:
            return found
        if isinstance(found, dict):
            raise InputError(
                f"--mean and --std are for a single array; {self.path} holds {', '.join(found)}; normalise these"
            )
        return data.normalise(found, self.mean or [0.0], self.std or [1.0])

    def _tokenizer(self) -> Path:
        if self.tokenizer is not None:
            return self.tokenizer
        if self.folder is None or not (self.folder / _TOKENIZER).is_file():
            raise InputError(
                f"text needs the tokenizer of the network; there is no {_TOKENIZER} beside the weights; give "
                "--tokenizer FILE, or token ids in a .npz file"
            )
        return self.folder


def count_inputs(data: Data) -> int:
    """How many inputs there are in a tensor, in named inputs, or in batches of them."""
    if isinstance(data, list):
        return sum(map(count_inputs, data))
    return len(next(iter(data.values()))) if isinstance(data, dict) else len(data)


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
