"""What ``check`` says of a network, in words and as JSON."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from netpurify.network import Plan
from netpurify.report.kit.context import Context
from netpurify.report.kit.json_values import to_json
from netpurify.report.kit.names import missed_modules, module_name
from netpurify.report.kit.numbers import count, estimate, plural, share, size
from netpurify.report.kit.sarif import Alert, AlertRule, named_file, sarif_log, unexamined
from netpurify.report.kit.summary import Statement, Summary
from netpurify.report.kit.tensor_findings import finding_words, told_first
from netpurify.report.records.schemas import head
from netpurify.report.records.tensors import comparison_record

_NOTHING = "no layer can be examined: purify would refuse this network, and nothing is known about its weights"
_BASIS = "What this rests on: a few units of each layer that were tried; others may have more altered weights."

_RULES = {
    "layer-not-recoverable": AlertRule(
        "warning",
        "Alterations in this layer cannot be recovered exactly with these inputs and initial weights.",
        "Give more clean inputs, or fewer that span less, and the weights before training.",
    ),
    "tensor-altered": AlertRule(
        "error",
        "A tensor that is not part of a layer has entries that were altered, or that no training leaves so.",
        "netpurify recover sets them back.",
    ),
    "module-not-examined": AlertRule(
        "warning", "A module cannot be examined, and its weights may have been trained, or altered."
    ),
}


def summarise_plan(plan: Plan) -> Summary:
    """A plan in words; the exit code is 1 if ``purify`` could say nothing about some part of the network."""
    missed = any(module.missed for module in plan.skipped)
    repairable, layers = len(plan.repairable), len(plan.layers)
    return Summary(
        policy="",
        headline=_headline(plan) if plan.layers else _NOTHING,
        outlook="unseen" if not repairable else "limits" if missed or repairable < layers else "holds",
        statements=(Statement(_coverage(plan)), Statement(_cost(plan))) if plan.layers else (),
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
    compared = [comparison_record(one) for one in plan.compared]
    whole = {"layers": layers, "compared": compared, "coverage": to_json(plan.coverage)}
    return _timed(to_json(replace(plan, layers=(), compared=())) | whole)


def _timed(record: dict[str, Any]) -> dict[str, Any]:
    """The time under the key of all that differs from run to run: it is estimated from a pass that was timed."""
    return {"run": {"seconds": value}} | record if (value := record.pop("seconds", None)) is not None else record


def plan_sarif(plan: Plan, context: Context) -> dict[str, Any]:
    """A plan as a SARIF log with one run: what cannot be examined or recovered.

    Raises:
        InputError: The context does not name the file of the weights.
    """
    verdict = {"verdict": summarise_plan(plan).headline, "repairable": list(plan.repairable)}
    verdict |= {"coverage": to_json(plan.coverage)}
    return sarif_log(
        _alerts(plan),
        rules=_RULES,
        file=named_file(context, "weights"),
        properties=verdict,
        unexamined=unexamined(one for one in plan.skipped if not one.missed),
    )


def _alerts(plan: Plan) -> Iterator[Alert]:
    for layer in plan.layers:
        if not layer.repairable:
            yield Alert("layer-not-recoverable", module_name(layer.name), layer.reason)
    for one in told_first(plan.compared)[0]:
        if one.findings:
            yield Alert("tensor-altered", one.name, finding_words(one, mended=False))
    for module in plan.skipped:
        if module.missed:
            yield Alert("module-not-examined", module_name(module.name), f"{module.kind}: {module.reason}")


def _coverage(plan: Plan) -> str:
    """How much recovery would know."""
    examined, compared, unknown = (share(part) for part in plan.coverage.shares())
    return (
        f"Of {plural(plan.coverage.total, 'weight')}, recover can be expected to examine {examined}, to compare only "
        f"{compared} (an alteration within the size of training's changes cannot be seen there), and to leave "
        f"{unknown} unknown."
    )


def _headline(plan: Plan) -> str:
    can = f"{count(len(plan.repairable))} of {plural(len(plan.layers), 'layer')} can be recovered exactly"
    if plan.undecided:
        can += f", {count(len(plan.undecided))} more perhaps, once the layers before are repaired"
    return "; ".join([can, *missed_modules(plan.skipped, "layers that cannot be examined")])


def _cost(plan: Plan) -> str:
    """Not part of the verdict: it differs from run to run."""
    return f"Recovery is expected to take {estimate(plan.seconds)} and {size(plan.bytes)} of working memory."
