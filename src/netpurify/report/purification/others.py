"""Tensors of a purification that are not part of a layer, as tables: those with findings, and all others."""

from collections.abc import Sequence
from typing import NamedTuple

from netpurify.network import Purification, TensorComparison
from netpurify.report.kit.numbers import count
from netpurify.report.kit.tables import Cell, Table
from netpurify.report.kit.tensor_findings import finding_words, other_words, told_first

_COLUMNS = ("Tensor", "Verdict", "Differ", "Of", "What was found")


class OtherTensors(NamedTuple):
    """What there is to say of tensors that are not part of a layer.

    Attributes:
        told: Those with a finding, and those that are unknown.
        note: How many others there are, by verdict; empty if there are none.
        rest: All others.
        compared: Whether tensors were compared at all.
    """

    told: Table
    note: str
    rest: Table
    compared: bool


def other_tensors(result: Purification) -> OtherTensors:
    """Tensors that are not part of a layer, those with findings first."""
    told, others = told_first(result.compared)
    note = " ".join(other_words(others))
    return OtherTensors(others_table(told), note, others_table(others), bool(result.compared))


def others_table(tensors: Sequence[TensorComparison]) -> Table:
    """Tensors beside their initial values, with what was found and what became of it."""
    rows = [
        [
            one.name,
            Cell(one.verdict.label, style="limits" if one.findings else ""),
            Cell(count(one.differing), one.differing),
            Cell(count(one.entries), one.entries),
            finding_words(one, mended=True),
        ]
        for one in tensors
    ]
    return Table.of(_COLUMNS, rows, label="Other tensors", kind="skipped")
