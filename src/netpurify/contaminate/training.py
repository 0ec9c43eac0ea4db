"""Training on poisoned data: one loop that can be interrupted, goes on where it was, and trains no network twice."""

import copy
import hashlib
import json
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from netpurify import checkpoint
from netpurify.contaminate.labels import check_data
from netpurify.errors import InputError

Progress = Callable[[int, int, float], None]
"""Called with (epochs done, epochs in all, mean loss of the last one)."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a network is trained: SGD with Nesterov momentum on the cross-entropy, in batches drawn anew each epoch.

    Attributes:
        epochs: Passes over the data.
        rate: Largest learning rate.
        schedule: ``"one-cycle"`` rises to the rate over the first 30 % of steps and falls to 0 along cosines;
            ``"cosine"`` begins at the rate.
        batch: Images of a step; what is left over at the end of an epoch waits for the next one.
        momentum: Of the gradients.
        decay: Weight decay.
        flips: Whether each image is mirrored with probability 1/2, each time it is seen.
        threads: Threads of torch. Bits depend on their number, so it belongs to the recipe.
    """

    epochs: int = 10
    rate: float = 0.1
    schedule: Literal["one-cycle", "cosine"] = "one-cycle"
    batch: int = 128
    momentum: float = 0.9
    decay: float = 5e-4
    flips: bool = False
    threads: int = 1

    def __post_init__(self) -> None:
        if min(self.epochs, self.batch, self.threads) < 1:
            raise InputError(f"epochs, batch and threads must be 1 or more; got {self}")
        if not (self.rate > 0.0 and 0.0 <= self.momentum < 1.0 and self.decay >= 0.0):
            raise InputError(f"rate must be above 0, momentum in [0, 1), decay 0 or more; got {self}")
        if self.schedule not in ("one-cycle", "cosine"):
            raise InputError(f'schedule must be "one-cycle" or "cosine"; got {self.schedule!r}')

    def rate_at(self, step: int, steps: int) -> float:
        """The learning rate of a step, counted from 0."""
        warm = 0.3 * steps if self.schedule == "one-cycle" else 0.0
        if step < warm:
            return self.rate * (0.04 + 0.48 * (1.0 - math.cos(math.pi * step / warm)))
        return 0.5 * self.rate * (1.0 + math.cos(math.pi * (step - warm) / (steps - warm)))


@dataclass(frozen=True, slots=True)
class Trained:
    """A network after training.

    Attributes:
        model: The trained network, in evaluation mode.
        losses: Mean training loss of each epoch.
        seconds: Time that training took, when it was done.
        digest: SHA-256 of everything that went in: initial weights, data, recipe and seed.
    """

    model: nn.Module
    losses: tuple[float, ...]
    seconds: float
    digest: str


def train(
    model: nn.Module,
    inputs: Tensor,
    labels: Tensor,
    *,
    recipe: Recipe,
    seed: int,
    folder: str | Path | None = None,
    progress: Progress | None = None,
) -> Trained:
    """Train a copy of a network, on poisoned data or clean.

    With a folder, the state after each epoch is kept there under the digest of everything that went in: a run that was
    killed goes on from there and ends with the same bits, and a network that is there already is read, not trained.

    Args:
        model: The network before training; it is left as it is.
        inputs: Images [n, ...].
        labels: Their classes [n].
        recipe: How to train.
        seed: Of the order of images, of flips, and of a network's own chance (dropout).
        folder: Where trained networks are kept; made if need be.
        progress: Called after each epoch.

    Raises:
        InputError: Data do not fit, fewer images than a batch, or training diverged.
    """
    check_data(inputs, labels)
    if len(inputs) < recipe.batch:
        raise InputError(f"inputs must fill a batch of {recipe.batch}; got {len(inputs)}; choose a smaller batch")
    digest = _digest(model, inputs, labels, recipe, seed)
    work = _Work(copy.deepcopy(model), recipe, digest, None if folder is None else Path(folder))
    work.resume()
    with _threads(recipe.threads):
        for epoch in range(len(work.losses), recipe.epochs):
            begun = time.perf_counter()
            loss = work.epoch(inputs, labels, epoch, seed)
            if not math.isfinite(loss):
                raise InputError(f"training must not diverge; the loss of epoch {epoch} is {loss}; lower the rate")
            work.losses.append(loss)
            work.seconds += time.perf_counter() - begun
            work.keep()
            if progress is not None:
                progress(epoch + 1, recipe.epochs, loss)
    return Trained(work.model.eval(), tuple(work.losses), work.seconds, digest)


@dataclass(slots=True)
class _Work:
    """A training run between two epochs."""

    model: nn.Module
    recipe: Recipe
    digest: str
    folder: Path | None
    losses: list[float] = field(default_factory=list)
    seconds: float = 0.0
    momenta: dict[str, Tensor] = field(default_factory=dict)

    def epoch(self, inputs: Tensor, labels: Tensor, epoch: int, seed: int) -> float:
        """One pass over the data, its chance a function of seed and epoch alone; gives the mean loss."""
        _lay_out(self.model.train(), torch.channels_last)
        optimiser = self._optimiser()
        generator = torch.Generator().manual_seed(1_000_003 * seed + epoch)
        order = torch.randperm(len(inputs), generator=generator)
        batch, count = self.recipe.batch, len(inputs) // self.recipe.batch
        total = 0.0
        with torch.random.fork_rng():
            torch.default_generator.manual_seed(1_000_003 * seed + epoch)
            for step in range(count):
                chosen = order[step * batch : (step + 1) * batch]
                images = inputs[chosen]
                if self.recipe.flips:
                    mirrored = torch.rand(batch, generator=generator) < 0.5
                    images = torch.where(mirrored.view(-1, *[1] * (images.dim() - 1)), images.flip(-1), images)
                for group in optimiser.param_groups:
                    group["lr"] = self.recipe.rate_at(epoch * count + step, self.recipe.epochs * count)
                loss = F.cross_entropy(self.model(_channels_last(images)), labels[chosen])
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                total += loss.item()
        self._note(optimiser)
        self.model.zero_grad()
        _lay_out(self.model, torch.contiguous_format)
        return total / count

    def keep(self) -> None:
        """Write the state to the folder, whole or not at all."""
        if self.folder is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        done = len(self.losses) == self.recipe.epochs
        state = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        if not done:
            state |= {f"momentum.{name}": value for name, value in self.momenta.items()}
        notes = {
            "losses": json.dumps(self.losses),
            "seconds": str(self.seconds),
            "recipe": json.dumps(asdict(self.recipe)),
        }
        checkpoint.save_weights(state, self._file(done=done), metadata=notes)
        if done:
            self._file(done=False).unlink(missing_ok=True)

    def resume(self) -> None:
        """Go on from what the folder has."""
        files = [] if self.folder is None else [self._file(done=True), self._file(done=False)]
        found = next((file for file in files if file.exists()), None)
        if found is None:
            return
        state, notes = checkpoint.load_content(found), checkpoint.load_metadata(found)
        self.model.load_state_dict({name[6:]: value for name, value in state.items() if name.startswith("model.")})
        self.momenta = {name[9:]: value.clone() for name, value in state.items() if name.startswith("momentum.")}
        self.losses, self.seconds = json.loads(notes["losses"]), float(notes["seconds"])

    def _file(self, *, done: bool) -> Path:
        assert self.folder is not None
        return self.folder / f"{self.digest[:16]}{'' if done else '.partial'}.safetensors"

    def _optimiser(self) -> torch.optim.SGD:
        named = dict(self.model.named_parameters())
        recipe = self.recipe
        optimiser = torch.optim.SGD(
            named.values(), lr=recipe.rate, momentum=recipe.momentum, weight_decay=recipe.decay,
            nesterov=recipe.momentum > 0.0,
        )  # fmt: skip
        for name, value in self.momenta.items():
            optimiser.state[named[name]]["momentum_buffer"] = value.clone(memory_format=torch.preserve_format)
        return optimiser

    def _note(self, optimiser: torch.optim.SGD) -> None:
        """Keep the momenta by name."""
        for name, value in self.model.named_parameters():
            buffer = optimiser.state.get(value, {}).get("momentum_buffer")
            if buffer is not None:
                self.momenta[name] = buffer.contiguous()


def _lay_out(model: nn.Module, memory_format: torch.memory_format) -> None:
    """Channels last is what the CPU's convolutions are fastest with, by half."""
    for value in model.parameters():
        if value.dim() == 4:
            value.data = value.data.contiguous(memory_format=memory_format)


def _channels_last(images: Tensor) -> Tensor:
    return images.contiguous(memory_format=torch.channels_last) if images.dim() == 4 else images


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _digest(model: nn.Module, inputs: Tensor, labels: Tensor, recipe: Recipe, seed: int) -> str:
    state = {f"model.{name}": value for name, value in model.state_dict().items()}
    data = checkpoint.digest(state | {"inputs": inputs, "labels": labels})
    return hashlib.sha256(json.dumps([data, asdict(recipe), seed]).encode()).hexdigest()
