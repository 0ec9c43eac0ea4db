"""How two files of weights differ, in words and as JSON."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from netpurify.contaminate import Difference, TensorDifference
from netpurify.report.kit.json_values import to_json
from netpurify.report.kit.numbers import count, number, plural
from netpurify.report.kit.sarif import Alert, AlertRule, sarif_log
from netpurify.report.records.schemas import head

_RULES = {
    "tensor-differs": AlertRule("error", "A tensor has other bits in the second file."),
    "tensor-of-another-kind": AlertRule("error", "A tensor has another shape or dtype in the second file."),
    "tensor-only-in-first": AlertRule("error", "Only the first file has this tensor."),
    "tensor-only-in-second": AlertRule("error", "Only the second file has this tensor."),
}


def describe_difference(difference: Difference) -> str:
    """The verdict in one sentence."""
    if difference.same:
        return f"the same: {plural(difference.compared, 'tensor')}, bit for bit"
    if not difference.compared:
        first, second = len(difference.only_first), len(difference.only_second)
        return f"no tensor in common: {plural(first, 'tensor')} in A only, {plural(second, 'tensor')} in B only"
    weights = sum(tensor.changed for tensor in difference.tensors)
    alone = len(difference.only_first) + len(difference.only_second)
    return (
        f"different: {count(weights)} of the weights that both have, in {count(len(difference.tensors))} of "
        f"{plural(difference.compared, 'tensor')}; tensors in one file only: {alone}"
    )


def difference_record(difference: Difference, *, digests: Sequence[str]) -> dict[str, Any]:
    """A comparison as JSON.

    Args:
        difference: What ``contaminate.difference`` gave.
        digests: Digests of the first and the second state.
    """
    verdict = {"verdict": describe_difference(difference), "same": difference.same, "digests": list(digests)}
    return {**head("difference"), **verdict, **to_json(difference)}


def difference_sarif(difference: Difference, *, file: str) -> dict[str, Any]:
    """A comparison as a SARIF log with one run.

    Args:
        difference: What ``contaminate.difference`` gave.
        file: The first file of weights, as the reader of the log should see it.
    """
    properties = {"verdict": describe_difference(difference), "same": difference.same}
    return sarif_log(_alerts(difference), rules=_RULES, file=file, properties=properties)


def _alerts(difference: Difference) -> Iterator[Alert]:
    for tensor in difference.tensors:
        yield _alert(tensor)
    for name in difference.only_first:
        yield Alert("tensor-only-in-first", name, "the second file lacks this tensor")
    for name in difference.only_second:
        yield Alert("tensor-only-in-second", name, "the first file lacks this tensor")


def _alert(tensor: TensorDifference) -> Alert:
    if len(set(tensor.shapes)) > 1:
        first, second = (list(shape) for shape in tensor.shapes)
        return Alert("tensor-of-another-kind", tensor.name, f"shape {first} in the first file, {second} in the second")
    if len(set(tensor.dtypes)) > 1:
        first, second = tensor.dtypes
        return Alert("tensor-of-another-kind", tensor.name, f"{first} in the first file, {second} in the second")
    size = "not a number" if math.isnan(tensor.largest) else number(tensor.largest)
    changed = f"{count(tensor.changed)} of {plural(tensor.entries, 'weight')} differ; largest change {size}"
    where = f"first at {', '.join(map(str, tensor.first))} of the flattened tensor"
    return Alert("tensor-differs", tensor.name, f"{changed}; {where}")
