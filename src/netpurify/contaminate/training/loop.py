"""The training loop."""

import copy
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from netpurify.contaminate.images.labels import check_data
from netpurify.contaminate.training.recipe import Recipe
from netpurify.contaminate.training.saved_runs import RunFolder, RunState, digest_of_run
from netpurify.errors import InputError
from netpurify.threads import one_torch_thread

Progress = Callable[[int, int, float], None]
"""Called with (epochs done, epochs in all, mean loss of the last one)."""
_LARGEST_SEED = 1 << 42
"""Each epoch has a seed of its own, about a million times this one; torch takes seeds up to 2**63."""


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

    With a folder, the state after each epoch is saved there under the digest of everything that went in. A run that was
    killed is resumed from there and ends with the same bits; a network that is there already is read, not trained.

    Args:
        model: The network before training; it is left as it is.
        inputs: Images [n, ...].
        labels: Their classes [n].
        recipe: How to train.
        seed: Of the order of the images, of the flips, and of the network's own randomness (dropout).
        folder: Where trained networks are saved; made if need be.
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
    digest = digest_of_run(model, inputs, labels, recipe=recipe, seed=seed)
    saved = RunFolder(None if folder is None else Path(folder), digest, recipe)
    model = copy.deepcopy(model)
    run = saved.restore(model)
    with _torch_threads(recipe.threads):
        for epoch in range(len(run.losses), recipe.epochs):
            start = time.perf_counter()
            loss = _epoch(model, run, inputs, labels, recipe=recipe, epoch=epoch, seed=seed)
            if not math.isfinite(loss):
                raise InputError(f"training must not diverge; the loss of epoch {epoch} is {loss}; lower the rate")
            run.losses.append(loss)
            run.seconds += time.perf_counter() - start
            saved.save(model, run)
            if progress is not None:
                progress(epoch + 1, recipe.epochs, loss)
    return Trained(model.eval(), tuple(run.losses), run.seconds, digest)


def _epoch(
    model: nn.Module, run: RunState, inputs: Tensor, labels: Tensor, *, recipe: Recipe, epoch: int, seed: int
) -> float:
    """One pass over the data, whose randomness depends on seed and epoch alone; gives the mean loss."""
    _lay_out(model.train(), torch.channels_last)
    optimiser = _optimiser(model, recipe, run.momenta)
    generator = torch.Generator().manual_seed(1_000_003 * seed + epoch)
    order = torch.randperm(len(inputs), generator=generator)
    batch, count = recipe.batch, len(inputs) // recipe.batch
    total = 0.0
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(1_000_003 * seed + epoch)
        for step in range(count):
            chosen = order[step * batch : (step + 1) * batch]
            images = inputs[chosen]
            if recipe.flips:
                mirrored = torch.rand(batch, generator=generator) < 0.5
                images = torch.where(mirrored.view(-1, *[1] * (images.dim() - 1)), images.flip(-1), images)
            for group in optimiser.param_groups:
                group["lr"] = recipe.rate_at(epoch * count + step, recipe.epochs * count)
            loss = _loss(model, _channels_last(images), labels[chosen])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            total += loss.item()
    run.momenta |= _momenta(model, optimiser)
    model.zero_grad()
    _lay_out(model, torch.contiguous_format)
    return total / count


def _loss(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    try:
        return F.cross_entropy(model(images), labels.long())
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        raise InputError(
            f"the network must give scores [n, classes] for images {list(images.shape)} of {images.dtype}, with a "
            f"class for every label; with labels from {int(labels.min())} to {int(labels.max())} it raised "
            f"{type(error).__name__}: {error}; give inputs of its shape and dtype, and a class for each label"
        ) from error


def _optimiser(model: nn.Module, recipe: Recipe, momenta: dict[str, Tensor]) -> torch.optim.SGD:
    parameters = dict(model.named_parameters())
    optimiser = torch.optim.SGD(
        parameters.values(), lr=recipe.rate, momentum=recipe.momentum, weight_decay=recipe.decay,
        nesterov=recipe.momentum > 0.0,
    )  # fmt: skip
    for name, value in momenta.items():
        optimiser.state[parameters[name]]["momentum_buffer"] = value.clone(memory_format=torch.preserve_format)
    return optimiser


def _momenta(model: nn.Module, optimiser: torch.optim.SGD) -> dict[str, Tensor]:
    """The momentum of each parameter that has one, by name."""
    buffers = {name: optimiser.state.get(value, {}).get("momentum_buffer") for name, value in model.named_parameters()}
    return {name: buffer.contiguous() for name, buffer in buffers.items() if buffer is not None}


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
def _torch_threads(count: int) -> Iterator[None]:
    """Run on ``count`` threads of torch, and give back the number that was there."""
    with one_torch_thread():  # counts the threads of Python that limit torch, so that none of them leaves a 1 behind
        torch.set_num_threads(count)
        try:
            yield
        finally:
            torch.set_num_threads(1)
