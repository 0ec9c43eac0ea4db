"""How two files of weights differ, in words and as JSON."""

from collections.abc import Sequence
from typing import Any

from netpurify.contaminate import Difference
from netpurify.report.kit.json_values import to_json
from netpurify.report.kit.numbers import count, plural
from netpurify.report.records.schemas import head


def describe_difference(difference: Difference) -> str:
    """The verdict in one sentence."""
    if difference.same:
        return f"the same: {plural(difference.compared, 'tensor')}, bit for bit"
    weights = sum(tensor.changed for tensor in difference.tensors)
    if not difference.compared:
        here, there = len(difference.only_first), len(difference.only_second)
        return (
            f"different: no tensor in common; {plural(here, 'tensor')} in the first file only, {count(there)} in the "
            "second only"
        )
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
