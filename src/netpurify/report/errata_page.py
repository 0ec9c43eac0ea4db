"""The paper's errata as a page in Markdown."""

from collections.abc import Sequence

from netpurify.paper.theory import Erratum

_KINDS = {
    "misprint": "Misprints: the authors clearly meant the right formula",
    "false": "Bounds and steps that are not true, most of them for more than one patch only",
    "contradiction": "Places where the paper says two things",
}
_TOP = """# Errata of the paper

Lu, Huang and Wang, "Purification of Contaminated Convolutional Neural Networks via Robust Recovery: An Approach with
Theoretical Guarantee in One-Hidden-Layer Case" (IEEE JSTSP 19(3), 507-519, 2025, doi:10.1109/JSTSP.2025.3549950;
arXiv:2407.11031). Read in the source of arXiv:2407.11031; the journal's version was not compared, and may have some of
it right. Every row was found by reading the proofs against independent code, and has a number that shows it, where a
number can. Numbers that differ much from draw to draw of inputs and weights are medians over five draws, if no other
count is given. The command

    netpurify theory --errata --markdown docs/errata.md

computes the numbers anew and writes this page; a test compares both.

None of this touches the method: Algorithm 2 and the exact recovery of W do not rest on these steps. What changes is how
the bounds depend on the number of patches m, because the proofs take a sum over m patches for one patch in many places.
What the paper writes in two ways is listed as that, and not as an error, where each is right by itself: orientation of
the designs, normalisation of loss and step size.

Letters: relu is the paper's psi, A' a transpose, D the paper's Delta, and the step size of the theorems is gamma/n of
Algorithm 1. `netpurify theory --sweep m` shows which statements fail along m, and that the corrected ones hold.
"""
_SURVIVES = """## What survives

The orders of the radii (11) and (12): the step in their proofs loses sqrt(m), and f(0) has the size m sqrt(n) and not
sqrt(mn), but the residual falls m times as fast, because lambda_min(H) is about m/4 or more. The three cancel.

The condition eps sqrt(mn) and Lemma 2's ratio for A_beta survive in the same way: lambda_high grows as m and not as
sqrt(m), but lambda_low grows as sqrt(m) and not as 1. At n = 5, k = 200, p = 500 and m = 1, 4, 16, lambda_high is
{:.2f}, {:.2f}, {:.1f}, and lambda_low, as far as a search finds it, is {:.2f}, {:.2f}, {:.2f}.
"""


def errata_markdown(errata: Sequence[Erratum], surviving: Sequence[float]) -> str:
    """The page, with all numbers computed now.

    Args:
        errata: ``paper.theory.ERRATA``.
        surviving: ``paper.theory.surviving_orders()``.
    """
    parts = [_TOP]
    for kind, title in _KINDS.items():
        rows = [one for one in errata if one.kind == kind]
        cells = [(one.place, one.printed, one.correct, one.evidence()) for one in rows]
        lines = ["| where | printed | right | what shows it |", "|---|---|---|---|"]
        lines += [f"| {' | '.join(_escaped(cell) for cell in row)} |" for row in cells]
        parts.append(f"## {title}\n\n" + "\n".join(lines) + "\n")
    return "\n".join([*parts, _SURVIVES.format(*surviving)])


def _escaped(text: str) -> str:
    """Text for a cell of a table: bars, stars, underscores, tildes and angles are letters here."""
    for sign in "\\|*_~<>":
        text = text.replace(sign, f"\\{sign}")
    return text
