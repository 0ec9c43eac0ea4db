"""What the theorems assume of the data, checked: targets within 1, and inputs from N(0, I)."""

import math
from dataclasses import replace
from statistics import NormalDist

import torch
from torch import Tensor

from netpurify.findings import Verdict
from netpurify.paper.theory.row import Row

FALSE_ALARM = 1e-4
"""How often inputs that are Gaussian are called otherwise."""
_WITHIN = 2.0 * NormalDist().cdf(1.0) - 1.0


def assumption_rows(inputs: Tensor, targets: Tensor) -> list[Row]:
    """|y_s| <= 1 and x_s ~ N(0, I), as rows."""
    most = float(targets.abs().max())
    bounded = Verdict.HOLDS if most <= 1.0 else Verdict.FAILS
    said = "" if most <= 1.0 else "Theorems 1 to 3 promise nothing for these targets"
    return [Row("assumption", "max_s |y_s|", "<=", 1.0, most, bounded, said), gaussian_row(inputs)]


def gaussian_row(inputs: Tensor) -> Row:
    """Whether the inputs can be from N(0, I), by the largest of several statistics that are N(0, 1) if they are.

    The statistics are the mean of all entries, the mean of their squares (Wilson and Hilferty's cube root makes it
    normal), the share of entries within one standard deviation, the correlation of neighbouring entries, the size of
    every input, and the product of every two inputs. The bound is met by all at once for all but one in ten thousand
    draws. It is a test that can fail, no proof: other laws with the same moments pass.
    """
    found = _statistics(inputs.to(torch.float64))
    count = sum(values.numel() for _, values in found.values())
    bound = NormalDist().inv_cdf(1.0 - FALSE_ALARM / (2.0 * count))
    worst = max(found, key=lambda name: float(found[name][1].abs().max()))
    measured = float(found[worst][1].abs().max())
    quantity = "inputs are N(0, I): largest |z| of six tests"
    if measured <= bound:
        return Row("assumption", quantity, "<=", bound, measured, Verdict.HOLDS, f"largest: {worst}")
    said = f"not Gaussian ({worst}: {found[worst][0]:.3g}); all but Lemmas 2 and 9 promise nothing"
    return Row("assumption", quantity, "<=", bound, measured, Verdict.FAILS, said)


def _statistics(x: Tensor) -> dict[str, tuple[float, Tensor]]:
    """By name: the plain number, and z values that are N(0, 1) for Gaussian inputs."""
    n, d = x.shape
    total = n * d
    sizes = x.square().mean(1)
    inside = float((x.abs() < 1.0).double().mean())
    found = {
        "mean of all entries": (float(x.mean()), x.mean() * math.sqrt(total)),
        "mean square of all entries": (float(sizes.mean()), _cube_root(sizes.mean(), total)),
        "share of entries within 1": (
            inside,
            torch.tensor((inside - _WITHIN) * math.sqrt(total / (_WITHIN * (1.0 - _WITHIN)))),
        ),
        "mean square of one input": (float(sizes[_cube_root(sizes, d).abs().argmax()]), _cube_root(sizes, d)),
    }
    if d > 1:
        product = (x[:, 1:] * x[:, :-1]).mean()
        found["product of neighbouring entries"] = float(product), product * math.sqrt(n * (d - 1))
    if n > 1:
        pairs = (x @ x.T / d)[tuple(torch.triu_indices(n, n, 1))]
        found["product of two inputs over d"] = float(pairs[pairs.abs().argmax()]), pairs * math.sqrt(d)
    return found


def _cube_root(mean_square: Tensor, count: int) -> Tensor:
    """A chi^2 of ``count`` degrees over ``count``, as a value that is nearly N(0, 1)."""
    spread = 2.0 / (9.0 * count)
    return (mean_square ** (1.0 / 3.0) - (1.0 - spread)) / math.sqrt(spread)


def without_promise(rows: list[Row], assumed: list[Row]) -> list[Row]:
    """The rows of statements that rest on an assumption that fails, marked as promised by nothing."""
    bounded, gaussian = (row.verdict != Verdict.FAILS for row in assumed)
    if bounded and gaussian:
        return rows
    broken = " and ".join(word for word, holds in (("|y| <= 1", bounded), ("Gaussian inputs", gaussian)) if not holds)
    return [_mark(row, broken) if _rests(row.part, gaussian=gaussian) else row for row in rows]


def _mark(row: Row, broken: str) -> Row:
    mark = f"promised for {broken} only"
    return replace(row, note=f"{row.note}; {mark}" if row.note else mark)


def _rests(part: str, *, gaussian: bool) -> bool:
    """Lemmas 2 and 9 are about any design; the other lemmas about Gaussian inputs, whatever the targets are."""
    name = part.removesuffix(" corrected")
    if name in ("Lemma 2", "Lemma 9"):
        return False
    if name.startswith("Lemma"):
        return not gaussian
    return name.startswith("Theorem") or name in {f"({number})" for number in range(11, 19)}
