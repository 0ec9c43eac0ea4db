"""What the figures of the benchmarks claim, and the rules by which the committed tables are judged."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from netpurify.experiments.studies.unlearn.alarms import calibrated_on, calibration, hunted_networks
from netpurify.experiments.studies.unlearn.opinions_page import INDICATORS, correlation
from netpurify.findings import TableRow, Verdict, read_table

Table = Callable[[str], list[TableRow]]
"""Gives the rows of a committed table by its name."""
_ATTACKS = ("patch", "blended", "sig", "wanet")
_PROPORTIONAL = 1.1
"""The exponent of a power law up to which a cost grows about in proportion."""


@dataclass(frozen=True, slots=True)
class BenchmarkClaim:
    """A figure of the benchmarks.

    Attributes:
        title: Its heading.
        picture: File of the picture.
        claim: One sentence.
        rule: When it holds, and when it holds with limits.
        judge: Gives the verdict and the decisive numbers, from the tables and the folder of the pages.
        command: What makes the figure.
        page: Where it is explained.
    """

    title: str
    picture: str
    claim: str
    rule: str
    judge: Callable[[Table, Path], tuple[Verdict, str]]
    command: str
    page: str


def _speed(_table: Table, folder: Path) -> tuple[Verdict, str]:
    text = (folder / "lad.md").read_text(encoding="utf-8")
    ratios = [float(ratio) for ratio in re.findall(r"^\| \d+x\d+.*\| ([\d.]+)x \|", text, flags=re.MULTILINE)]
    faster = sum(ratio > 1.0 for ratio in ratios)
    measured = f"Faster in {faster} of {len(ratios)} lines of the table, by {min(ratios):g} to {max(ratios):g} times."
    return _verdict(faster, len(ratios)), measured


def _scale(_table: Table, folder: Path) -> tuple[Verdict, str]:
    rows = [row for row in read_table(folder / "results" / "lad-scale.csv") if row["version"] == "netpurify"]
    found = {
        (kind, grows): _exponent([row for row in rows if (row["kind"], row["grows"]) == (kind, grows)], grows)
        for kind in ("recovered", "dense noise")
        for grows in ("k", "q")
    }
    measured = "; ".join(
        f"{kind}: rows^{found[kind, 'k']:.2f}, columns^{found[kind, 'q']:.2f}" for kind in ("recovered", "dense noise")
    )
    met = [max(found[kind, "k"], found[kind, "q"]) <= _PROPORTIONAL for kind in ("recovered", "dense noise")]
    return Verdict.HOLDS if all(met) else Verdict.LIMITS if met[0] else Verdict.FAILS, f"{measured}."


def _exponent(rows: Sequence[TableRow], grows: str) -> float:
    """The e of the power law x^e, by least squares on the logarithms of the four largest points."""
    largest = sorted(rows, key=lambda row: _number(row, grows))[-4:]
    x, cost = ([_number(row, name) for row in largest] for name in (grows, "ms"))
    return float(np.polyfit(np.log(x), np.log(cost), 1)[0])


def _chance(_table: Table, folder: Path) -> tuple[Verdict, str]:
    rows = _of_the_page(folder, "accidental-zeros")
    met = [abs(found - expected) <= 0.1 * expected and found < taken for _, found, expected, taken in rows]
    off = max(abs(found / expected - 1.0) for _, found, expected, _ in rows)
    return _verdict(sum(met), len(met)), f"At {len(rows)} floors; at most {100 * off:.0f} % off."


def _agreeing(_table: Table, folder: Path) -> tuple[Verdict, str]:
    rows = _of_the_page(folder, "adversary")
    generic = max(false for *_, false in rows)
    minority = max(false for share, _, false, *_ in rows if share < 0.5)
    majority = max(false for share, _, false, *_ in rows if share > 0.5)
    verdict = Verdict.FAILS if generic > 0.0 else Verdict.LIMITS if minority > 0.0 else Verdict.HOLDS
    measured = (
        f"Falsely recovered at most: generic {generic:g}; agreeing {minority:g} below a half, {majority:g} above."
    )
    return verdict, measured


def _of_the_page(folder: Path, name: str) -> list[list[float]]:
    """The numbers of a table of evidence.md, by the name in its mark."""
    text = (folder / "evidence.md").read_text(encoding="utf-8")
    (table,) = re.findall(rf"<!-- {name} -->\n(.*?)<!-- end -->", text, flags=re.DOTALL)
    lines = [line for line in table.splitlines() if line.startswith("| ")][1:]
    return [[float(cell) for cell in line.strip("| ").split(" | ")] for line in lines]


def _defence(table: Table, _folder: Path) -> tuple[Verdict, str]:
    rows = [row for row in table("defences") if row["held_out"] and row["attack"] in ("patch", "blended")]
    before = {_network(row): row for row in rows if row["defence"] == "nothing"}
    defended = [row for row in rows if row["defence"] == "defend" and row["images"] == 500]
    kept = [
        _number(row, "asr") <= 0.1 * _number(before[_network(row)], "asr")
        and _number(row, "accuracy") >= _number(before[_network(row)], "accuracy") - 0.04
        for row in defended
    ]
    return _verdict(sum(kept), len(kept)), f"Both in {sum(kept)} of {len(kept)} networks."


def _hunts(table: Table, _folder: Path) -> tuple[Verdict, str]:
    rows = table("hunts")
    judged = hunted_networks(rows, calibration(rows))
    poisoned = [one.found for one in judged if one.row["set_aside"] and one.row["attack"] in _ATTACKS]
    alarms: dict[tuple[object, ...], bool] = {}
    for one in judged:
        if one.healthy and not calibrated_on(one.row):
            place = _network(one.row)
            alarms[place] = alarms.get(place, False) or bool(one.suspects)
    false = sum(alarms.values())
    measured = (
        f"The right class in {sum(poisoned)} of {len(poisoned)} hunts; alarms in {false} of {len(alarms)} networks."
    )
    if false > 0.05 * len(alarms):
        return Verdict.FAILS, measured
    return _verdict(sum(poisoned), len(poisoned)), measured


def _opinions(table: Table, _folder: Path) -> tuple[Verdict, str]:
    halfway = [row for row in table("opinions") if row["attack"] != "none" and row["way"] == 0.5]
    left = [_number(row, "asr") for row in halfway]
    found = {name: correlation([_number(row, name) for row in halfway], left) for name in INDICATORS}
    best = max(found, key=lambda name: abs(found[name]))
    verdict = Verdict.HOLDS if abs(found[best]) >= 0.8 else Verdict.FAILS
    return verdict, f"The best of {len(found)} indicators, {best}, has a rank correlation of {found[best]:+.2f}."


def _network(row: TableRow) -> tuple[object, ...]:
    return row["network"], row["attack"], row["seed"]


def _number(row: TableRow, name: str) -> float:
    value = row[name]
    assert isinstance(value, int | float), (name, value)
    return float(value)


def _verdict(met: int, asked: int) -> Verdict:
    return Verdict.HOLDS if met == asked else Verdict.LIMITS if 2 * met >= asked else Verdict.FAILS


CLAIMS = (
    BenchmarkClaim(
        "The solver beside others", "figures/lad.svg",
        "On each design the solver takes less time for a regression than the fastest other solver.",
        "Holds: in every line of the table; with limits: in half of them",
        _speed, "python benchmarks/lad.py", "lad.md#what-was-measured",
    ),
    BenchmarkClaim(
        "Cost of a regression against the size of the design", "figures/lad-scale.svg",
        "The cost of a regression grows no faster than in proportion to the rows and to the columns of the design.",
        f"Holds: as a power of at most {_PROPORTIONAL} of either, both where the fit is recovered and in dense noise; "
        "with limits: where it is recovered",
        _scale, "python benchmarks/lad_scale.py", "lad.md#what-was-measured",
    ),
    BenchmarkClaim(
        "Evidence: zeros by chance", "figures/evidence-floor.svg",
        "A noise floor catches as many residuals of dense noise by chance as Proposition 3 says, and the verifier "
        "subtracts more.",
        "Holds: within a tenth, at every floor; with limits: at half of them",
        _chance, "python tools/evidence", "evidence.md#zeros-are-exact-the-noise-floor",
    ),
    BenchmarkClaim(
        "Evidence: an adversary", "figures/evidence-adversary.svg",
        "Generic alterations are never recovered falsely, and agreeing ones only if they hit half of the rows or more.",
        "Holds: no column at any share; with limits: agreeing ones also below a half",
        _agreeing, "python tools/evidence", "evidence.md#amounts-are-generic-an-adversary",
    ),
    BenchmarkClaim(
        "Defences: accuracy lost against attack success", "figures/defences.svg",
        "With 500 clean images, `defend` leaves at most a tenth of the success of patches and blended triggers, for at "
        "most 4 points of accuracy, in networks on which nothing was chosen.",
        "Holds: in each of them; with limits: in half",
        _defence, "netpurify study defence --full --markdown docs/defence-results.md", "defence-results.md",
    ),
    BenchmarkClaim(
        "Hunts: what healthy and poisoned networks show", "figures/hunts.svg",
        "In poisoned networks that were set aside (patch, blended, SIG, WaNet) a hunt names the right class, and in "
        "healthy ones none.",
        "Holds: in all hunts, with alarms in at most one in twenty healthy networks; with limits: in half of the hunts",
        _hunts, "netpurify study unlearn --full --markdown docs/unlearn-results.md",
        "unlearn-results.md#what-is-found",
    ),
    BenchmarkClaim(
        "Second opinions on repairs", "figures/opinions.svg",
        "Some indicator tells, without the trigger, how much of a backdoor a repair has left.",
        "Holds: a rank correlation of at least 0.8 among repairs that go half of the way",
        _opinions, "netpurify study unlearn --full --markdown docs/unlearn-results.md",
        "unlearn-results.md#second-opinions",
    ),
)  # fmt: skip
