"""The claims of Figures 2 to 5: limits of eps by k, p and m, small shares, and the two theorems."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from netpurify.experiments.figures.claims import rules
from netpurify.experiments.figures.claims.ladder import Ladder, Steps, ladder, ladder_finding
from netpurify.experiments.figures.claims.trends import FEATURES, LAYERS, Trend, trend
from netpurify.experiments.figures.claims.verdicts import cell, graded, level, trials_of, values
from netpurify.findings import Evidence, Finding, Rule, Scalar, TableRow, TrialSummary, select, summarise

Key = tuple[Scalar, ...]
_BESIDE = " as a share of the initial weights'"


def steps_of(rows: list[TableRow], column: str, order: Sequence[Any] | None = None) -> Steps:
    """The rows by the values of a column, rising or in the given order; the paper calls clean images n."""
    name = "n" if column == "clean" else column
    return [(f"{name} = {value}", select(rows, **{column: value})) for value in order or values(rows, column)]


def filters_by_size(rows: list[TableRow]) -> Finding:
    """How far W is recovered, by k."""
    found = ladder("W", steps_of(rows, "k"), "W", each=["p"])
    why = "It is the ratio of fan-in k to the rank of the patches that decides; p plays no part."
    return ladder_finding(rules.FILTERS_BY_SIZE, [[found]], pooled=", mean over p", why=why)


def beta_ladders(steps: Steps, *, each: Sequence[str] = ()) -> list[Ladder]:
    """The limits of beta with both choices of features."""
    return [ladder(f"beta, {name}", steps, "beta", each=each, method=method) for method, name in FEATURES.items()]


def beta_by_width(rows: list[TableRow], *, each: str, why: str) -> Finding:
    """How far beta is recovered, by p."""
    ladders = beta_ladders(steps_of(rows, "p"), each=[each])
    groups = [[one] for one in ladders]
    return ladder_finding(rules.BETA_BY_WIDTH, groups, pooled=f", mean over {each}", why=why)


def small_shares(rows: list[TableRow]) -> Finding:
    """Both layers while few weights are altered, cell by cell."""
    own = select(rows, method="l1")
    cells = list(dict.fromkeys((row["k"], row["p"]) for row in own if row.get("k") and row.get("p")))
    shares = values(own, "eps")
    small = [eps for eps in shares if 0.0 < eps < rules.SMALL_EPS]
    tables = {column: summarise(own, ["k", "p", "eps"], column) for column in _columns("error", "ratio")}
    missing = TrialSummary(0, *[float("nan")] * 5)

    def at(column: str, place: Key, eps: float) -> TrialSummary:
        return tables[column].get((*place, eps), missing)

    def smaller(place: Key, eps: float, layer: str) -> bool:
        error = at(f"{layer}_error", place, eps).mean
        larger = [at(f"{layer}_error", place, other).mean for other in shares if other > eps]
        return error <= rules.SMALL_ERROR and all(error < other for other in larger)

    good = [place for place in cells if all(smaller(place, eps, layer) for eps in small for layer in LAYERS)]
    beside = [
        place
        for place in cells
        if all(at(f"{layer}_ratio", place, eps).mean <= rules.RECOVERED for eps in small for layer in LAYERS)
    ]
    needed = [at(column, place, eps) for column in tables for place in _all_cells(rows) for eps in small or [0.1]]
    return Finding(
        rules.SMALL_SHARES,
        graded(needed, holds=len(good) == len(cells), limits=2 * len(good) >= len(cells)),
        graded(needed, holds=len(beside) == len(cells), limits=2 * len(beside) >= len(cells)),
        f"Met in {len(good)} of {len(cells)} cells; beside the initial weights in {len(beside)} of {len(cells)}.",
        [
            _by_cell(f"Error of {layer}{whose}, eps = {eps:g}", rows, _chosen(at, f"{layer}_{kind}", cells, eps))
            for eps in small
            for kind, whose in (("error", ""), ("ratio", _BESIDE))
            for layer in LAYERS
        ],
        "Where k is too small for the rank of the patches, filters are lost already at the smallest share.",
    )  # fmt: skip


def theorem_2(rows: list[TableRow]) -> Finding:
    """Exact filters, and a beta whose error falls with p, by itself and beside the initial weights, k by k."""
    sizes = values(rows, "k")
    at = select(rows, eps=rules.AT, method="l1")
    exact = {k: level(at, "W_exact", k=k) for k in sizes}
    errors, ratios = (
        {k: trend(steps_of(select(at, k=k), "p", values(rows, "p")), column) for k in sizes}
        for column in ("beta_error", "beta_ratio")
    )
    good = [k for k in sizes if exact[k].mean >= rules.EXACT and errors[k].falls]
    beside = [k for k in good if ratios[k].falls and ratios[k].levels[-1].mean <= rules.RECOVERED]
    needed = [*exact.values(), *(number for found in errors.values() for number in found.needed)]
    return Finding(
        rules.THEOREM_2,
        graded(needed, holds=good == sizes, limits=bool(good), trials=2),
        graded(
            [*needed, *(number for found in ratios.values() for number in found.needed)],
            holds=beside == sizes,
            limits=bool(beside),
            trials=2,
        ),
        f"Met at {_named('k', good)}; beside the initial weights at {_named('k', beside)}.",
        [
            by_size("Share of exact filters", "k", {k: {"W": exact[k]} for k in sizes}),
            by_size("Error of beta", "k", {k: trend_cells(errors[k]) for k in sizes}),
            by_size(f"Error of beta{_BESIDE}", "k", {k: trend_cells(ratios[k]) for k in sizes}),
        ],
        "The theorem's conditions are met at none of these sizes, at k = 50 least of all, so that a failure does not "
        "contradict it; its bound, (mn)^3 log(p) / p, is far above 1.",
    )  # fmt: skip


def theorem_3(rows: list[TableRow]) -> Finding:
    """Both layers exact, k by k."""
    widths, sizes = values(rows, "p"), values(rows, "k")
    at = [row | {"both": _both(row)} for row in select(rows, eps=rules.AT, method="l1")]
    exact = {k: {"W": level(at, "W_exact", k=k)} for k in sizes}
    outputs, recovered = (
        {k: {f"p = {p}": level(at, column, k=k, p=p) for p in widths} for k in sizes}
        for column in ("beta_exact", "both")
    )
    often, beside = (
        [k for k in sizes if all(number.mean >= rules.OFTEN for number in table[k].values())]
        for table in (outputs, recovered)
    )
    good = [k for k in often if exact[k]["W"].mean >= rules.EXACT]
    return Finding(
        rules.THEOREM_3,
        graded(_numbers(exact, outputs), holds=good == sizes, limits=bool(good)),
        graded(_numbers(recovered), holds=beside == sizes, limits=bool(beside)),
        f"Met at {_named('k', good)}; beside the initial weights at {_named('k', beside)}.",
        [
            by_size("Share of exact filters", "k", exact),
            by_size("Share of trials with an exact beta", "k", outputs),
            by_size("Share of trials with both errors at most half of the initial weights'", "k", recovered),
        ],
        "Beta is fitted on the features of all filters: one that does not come back makes its feature wrong. The "
        "theorem's conditions are met at none of these sizes, so that a failure does not contradict it.",
    )


def by_size(title: str, name: str, table: dict[Any, dict[str, TrialSummary]]) -> Evidence:
    """A table with a row for every size, such as k, and a column for every number."""
    columns = list(dict.fromkeys(column for row in table.values() for column in row))
    numbers = [number for row in table.values() for number in row.values()]
    rows = [[f"{name} = {size}", *(cell(row[column]) for column in columns)] for size, row in table.items()]
    return Evidence(f"{title}; {trials_of(numbers)}", [name, *columns], rows)


def _by_cell(title: str, rows: list[TableRow], found: dict[Key, TrialSummary]) -> Evidence:
    """A table with k in its rows and p in its columns."""
    sizes, widths = values(rows, "k"), values(rows, "p")
    table = {k: {f"p = {p}": found[k, p] for p in widths if (k, p) in found} for k in sizes}
    return by_size(title, "k", {k: row for k, row in table.items() if len(row) == len(widths)})


def _chosen(
    at: Callable[[str, Key, float], TrialSummary], column: str, cells: Iterable[Key], eps: float
) -> dict[Key, TrialSummary]:
    return {place: at(column, place, eps) for place in cells}


def _all_cells(rows: list[TableRow]) -> list[Key]:
    """Every cell of the table, also those whose trials all failed."""
    return list(dict.fromkeys((row.get("k"), row.get("p")) for row in rows))


def _columns(*kinds: str) -> list[str]:
    return [f"{layer}_{kind}" for kind in kinds for layer in LAYERS]


def _both(row: TableRow) -> float | None:
    ratios = [row.get(column) for column in _columns("ratio")]
    if any(ratio is None for ratio in ratios):
        return None
    return float(all(float(ratio or 0.0) <= rules.RECOVERED for ratio in ratios))


def trend_cells(found: Trend) -> dict[str, TrialSummary]:
    """The steps of a trend and its change, by the names of columns."""
    return {**dict(zip(found.labels, found.levels, strict=True)), "Change": found.change}


def _numbers(*tables: dict[Any, dict[str, TrialSummary]]) -> list[TrialSummary]:
    return [number for table in tables for row in table.values() for number in row.values()]


def _named(name: str, sizes: Iterable[Any]) -> str:
    return ", ".join(f"{name} = {size}" for size in sizes) or f"no {name}"


def patches_findings(rows: list[TableRow], patches: Sequence[int]) -> list[Finding]:
    """How far W and beta are recovered as m falls from step to step."""
    steps = steps_of(rows, "m", patches)
    return [
        ladder_finding(
            rules.FILTERS_BY_PATCHES,
            [[ladder("W", steps, "W")]],
            why="The rank of the patches is n m, and the fan-in k is fixed: fewer patches leave more room for L1.",
        ),
        ladder_finding(
            rules.BETA_BY_PATCHES,
            [[one] for one in beta_ladders(steps)],
            why="With features of the purified W it is the filters that are lost that decide, and small errors that "
            "show it: there the limit rises. A_beta has rank n whatever m is, so that with features of the initial W m "
            "should not matter.",
        ),
    ]


def plain_rule(claim: str, measure: str, reason: str = "") -> Rule:
    """The rule of a statement of ours, which has one verdict."""
    return Rule(claim, "ours", measure, "", reason)
