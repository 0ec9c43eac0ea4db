"""Embeddings: the rows of tokens that no clean input uses must be the initial ones, whatever the optimiser.

Training changes the row of a token only if it sees the token. The rows of tokens that the clean inputs use are free,
and are left alone. Those of other tokens were trained too if training saw tokens that the clean inputs lack: then most
entries of such a row differ. All other rows are judged together, like a layer that was never trained.
"""

import numpy as np

from netpurify.network.adapter.tokens import TokenSpan
from netpurify.network.adapter.weights import Array, Mask, Weights, part_of
from netpurify.network.fitting import Regressions
from netpurify.network.outcome import Outcome
from netpurify.network.policies.recovery import evidence
from netpurify.network.policies.recovery.frozen import restore_frozen
from netpurify.network.records import Grade

MOST = 0.5
"""A token was seen in training if more than this share of its row differs from the initial one, clean input or not."""


def restore_unused(regressions: Regressions, span: TokenSpan) -> Outcome:
    """What becomes of an embedding whose clean inputs use the tokens of ``span``."""
    weights = regressions.weights
    outcome = Outcome(weights)
    outcome.free = True
    differs = ~(weights.contaminated[0] == weights.initial[0])
    unused = ~span.used
    fixed = unused & (differs.mean(axis=0) <= MOST)
    _rebuild(outcome, span.used)
    outcome.reason = f"training may set the rows of the {int(span.used.sum()):,} tokens that clean inputs use freely"
    restored = restore_frozen(part_of(weights, fixed)) if fixed.any() else None
    if restored is None:
        _list_suspicious(weights, outcome, unused)
        outcome.reason += (
            "; the rows of other tokens differ from the initial ones as training or weight decay makes them"
        )
        outcome.unjudged = int(differs[:, unused].sum())
        return outcome
    chosen: Mask = np.zeros(differs.shape, np.bool_)
    chosen[:, fixed] = restored.replaced[0]
    outcome.replace(0, chosen, weights.initial[0][chosen])
    outcome.grade[fixed] = Grade.RESTORED
    outcome.noise_floor[fixed] = 0.0
    outcome.histogram += restored.histogram
    outcome.zeros = restored.zeros
    outcome.unjudged = int(differs[:, unused & ~fixed].sum())
    return outcome


def _rebuild(outcome: Outcome, used: Mask) -> None:
    """Missing weights of tokens that are used get their initial values: nothing better is known."""
    missing = outcome.weights.missing[0] & used
    outcome.replace(0, missing, outcome.weights.initial[0][missing])
    outcome.grade[missing.any(axis=0)] = Grade.APPROXIMATE


def _list_suspicious(weights: Weights, outcome: Outcome, unused: Mask) -> None:
    """If weight decay shrank all unused rows by one factor, list single weights that differ; their bits stay."""
    initial: Array = weights.initial[0][:, unused].astype(np.float64)
    contaminated: Array = weights.contaminated[0][:, unused].astype(np.float64)
    known = (initial != 0.0) & np.isfinite(contaminated)
    if not known.any():
        return
    factor = float(np.median(contaminated[known] / initial[known]))
    with np.errstate(invalid="ignore"):
        differs = ~(np.abs(contaminated - factor * initial) <= weights.rounding(0)[..., unused])
    single = differs & (differs.mean(axis=0) <= MOST)
    if 0.0 < factor < 1.0 and 2 * single.sum() < single.size and evidence.scattered(single):
        outcome.decay = factor
        outcome.suspicious[0][:, unused] = single
