"""The method: layer by layer in the order of execution, each seen through the layers that are already purified."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from netpurify.network.adapter.layers import Layer, SharedLayer
from netpurify.network.adapter.span import SpanError
from netpurify.network.fitting import Regressions, fit_units, pose
from netpurify.network.outcome import Outcome
from netpurify.network.policies.policy import LayerPolicy, Progress
from netpurify.network.prepared import Network, capture
from netpurify.threads import one_blas_thread


@dataclass(frozen=True, slots=True)
class PurifiedLayer:
    """One layer that was purified.

    Attributes:
        layer: The layer.
        outcome: Its new weights and what is known of them.
        regressions: What was fitted; ``None`` if the layer needed no fit, or its inputs cannot be used.
        seconds: Time it took.
    """

    layer: Layer
    outcome: Outcome
    regressions: Regressions | None
    seconds: float


def layer_by_layer(network: Network, policy: LayerPolicy, progress: Progress | None = None) -> Iterator[PurifiedLayer]:
    """Purify a network as a policy decides, and give each layer when it is done.

    While later layers are purified, a layer has temporary weights: its final ones, but for units that would spoil what
    later layers see. All final weights are in place when the iteration ends.
    """
    layers = network.in_order() if network.layers else []
    doubt = network.partly_unknown
    final_weights = []
    with one_blas_thread():
        restored = _restored_first(network, layers, policy)
        for number, layer in enumerate(layers):
            if progress is not None:
                progress(layer.name, number, len(layers))
            begun, regressions = time.perf_counter(), None
            weights = network.weights(layer)
            # A layer that was never trained needs neither inputs nor a fit.
            outcome = restored.get(layer.name) or policy.restore(weights)
            if outcome is None:
                try:
                    spans = capture(network, layer)
                except SpanError as error:
                    outcome = Outcome(weights, reason=str(error))
                else:
                    designs = [policy.design(span) for span in spans]
                    regressions = pose(layer, weights, spans, designs, noise_floor=policy.noise_floor, doubt=doubt)
                    regressions = policy.adjust(regressions)
                    fits = fit_units(regressions, policy.fit_options())  # each fit is solved, then verified
                    outcome = policy.decide(regressions, fits)
            network.write(layer, policy.temporary_weights(outcome))
            final_weights.append((layer, outcome.matrix))
            doubt |= outcome.in_doubt
            yield PurifiedLayer(layer, outcome, regressions, time.perf_counter() - begun)
        for layer, matrix in final_weights:
            network.write(layer, matrix)
    if progress is not None:
        progress("", len(layers), len(layers))


def _restored_first(network: Network, layers: Sequence[Layer], policy: LayerPolicy) -> dict[str, Outcome]:
    """Restore tied weights that were never trained, by the names of their layers, and write them.

    The layer of a tied weight comes where its inputs are known, as a head does. But the weight is used before as well,
    as an embedding is, and what lies between must not be seen through altered weights.
    """
    restored = {}
    for layer in layers:
        outcome = policy.restore(network.weights(layer)) if isinstance(layer, SharedLayer) else None
        if outcome is not None:
            restored[layer.name] = outcome
            network.write(layer, outcome.matrix)
    return restored
