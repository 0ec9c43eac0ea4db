"""A tensor beside its base as JSON, in the records of scans and plans."""

from typing import Any

from netpurify.network import Entries, TensorComparison
from netpurify.report.kit.json_values import number, to_json


def comparison_record(one: TensorComparison) -> dict[str, Any]:
    """A tensor beside its base."""
    return {
        "name": one.name,
        "shape": list(one.shape),
        "dtype": one.dtype,
        "base_dtype": one.base_dtype,
        "verdict": one.verdict.label,
        "reason": one.reason,
        "differing": one.differing,
        "usual": number(one.usual),
        "altered_count": one.altered_count,
        "altered": entries_record(one.altered),
        "impossible": entries_record(one.impossible),
        "outliers": entries_record(one.outliers),
    }


def entries_record(entries: Entries, *, reference: str = "base") -> dict[str, Any]:
    """Entries as columns; ``reference`` is what their ``base`` is called."""
    columns = {"index": entries.index, "was": entries.was, reference: entries.base}
    return {name: to_json(values.tolist()) for name, values in columns.items()}
