"""What ``check`` says of a network, in words and as JSON."""

from typing import Any

from netpurify.network import Plan
from netpurify.report.kit.json_values import to_json
from netpurify.report.kit.names import missed_modules
from netpurify.report.kit.numbers import count, estimate, plural, size
from netpurify.report.kit.summary import Statement, Summary
from netpurify.report.records.schemas import head

_NOTHING = "no layer can be examined: purify would refuse this network, and nothing is known about its weights"
_BASIS = "What this rests on: a few units of each layer that were tried; others may have more altered weights."


def summarise_plan(plan: Plan) -> Summary:
    """A plan in words; the exit code is 1 if ``purify`` could say nothing about some part of the network."""
    missed = any(module.missed for module in plan.skipped)
    repairable, layers = len(plan.repairable), len(plan.layers)
    return Summary(
        policy="",
        headline=_headline(plan) if plan.layers else _NOTHING,
        outlook="unseen" if not repairable else "limits" if missed or repairable < layers else "holds",
        statements=(Statement(_cost(plan)),) if plan.layers else (),
        advice=(),
        basis=_BASIS,
        exit_code=1 if missed or not plan.layers else 0,
    )


def plan_record(plan: Plan) -> dict[str, Any]:
    """A plan as JSON."""
    verdict = summarise_plan(plan).headline
    return {**head("plan"), "verdict": verdict, "repairable": list(plan.repairable), **plan_content(plan)}


def plan_content(plan: Plan) -> dict[str, Any]:
    """The figures of a plan, which stand in the record of a purification too."""
    layers = [_timed(to_json(layer) | {"ratio": to_json(layer.ratio)}) for layer in plan.layers]
    return _timed(to_json(plan) | {"layers": layers})


def _timed(record: dict[str, Any]) -> dict[str, Any]:
    """The time under the key of all that differs from run to run: it is estimated from a pass that was timed."""
    return {"run": {"seconds": value}} | record if (value := record.pop("seconds", None)) is not None else record


def _headline(plan: Plan) -> str:
    can = f"{count(len(plan.repairable))} of {plural(len(plan.layers), 'layer')} can be recovered exactly"
    if plan.undecided:
        can += f", {count(len(plan.undecided))} more perhaps, once the layers before are repaired"
    return "; ".join([can, *missed_modules(plan.skipped, "layers that cannot be examined")])


def _cost(plan: Plan) -> str:
    """Not part of the verdict: it differs from run to run."""
    return f"Recovery is expected to take {estimate(plan.seconds)} and {size(plan.bytes)} of working memory."
