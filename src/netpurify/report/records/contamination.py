"""Weights that were altered on purpose, as JSON: every altered weight, so that a repair can be checked against it."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from netpurify import checkpoint
from netpurify.contaminate import Contaminated
from netpurify.report.kit.json_values import to_json
from netpurify.report.records.schemas import head


def contamination_record(
    contaminated: Contaminated, source: Mapping[str, Tensor], *, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """A contamination as JSON.

    Args:
        contaminated: What ``contaminate.contaminate`` gave.
        source: The weights before.
        settings: How it was done: ``law``, ``share``, ``seed`` and the digest of the ``source``.
    """
    tensors = {
        name: _altered(source[name], contaminated.state[name], mask) for name, mask in contaminated.altered.items()
    }
    return {
        **head("contamination"),
        **to_json(dict(settings)),
        "result": checkpoint.digest(contaminated.state),
        "altered": sum(len(tensor["index"]) for tensor in tensors.values()),
        "tensors": tensors,
    }


def _altered(before: Tensor, after: Tensor, mask: Tensor) -> dict[str, Any]:
    """The altered weights of a tensor: positions in the flattened tensor, values before and after."""
    index = mask.reshape(-1).nonzero()[:, 0]
    was, now = (to_json(tensor.reshape(-1)[index].double().tolist()) for tensor in (before, after))
    return {"entries": mask.numel(), "index": index.tolist(), "was": was, "now": now}
