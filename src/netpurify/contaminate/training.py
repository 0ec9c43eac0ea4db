"""Training on poisoned data: one loop that can be interrupted, goes on where it was, and trains no network twice."""

import copy
import json
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from netpurify import checkpoint
from netpurify.contaminate import kept
from netpurify.contaminate.labels import check_data
from netpurify.contaminate.recipe import Recipe
from netpurify.errors import CheckpointError, InputError

Progress = Callable[[int, int, float], None]
"""Called with (epochs done, epochs in all, mean loss of the last one)."""
_LARGEST_SEED = 1 << 42
"""A seed gives one for each epoch, which torch takes up to 2**63."""


@dataclass(frozen=True, slots=True)
class Trained:
    """A network after training.

    Attributes:
        model: The trained network, in evaluation mode.
        losses: Mean training loss of each epoch.
        seconds: Time that training took, when it was done.
        digest: SHA-256 of what went in: initial weights, data, recipe and seed.
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
        InputError: Data do not fit the network, fewer images than a batch, training diverged, or the folder has another
            network that began with the same weights.
        CheckpointError: What the folder has is damaged, or nothing can be written there.
    """
    _check(model, seed)
    check_data(inputs, labels)
    if len(inputs) < recipe.batch:
        raise InputError(f"inputs must fill a batch of {recipe.batch}; got {len(inputs)}; choose a smaller batch")
    digest = kept.digest_of_run(model, inputs, labels, recipe, seed)
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
                loss = self._loss(_channels_last(images), labels[chosen])
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                total += loss.item()
        self._note(optimiser)
        self.model.zero_grad()
        _lay_out(self.model, torch.contiguous_format)
        return total / count

    def _loss(self, images: Tensor, labels: Tensor) -> Tensor:
        try:
            return F.cross_entropy(self.model(images), labels.long())
        except (RuntimeError, TypeError, ValueError, IndexError) as error:
            raise InputError(
                f"the network must give scores [n, classes] for images {list(images.shape)} of {images.dtype}, with a "
                f"class for every label; with labels from {int(labels.min())} to {int(labels.max())} it raised "
                f"{type(error).__name__}: {error}; give inputs of its shape and dtype, and a class for each label"
            ) from error

    def keep(self) -> None:
        """Write the state to the folder, whole or not at all."""
        if self.folder is None:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise CheckpointError(
                f"{self.folder}: trained networks must be kept in a folder; {problem.strerror}; choose another place"
            ) from problem
        done = len(self.losses) == self.recipe.epochs
        state = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        if not done:
            state |= {f"momentum.{name}": value for name, value in self.momenta.items()}
        notes = {
            "losses": json.dumps(self.losses),
            "seconds": str(self.seconds),
            "recipe": json.dumps(asdict(self.recipe)),
            "network": kept.digest_of_network(self.model),
            "content": checkpoint.digest(state),
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
        try:
            self._take(*kept.read(found))
        except (CheckpointError, RuntimeError, KeyError) as error:
            if not found.exists():  # another run of the same has just ended, and took it away
                self.resume()
                return
            raise CheckpointError(
                f"{found} must be what training left there; {error}; delete it to begin anew"
            ) from error

    def _take(self, state: dict[str, Tensor], notes: dict[str, str]) -> None:
        if notes.get("network", "") not in ("", kept.digest_of_network(self.model)):
            raise InputError(
                f"{self.folder} has another network that began with the same weights, data and recipe; choose another "
                "folder for this one"
            )
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


def _check(model: nn.Module, seed: int) -> None:
    if not isinstance(model, nn.Module):
        raise InputError(f"model must be a torch.nn.Module; got {type(model).__name__}")
    if any(isinstance(value, nn.UninitializedParameter) for value in model.parameters()):
        raise InputError("the network must have its weights before training; some layers are lazy; call it once first")
    if not any(value.requires_grad for value in model.parameters()):
        raise InputError("the network must have weights to train; none requires a gradient; call requires_grad_()")
    if abs(seed) > _LARGEST_SEED:
        raise InputError(f"seed must be at most {_LARGEST_SEED} in size; got {seed}")


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
