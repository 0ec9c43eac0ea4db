"""A defence as JSON, for programs: everything that is known but the weights, under a versioned schema."""

from typing import Any

from netpurify.errors import InputError
from netpurify.network import Defence, DefendedLayer, Step
from netpurify.report.defence.summary import Price, summarise_defence
from netpurify.report.kit.context import Context
from netpurify.report.kit.json_values import number, to_json
from netpurify.report.records.schemas import head


def defence_record(result: Defence, context: Context) -> dict[str, Any]:
    """Everything about a defence but the weights.

    Raises:
        InputError: There is a plan.
    """
    if context.plan is not None:
        raise InputError("a plan says what can be recovered, and a defence recovers nothing; leave plan out")
    price, summary = Price.of(result), summarise_defence(result)
    return {
        **head("defence"),
        "policy": summary.policy,
        "verdict": summary.headline,
        "statements": summary.texts,
        "exit_code": summary.exit_code,
        "strength": result.strength,
        "automatic": price.automatic,
        "confidence": number(result.confidence),
        "allowed": number(price.allowed) if price.automatic else None,
        "guard": result.guard,
        "chosen": _step(result.chosen, price.level),
        "curve": [_step(step, price.level) for step in result.curve],
        "agreement": to_json(result.agreement),
        "run": {"seconds": result.seconds},
        "provenance": to_json(result.provenance),
        "layers": [_layer(layer, guard=result.guard) for layer in result.layers],
        "skipped": to_json(result.skipped),
    }


def _step(step: Step, level: float) -> dict[str, Any]:
    return to_json(step) | {"disagreement": number(step.disagreement), "bound": number(step.bound(level))}


def _layer(layer: DefendedLayer, *, guard: bool) -> dict[str, Any]:
    return {
        "name": layer.name,
        "kind": layer.kind,
        "units": layer.units,
        "fan_in": layer.fan_in,
        "rows": layer.rows,
        "forgotten": number(layer.forgotten),
        "kept": to_json(layer.kept.tolist()),
        "change": number(layer.change),
        "guarded": layer.guarded if guard else None,
        "clipped": number(layer.clipped),
    }
