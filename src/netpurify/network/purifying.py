"""Purify a network: make it ready, then let a policy run."""

from collections.abc import Collection

from torch import nn

from netpurify.errors import InputError
from netpurify.network.adapter.capture import BATCH, Data, Forward
from netpurify.network.policies.policy import Policy, Progress, Result
from netpurify.network.prepared import prepare


def purify(
    model: nn.Module,
    data: Data,
    *,
    policy: Policy[Result],
    layers: Collection[str] | None = None,
    forward: Forward | None = None,
    batch: int = BATCH,
    progress: Progress | None = None,
) -> Result:
    """Purify a network with a few clean inputs, without labels and, but for ``Unlearn``, without training.

    Args:
        model: The contaminated network; it is left as it is. What ``DataParallel`` wraps is purified
            without the wrapper.
        data: Clean inputs: a tensor or NumPy array, a mapping of named ones, which become keyword arguments, a
            ``DataLoader`` or a list of batches; labels are ignored.
        policy: What to do. ``Recover(initial)`` is for weights that were altered after training: noise, bit flips,
            tampering. ``Project(initial)`` is for weights that were poisoned during training: Algorithm 2 of the paper.
            ``Defend()`` is for deep networks that were poisoned during training, where clean inputs span every
            direction: it needs no initial weights, and proves nothing. ``Unlearn()`` hunts for a backdoor and trains it
            away: images only, and no proof either.
        layers: Names of the layers to purify; ``None`` for all that can be.
        forward: Calls the model on a batch, for models that want more than ``model(inputs)``.
        batch: Inputs of a tensor that go through the network at a time.
        progress: Called as ``progress(name, done, total)`` before each layer and at the end.

    Returns:
        What the policy gives: a ``Purification`` by ``Recover`` and ``Project``, a ``Defence`` by ``Defend``, an
        ``Unlearning`` by ``Unlearn``.

    Raises:
        InputError: An argument does not fit; the message says what was expected, what came and what to do.
        DisagreementError: The defence would cost more than its ``max_disagreement``.
    """
    if isinstance(policy, type) or not hasattr(policy, "run"):
        raise InputError(
            "policy must be a value such as Recover(initial), Project(initial), Defend() or Unlearn(); got "
            f"{policy.__name__ if isinstance(policy, type) else repr(policy)}"
        )
    network = prepare(model, data, initial=policy.initial, layers=layers, forward=forward, batch=batch)
    return policy.run(network, progress)
