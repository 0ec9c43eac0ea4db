"""Purify a network, by one of three policies that are never confused."""

from collections.abc import Collection
from typing import Literal, overload

from torch import nn

from netpurify.errors import InputError
from netpurify.network.capture import Data, Forward
from netpurify.network.defence import Defence, defend
from netpurify.network.purification import Policy, Progress, Purification, repair
from netpurify.network.reference import Initial


@overload
def purify(
    model: nn.Module,
    data: Data,
    *,
    initial: Initial | None,
    policy: Policy = "recover",
    layers: Collection[str] | None = None,
    rank: float | None = None,
    forward: Forward | None = None,
    noise_floor: float | None = None,
    decay: float | None = None,
    proof: bool = True,
    engine: str | None = None,
    jobs: int | None = None,
    batch: int = 32,
    progress: Progress | None = None,
) -> Purification: ...


@overload
def purify(
    model: nn.Module,
    data: Data,
    *,
    policy: Literal["defend"],
    strength: float | Literal["auto"] = "auto",
    guard: bool = True,
    max_disagreement: float | None = None,
    layers: Collection[str] | None = None,
    forward: Forward | None = None,
    batch: int = 32,
    progress: Progress | None = None,
) -> Defence: ...


def purify(
    model: nn.Module,
    data: Data,
    *,
    initial: Initial | None = None,
    policy: Policy | Literal["defend"] = "recover",
    layers: Collection[str] | None = None,
    rank: float | None = None,
    forward: Forward | None = None,
    noise_floor: float | None = None,
    decay: float | None = None,
    proof: bool = True,
    strength: float | Literal["auto"] = "auto",
    guard: bool = True,
    max_disagreement: float | None = None,
    engine: str | None = None,
    jobs: int | None = None,
    batch: int = 32,
    progress: Progress | None = None,
) -> Purification | Defence:
    """Purify a network with a few clean inputs, without labels and without training.

    ``policy="recover"`` is for weights that were altered after training: noise, bit flips, tampering. What is proven to
    be altered is replaced, everything else keeps its exact bits. ``policy="project"`` is for weights that were poisoned
    during training: Algorithm 2 of the paper as written, every weight takes the fitted value. ``policy="defend"`` is
    for deep networks that were poisoned during training, where clean inputs span every direction: it needs no initial
    weights, and proves nothing.

    Args:
        model: The contaminated network; it is left as it is.
        data: Clean inputs: a tensor, a ``DataLoader`` or a list of batches; labels are ignored.
        initial: The network before training: a module, a state dict, a file, or ``Seeded(factory, seed)``. ``None`` is
            possible with ``project``: the weights themselves are then fitted, as if training had begun at zero; and
            ``defend`` takes none.
        policy: What to do; see above.
        layers: Names of the layers to purify; ``None`` for all that can be.
        rank: For ``project``: number of the strongest directions to keep, or the share of energy that they hold.
        forward: Calls the model on a batch, for models that want more than ``model(inputs)``.
        noise_floor: Residuals up to this are rounding; ``None`` for 256 rounding units of a unit's typical weight.
        decay: For ``recover``: factor that weight decay left on the initial weights; ``None`` estimates it per layer.
        proof: Whether to keep coefficients and duals, which ``verify`` needs: two numbers for each weight. There is
            none with ``defend``.
        strength: For ``defend``: how much to forget; ``"auto"`` chooses without labels; see ``network.defend``.
        guard: For ``defend``: whether channels are kept within the range that clean inputs use.
        max_disagreement: For ``defend``: most that the class may change on held-out clean inputs, as a share.
        engine: Where fits run: ``None`` in this process on all cores, else as in ``netpurify.engine``.
        jobs: Most fits at the same time, on an engine.
        batch: Inputs of a tensor that go through the network at a time.
        progress: Called as ``progress(name, done, total)`` before each layer and at the end.

    Raises:
        InputError: An argument does not fit; the message says what was expected, what came and what to do.
        DisagreementError: The defence would cost more than ``max_disagreement``.
    """
    if policy == "defend":
        others = {
            "initial": initial, "rank": rank, "noise_floor": noise_floor, "decay": decay, "engine": engine, "jobs": jobs
        }  # fmt: skip
        _refuse(policy, [name for name, value in others.items() if value is not None])
        return defend(
            model, data, strength=strength, guard=guard, max_disagreement=max_disagreement, layers=layers,
            forward=forward, batch=batch, progress=progress,
        )  # fmt: skip
    set_ones = {"strength": strength != "auto", "guard": not guard, "max_disagreement": max_disagreement is not None}
    _refuse(policy, [name for name, given in set_ones.items() if given])
    return repair(
        model, data, initial=initial, policy=policy, layers=layers, rank=rank, forward=forward, noise_floor=noise_floor,
        decay=decay, proof=proof, engine=engine, jobs=jobs, batch=batch, progress=progress,
    )  # fmt: skip


def _refuse(policy: str, given: list[str]) -> None:
    if given:
        it = "it" if len(given) == 1 else "them"
        raise InputError(f'{" and ".join(given)} must be left out with policy="{policy}", which has no use for {it}')
