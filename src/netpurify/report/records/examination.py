"""The paper's statements beside one measured run, as JSON."""

from typing import Any

from netpurify.paper.theory import Examination
from netpurify.report.kit.json_values import to_json
from netpurify.report.records.schemas import head


def examination_record(examination: Examination, *, seed: int) -> dict[str, Any]:
    """An examination of the theory as JSON; a measured interval is a list of two numbers."""
    return {
        **head("examination"),
        "seed": seed,
        "setting": to_json(examination.setting),
        "regime": examination.regime,
        "converged": examination.training.converged,
        "rows": [to_json(row) for row in examination.rows],
    }
