"""Statements up to a constant along one letter, as JSON."""

from typing import Any

from netpurify.paper.theory import TheorySweep
from netpurify.report.kit.json_values import to_json
from netpurify.report.records.schemas import head


def sweep_record(sweep: TheorySweep, *, seed: int) -> dict[str, Any]:
    """A sweep as JSON; ``constants`` has one number per value."""
    return {
        **head("sweep"),
        "seed": seed,
        "letter": sweep.letter,
        "values": list(sweep.values),
        "settings": [to_json(setting) for setting in sweep.settings],
        "trials": sweep.trials,
        "statements": [to_json(one) | {"verdict": str(one.verdict)} for one in sweep.statements],
    }
