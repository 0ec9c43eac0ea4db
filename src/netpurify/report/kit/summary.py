"""A result in words. The terminal, the page, the JSON record and the SARIF log all take their sentences from here."""

import math
from dataclasses import dataclass, replace
from typing import Literal

from netpurify.network import Agreement, Coverage
from netpurify.report.kit.names import first_few
from netpurify.report.kit.numbers import plural, share

Outlook = Literal["holds", "limits", "unseen", "fails"]
"""Whether all that was asked is proven, some of it, or nothing; also the class of a verdict in the style sheet.

``"fails"`` tells of tampering: in a line of a verdict, or in a scan as a whole, which repairs nothing.
"""
SIGNS: dict[Outlook, str] = {"holds": "✓", "limits": "◐", "unseen": "○", "fails": "▲"}
"""Beside a verdict, so that it is seen without its colour."""


@dataclass(frozen=True, slots=True)
class VerdictLine:
    """One line of a verdict: what was found, what became of it, or what is not known.

    Attributes:
        text: The line, without a full stop.
        outlook: Green for what is well, red for tampering, amber for what is known in part, grey for what is not.
        symbol: The outlook as a sign, for readers who do not see colours.
    """

    text: str
    outlook: Outlook
    symbol: str

    @property
    def sentence(self) -> str:
        """The line as a sentence of its own."""
        return f"{self.text[:1].upper()}{self.text[1:]}."


@dataclass(frozen=True, slots=True)
class Statement:
    """One sentence about a result.

    Attributes:
        text: The sentence.
        label: What the sentence is about, such as a grade; empty if it is about the result as a whole.
        style: Class of the label in the style sheet.
    """

    text: str
    label: str = ""
    style: str = ""


@dataclass(frozen=True, slots=True)
class Advice:
    """What is known about units that were not recovered, and what can be done about them.

    Attributes:
        status: Status of their L1 fits, in words.
        units: How many units there are.
        meaning: What the status says.
        remedy: What to do.
        layers: Names of their layers.
    """

    status: str
    units: int
    meaning: str
    remedy: str
    layers: tuple[str, ...]

    def join(self, other: "Advice") -> "Advice":
        """The same advice for the units of both."""
        return replace(self, units=self.units + other.units, layers=self.layers + other.layers)

    @property
    def where(self) -> str:
        """The first few of the layers."""
        return first_few(self.layers)

    @property
    def text(self) -> str:
        """The advice in two sentences."""
        return f"{plural(self.units, 'unit')} with the status {self.status}: {self.meaning}. Remedy: {self.remedy}."


@dataclass(frozen=True, slots=True)
class Summary:
    """What a result comes to.

    Attributes:
        policy: Name of the policy; empty for a plan.
        headline: The verdict in one sentence, without a full stop.
        outlook: Whether all that was asked is proven, some of it, or nothing.
        statements: One sentence for each fact behind the verdict.
        advice: What to do about units that were not recovered.
        basis: The assumptions that cannot be seen from the weights.
        exit_code: Of the command line: 0 if nothing was found, 1 if something was.
        lines: The headline in parts: what was found, what became of it, what is not known; empty if it has one part.
    """

    policy: str
    headline: str
    outlook: Outlook
    statements: tuple[Statement, ...]
    advice: tuple[Advice, ...]
    basis: str
    exit_code: int
    lines: tuple[VerdictLine, ...] = ()

    @property
    def symbol(self) -> str:
        """The outlook as a sign, for readers who do not see colours."""
        return "▣" if self.policy == "project" and self.outlook == "limits" else SIGNS[self.outlook]

    @property
    def verdict(self) -> tuple[VerdictLine, ...]:
        """The headline line by line, for screens and pages, each line with its own colour and sign."""
        return self.lines or (VerdictLine(self.headline, self.outlook, self.symbol),)

    @property
    def texts(self) -> list[str]:
        """The statements without their labels."""
        return [statement.text for statement in self.statements]


def describe_agreement(agreement: Agreement) -> str:
    """How the outputs of both networks compare, in one sentence."""
    if not agreement.inputs:
        return "Outputs on the clean inputs were not compared: they are no tensors."
    inputs = f"On {plural(agreement.inputs, 'clean input')}"
    if math.isnan(agreement.change):
        return f"{inputs}, outputs cannot be compared: those of the contaminated network are not finite."
    same = "" if math.isnan(agreement.same) else f", and the largest output is the same for {share(agreement.same)}"
    return f"{inputs}, outputs changed by {share(agreement.change)} of their size{same}."


def describe_coverage(coverage: Coverage) -> str:
    """How many weights are known, in one sentence."""
    examined, compared, unknown = (share(part) for part in coverage.shares())
    return (
        f"Of {plural(coverage.total, 'weight')}, {examined} are examined, {compared} compared only (an alteration "
        f"within the size of training's changes cannot be seen there), {unknown} unknown."
    )
