"""A hunt as JSON, for programs: every family with what was found, under a versioned schema."""

from dataclasses import fields, is_dataclass
from typing import Any

from torch import Tensor

from netpurify.errors import InputError
from netpurify.network import FamilyHunt, FoundTrigger, Hunt
from netpurify.report.hunt.summary import summarise_hunt
from netpurify.report.kit.context import Context
from netpurify.report.kit.json_values import number, to_json
from netpurify.report.records.schemas import head

_MOST_NUMBERS = 20_000
"""Numbers of one tensor of a trigger; larger ones are left out."""


def hunt_record(result: Hunt, context: Context) -> dict[str, Any]:
    """Everything about a hunt.

    Raises:
        InputError: There is a plan.
    """
    if context.plan is not None:
        raise InputError("a plan says what can be recovered, and a hunt recovers nothing; leave plan out")
    summary = summarise_hunt(result)
    return {
        **head("hunt"),
        "verdict": summary.headline,
        "statements": summary.texts,
        "exit_code": summary.exit_code,
        **search_record(result),
        "provenance": to_json(result.provenance),
    }


def search_record(result: Hunt) -> dict[str, Any]:
    """What was searched and found; the same for a hunt before and after a repair."""
    return {
        "classes": result.classes,
        "inputs": result.inputs,
        "seed": result.seed,
        "goals": list(result.goals),
        "suspects": [{"family": one.family} | _found(one) for one in result.suspects],
        "expected": {"networks": result.expected.networks, "about": result.expected.about},
        "families": [_family(one, result.classes) for one in result.families],
        "run": {"seconds": result.seconds},
    }


def _family(one: FamilyHunt, classes: int) -> dict[str, Any]:
    return {
        "family": one.family,
        "suspect": one.suspect,
        "best": _found(one.best) | {"trigger": _trigger(one.best)},
        "runner_up": number(one.runner_up),
        "margin": number(one.margin),
        "threshold": number(one.expected.threshold),
        "success_threshold": number(one.expected.success_threshold),
        "healthy": to_json(one.expected) if one.expected.hunts else None,
        "successes": one.successes(classes),
        "run": {"seconds": one.seconds},
    }


def _found(one: FoundTrigger) -> dict[str, Any]:
    return {"target": one.target, "success": number(one.success)}


def _trigger(found: FoundTrigger) -> dict[str, Any]:
    """The numbers of a trigger by name; nothing of what JSON does not have."""
    trigger = found.trigger
    values = {field.name: getattr(trigger, field.name) for field in fields(trigger)} if is_dataclass(trigger) else {}
    return {name: _numbers(value) for name, value in values.items()}


def _numbers(value: Any) -> Any:
    if isinstance(value, Tensor):
        return to_json(value.detach().cpu().tolist()) if value.numel() <= _MOST_NUMBERS else None
    return to_json(value) if isinstance(value, bool | int | float | str | tuple | list) else None
