"""One experiment for each assumption of the theorem: what three rules call the truth, and how often it is not."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netpurify import lad
from netpurify.experiments.studies.evidence import draw
from netpurify.lad.verifier.evidence import discounted

Row = dict[str, Any]
_LEVERAGE = 1e-8
"""A leverage above 1 minus this is 1."""


def by_count(design: NDArray[np.float64], zero: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which columns have more zeros than the rank."""
    return zero.sum(axis=0) > np.linalg.matrix_rank(design)


def by_theorem(design: NDArray[np.float64], zero: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """For which columns the zero rows have full rank, and each of them has a leverage below 1 among them."""
    rank = np.linalg.matrix_rank(design)
    answers = []
    for chosen in zero.T:
        left, sizes, _ = np.linalg.svd(design[chosen], full_matrices=False)
        kept = left[:, sizes > 1e-10 * sizes.max(initial=0.0)]
        leverage = np.square(kept).sum(axis=1)
        answers.append(kept.shape[1] == rank and bool((leverage < 1.0 - _LEVERAGE).all()))
    return np.array(answers)


def judged(design: NDArray[np.float64], columns: NDArray[np.float64], altered: NDArray[np.bool_]) -> Row:
    """How often a rule would call a fit the truth though an altered row is fitted, by three rules."""
    solution = lad.solve(design, columns, threads=1)
    zero = np.asarray(solution.residual) == 0.0
    wrong = (zero & altered).any(axis=0)
    recovered = solution.status == lad.Status.RECOVERED
    counted, proven = by_count(design, zero), by_theorem(design, zero)
    return {
        "columns": altered.shape[1],
        "false by count": int((counted & wrong).sum()),
        "false by leverage": int((proven & wrong).sum()),
        "false RECOVERED": int((recovered & wrong).sum()),
        "RECOVERED": int(recovered.sum()),
        "right": int((zero == ~altered).all(axis=0).sum()),
    }


def lonely_rows(columns: int = 2000) -> list[Row]:
    """A column of the design that only a few rows use: more zeros than the rank, and a wrong fit all the same."""
    found = []
    for users in (1, 2, 3, 6, 12):
        rng = np.random.default_rng([2, users])
        design = np.hstack(
            [rng.standard_normal((60, 6)), (np.arange(60) < users)[:, None] * rng.uniform(1, 2, (60, 1))]
        )
        altered = rng.random((60, columns)) < 0.2
        data = design @ rng.standard_normal((7, columns)) + altered * rng.normal(1.0, 1.0, altered.shape)
        found.append({"rows that use it": users} | judged(design, data, altered))
    return found


def ties(each: int = 304) -> list[Row]:
    """Alterations that are equal: levels of a layout, edges of a graph, columns of zeros and ones."""
    found = []
    for place, family in enumerate(("Gaussian", "two-way layout", "graph incidence", "0/1")):
        for alteration in ("generic", "constant"):
            rng = np.random.default_rng([3, place, alteration == "constant"])
            cell = {"family": family, "alteration": alteration, "share": 0.2, "columns_each": each}
            draws = [draw(cell, rng) for _ in range(5)]
            counts = [judged(one.design, one.columns, one.altered) for one in draws]
            found.append({"design": family, "alterations": alteration} | added(counts))
    return found


def added(counts: list[Row]) -> Row:
    """Sums of counts."""
    return {name: sum(int(one[name]) for one in counts) for name in counts[0]}


def adversary(columns: int = 300) -> list[Row]:
    """Altered rows that agree on other coefficients, beside as many generic ones."""
    found = []
    for share in np.arange(1, 20) / 20:
        rng = np.random.default_rng([4, round(100 * share)])
        design = rng.standard_normal((80, 10))
        truth, other = rng.standard_normal((2, 10, columns))
        altered = rng.permuted(np.arange(80)[:, None] < np.full(columns, round(80 * share)), axis=0)
        amounts = {"agreeing": design @ other, "generic": rng.normal(1.0, 1.0, altered.shape)}
        line: Row = {"share": float(share)}
        for name, amount in amounts.items():
            solution = lad.solve(design, design @ truth + altered * amount, threads=1)
            claimed = solution.status == lad.Status.RECOVERED
            right = np.abs(np.asarray(solution.coefficients) - truth).max(axis=0) < 1e-6
            line |= {
                f"{name}, true": float((claimed & right).mean()),
                f"{name}, false": float((claimed & ~right).mean()),
            }
        found.append(line)
    return found


def accidental_zeros(columns: int = 4000) -> list[Row]:
    """Every row has continuous noise: how many residuals of the minimiser lie below a floor, and how many must."""
    rng = np.random.default_rng(5)
    design = rng.standard_normal((200, 10))
    noise = rng.standard_normal((200, columns))
    fitted = design @ np.asarray(lad.solve(design, noise, noise_floor=0, threads=1).coefficients)
    residual = noise - fitted
    sizes = np.sort(np.abs(residual), axis=0)
    assert (sizes[:10] < 1e-9).all()
    assert (sizes[10] > 1e-9).all()
    off = np.abs(residual) > 1e-9  # the rows of the vertex are fitted exactly
    return [
        {"floor": floor, "measured": float((off & (np.abs(residual) <= floor)).sum() / columns),
         "proposition": float((off * caught(fitted, np.sign(residual), floor)).sum() / columns),
         "subtracted by rule 5": int(discounted(np.array([190 * floor / float(np.median(sizes[10:]))]))[0])}
        for floor in (1e-4, 1e-3, 1e-2, 1e-1)
    ]  # fmt: skip


def caught(fitted: NDArray[np.float64], sign: NDArray[np.float64], floor: float) -> NDArray[np.float64]:
    """The probability that a standard normal entry lies within ``floor`` of the fit, if the side is known."""
    normal = np.vectorize(lambda x: 0.5 * math.erfc(-x / math.sqrt(2.0)))
    inside = sign * (normal(fitted + sign * floor) - normal(fitted))
    return inside / np.where(sign > 0, normal(-fitted), normal(fitted))


def dense_noise(columns: int = 20_000) -> list[Row]:
    """Every row has continuous noise, nothing is rounded: how often recovery is claimed, with three noise floors."""
    found = []
    for rows, rank in ((100, 2), (100, 6), (300, 6), (100, 10)):
        rng = np.random.default_rng([6, rows, rank])
        design, noise = rng.standard_normal((rows, rank)), rng.standard_normal((rows, columns))
        given, free, zero = (lad.solve(design, noise, noise_floor=floor, threads=1) for floor in (1e-4, None, 0))
        zeros = (np.asarray(given.residual) == 0.0).sum(axis=0)
        found.append(
            {"design": f"{rows} x {rank}", "columns": columns, "with zeros beyond the rank": int((zeros > rank).sum()),
             "most of these": int((zeros - rank).max(initial=0)),
             "false, floor 0.0001": given.count(lad.Status.RECOVERED),
             "false, floor detected": free.count(lad.Status.RECOVERED),
             "false, floor 0": zero.count(lad.Status.RECOVERED)}
        )  # fmt: skip
    return found


def misfit(columns: int = 500) -> list[Row]:
    """Unaltered rows that do not fit exactly, because of rounding or because the truth is not in the span."""
    found = []
    for size in (0.0, 1e-12, 1e-9, 1e-7, 1e-5, 1e-3, 1e-2, 1e-1):
        rng = np.random.default_rng(7)
        design = rng.standard_normal((100, 15))
        altered = rng.random((100, columns)) < 0.2
        amount = altered * rng.normal(1.0, 1.0, altered.shape)
        data = design @ rng.standard_normal((15, columns)) + amount + size * rng.standard_normal(altered.shape)
        solution = lad.solve(design, data, threads=1)
        recovered = solution.status == lad.Status.RECOVERED
        hidden = altered & (np.asarray(solution.residual) == 0.0) & recovered
        called = ~altered & (np.asarray(solution.residual) != 0.0) & recovered
        found.append(
            {"misfit": size, "RECOVERED": float(recovered.mean()),
             "noise floor": float(np.median(solution.noise_floor[recovered])) if recovered.any() else math.nan,
             "altered rows hidden": int(hidden.sum()), "unaltered rows called altered": int(called.sum())}
        )  # fmt: skip
    return found
