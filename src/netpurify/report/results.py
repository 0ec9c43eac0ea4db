"""What can be made of which result: summary, page, record and SARIF log, in one table by the result's class."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from netpurify.errors import InputError
from netpurify.network import Defence, Hunt, Plan, Purification, Scan, Unlearning
from netpurify.report.comparison.detection import Detection
from netpurify.report.comparison.page import detection_page
from netpurify.report.comparison.record import detection_record
from netpurify.report.comparison.sarif import detection_sarif
from netpurify.report.comparison.summary import summarise_detection
from netpurify.report.defence.page import defence_page
from netpurify.report.defence.record import defence_record
from netpurify.report.defence.summary import summarise_defence
from netpurify.report.hunt.page import hunt_page
from netpurify.report.hunt.record import hunt_record
from netpurify.report.hunt.summary import summarise_hunt
from netpurify.report.kit.context import Context
from netpurify.report.kit.json_values import json_text
from netpurify.report.kit.summary import Summary
from netpurify.report.purification.page import purification_page
from netpurify.report.purification.record import purification_record
from netpurify.report.purification.sarif import purification_sarif
from netpurify.report.purification.summary import summarise_purification
from netpurify.report.records.plan import plan_record, plan_sarif, summarise_plan
from netpurify.report.unlearning.page import unlearning_page
from netpurify.report.unlearning.record import unlearning_record
from netpurify.report.unlearning.summary import summarise_unlearning

Result = Purification | Defence | Scan | Detection | Hunt | Unlearning
"""What a page can be made of."""


@dataclass(frozen=True, slots=True)
class _Products:
    """What can be made of one class of results; ``None`` for what cannot be."""

    summarise: Callable[[Any], Summary]
    record: Callable[[Any, Context], dict[str, Any]]
    page: Callable[[Any, Context], str] | None = None
    sarif: Callable[[Any, Context], dict[str, Any]] | None = None


_PRODUCTS = {
    Purification: _Products(summarise_purification, purification_record, purification_page, purification_sarif),
    Defence: _Products(summarise_defence, defence_record, defence_page),
    Hunt: _Products(summarise_hunt, hunt_record, hunt_page),
    Unlearning: _Products(summarise_unlearning, unlearning_record, unlearning_page),
    Plan: _Products(summarise_plan, lambda plan, _context: plan_record(plan), sarif=plan_sarif),
    Detection: _Products(summarise_detection, detection_record, detection_page, detection_sarif),
    Scan: _Products(
        lambda scan: summarise_detection(Detection(scan)),
        lambda scan, context: detection_record(Detection(scan), context),
        lambda scan, context: detection_page(Detection(scan), context),
        lambda scan, context: detection_sarif(Detection(scan), context),
    ),
}


def summarise(result: Result | Plan) -> Summary:
    """A result in words, with the exit code of the command line: the same sentences for every kind of report."""
    return _products(result).summarise(result)


def page(
    result: Result,
    *,
    title: str | None = None,
    command: str | None = None,
    files: Mapping[str, str] | None = None,
    plan: Plan | None = None,
) -> str:
    """What ``purify``, ``scan`` or ``hunt`` gave as one HTML page that loads nothing; arguments as in ``render``."""
    return page_text(result, Context(title, command, files or {}, plan))


def record(result: Result | Plan, *, plan: Plan | None = None) -> dict[str, Any]:
    """Everything about a result but the weights, for ``json.dumps(..., allow_nan=False)``.

    Args:
        result: What ``purify``, ``scan``, ``hunt`` or ``check`` gave.
        plan: What ``check`` had said of the same network, if it was asked; there is none of a defence or a hunt.

    Raises:
        InputError: There is a plan of a result that recovers nothing.
    """
    return _products(result).record(result, Context(plan=plan))


def sarif(result: Purification | Scan | Detection | Plan, *, file: str) -> dict[str, Any]:
    """A purification, a scan or a plan as a SARIF log with one run, for ``json.dumps``.

    Args:
        result: What ``purify``, ``scan`` or ``check`` gave.
        file: The file of the weights, as the reader of the log should see it; relative to the root of the
            repository if the log goes to code scanning.

    Returns:
        The log. No results means that nothing was found in what was examined; what was not examined is among the
        notifications.

    Raises:
        InputError: It is a defence or a hunt, which name no weight as altered.
    """
    return _sarif(result, Context(files={"contaminated": file, "weights": file}))


def page_text(result: Result, context: Context) -> str:
    """The page of a result."""
    make = _products(result).page
    if make is None:
        raise InputError(
            f"pages are about what purify, scan or hunt returned; got a {type(result).__name__}; take its record"
        )
    return make(result, context)


def record_text(result: Result, context: Context) -> str:
    """The record of a result as JSON."""
    return json_text(_products(result).record(result, context))


def record_print(result: Result, context: Context) -> str:
    """The record of a result as JSON, with indents for those who read it on a screen."""
    return json_text(_products(result).record(result, context), indent=2)


def sarif_text(result: Purification | Scan | Detection, context: Context) -> str:
    """The SARIF log of a result as JSON."""
    return json_text(_sarif(result, context))


def sarif_print(result: Purification | Scan | Detection, context: Context) -> str:
    """The SARIF log of a result as JSON, with indents for those who read it on a screen."""
    return json_text(_sarif(result, context), indent=2)


def _sarif(result: Any, context: Context) -> dict[str, Any]:
    make = _products(result).sarif
    if make is None:
        raise InputError(
            f"a SARIF log lists altered weights, and a {type(result).__name__} names none; take its page or its record"
        )
    return make(result, context)


def _products(result: object) -> _Products:
    for kind, products in _PRODUCTS.items():
        if isinstance(result, kind):
            return products
    known = ", ".join(kind.__name__ for kind in _PRODUCTS)
    raise InputError(
        f"a report must be about one of {known}; got {type(result).__name__}; give what purify, scan or hunt returned"
    )
