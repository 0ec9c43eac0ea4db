"""A repair by training as JSON, for programs: both hunts and the price, under a versioned schema."""

from typing import Any

from netpurify.errors import InputError
from netpurify.network import Unlearning
from netpurify.report.hunt.record import search_record
from netpurify.report.kit.context import Context
from netpurify.report.kit.json_values import number, to_json
from netpurify.report.records.schemas import head
from netpurify.report.unlearning.summary import summarise_unlearning


def unlearning_record(result: Unlearning, context: Context) -> dict[str, Any]:
    """Everything about a repair by training but the weights.

    Raises:
        InputError: There is a plan.
    """
    if context.plan is not None:
        raise InputError("a plan says what can be recovered, and unlearn recovers nothing; leave plan out")
    summary = summarise_unlearning(result)
    return {
        **head("unlearning"),
        "policy": summary.policy,
        "verdict": summary.headline,
        "statements": summary.texts,
        "exit_code": summary.exit_code,
        "changed": result.changed,
        "still_found": result.still_found,
        "steps": result.steps,
        "chosen": to_json(result.chosen) | {"disagreement": number(result.chosen.share), "bound": number(result.bound)},
        "before": search_record(result.before),
        "after": None if result.after is None else search_record(result.after),
        "agreement": to_json(result.agreement),
        "run": {"seconds": result.seconds},
        "provenance": to_json(result.provenance),
        "skipped": to_json(result.skipped),
    }
