"""Lemmas 2, 4, 5, 8 and 9 beside one run."""

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from netpurify import lad
from netpurify.findings import Verdict
from netpurify.paper.model import PatchCNN
from netpurify.paper.theory.bounds import Setting
from netpurify.paper.theory.comparisons import at_least, at_most, small, up_to_a_constant
from netpurify.paper.theory.constants import Interval, constants, fixed_sigma2
from netpurify.paper.theory.expected import corrected_kernels, printed_kernels
from netpurify.paper.theory.kernels import kernels, lemma_hidden_kernel, spectrum
from netpurify.paper.theory.row import Row
from netpurify.paper.theory.watch import Watch


def recovery_ratio(sigma2: Interval, low: Interval, high: float, *, shape: tuple[int, int], share: float) -> Interval:
    """Lemma 2's ratio for a design of ``shape`` [k, q]: to be small, for exact recovery of one unit.

    (lambda_high sqrt(q/k log(ek/q)) + eps sigma sqrt(q/k)) / (lambda_low (1 - eps)). It is an interval because
    lambda_low is, and sigma if (8) is taken over all c: for the fixed c of one law it is a number. The paper's letters
    are k and mn, for A_W; A_beta has p and n in their place.
    """
    k, q = shape
    per_row = q / k
    spread = high * math.sqrt(max(0.0, per_row * math.log(math.e / per_row)))
    ends = [spread + share * math.sqrt(value * per_row) for value in sigma2]
    below = [value * (1.0 - share) for value in (low.high, low.low)]
    return Interval(*(end / value if value else math.inf for end, value in zip(ends, below, strict=True)))


def simple_ratio_row(setting: Setting) -> Row:
    """Lemma 4's condition, sqrt(mn/k) log(ek/mn) / (1 - eps), which speaks of more rows than columns."""
    quantity = "sqrt(mn/k) log(ek/mn) / (1 - eps)"
    if setting.m * setting.n >= setting.k or setting.share >= 1.0:
        return Row("Lemma 4", quantity, "small", None, None, Verdict.VACUOUS, "mn >= k or eps = 1: it promises nothing")
    return small("Lemma 4", quantity, setting.simple_ratio)


def kernel_lemma_rows(setting: Setting, model: PatchCNN, inputs: Tensor) -> list[Row]:
    """Lemmas 5 and 8 at the initial weights, with the paper's G-bar and H-bar and with those for m patches.

    G and H are those of ``kernels``, but for one row with Lemma 8's own H; |.| is the spectral norm. For m = 1 all
    versions are the same.
    """
    G, H = kernels(model, inputs)  # noqa: N806
    printed, corrected = printed_kernels(model, inputs), corrected_kernels(model, inputs)
    low = spectrum(H)[0]
    bounds = setting.output_kernel, setting.output_kernel_corrected
    others = setting.hidden_kernel, setting.hidden_kernel_corrected
    return [
        up_to_a_constant("Lemma 5", "|G - G-bar|^2", bounds[0], squared(G - printed.output)),
        up_to_a_constant("Lemma 5 corrected", "|G - G-bar|^2, summed over patches", bounds[1],
                         squared(G - corrected.output)),
        up_to_a_constant("Lemma 8", "|H - H-bar|^2, H of the lemma", others[0],
                         squared(lemma_hidden_kernel(model, inputs) - printed.hidden)),
        up_to_a_constant("Lemma 8", "|H - H-bar|^2, H by derivatives", others[0], squared(H - printed.hidden)),
        up_to_a_constant("Lemma 8 corrected", "|H - H-bar|^2, summed over patches", others[1],
                         squared(H - corrected.hidden)),
        at_least("Lemma 8", "lambda_min(H(0))", 1 / 5, low),
        at_least("Lemma 8 corrected", "lambda_min(H(0)) by m / 5", setting.m / 5, low),
    ]  # fmt: skip


def squared(error: Tensor) -> float:
    """The squared spectral norm."""
    return float(torch.linalg.matrix_norm(error, 2)) ** 2


@dataclass(frozen=True, slots=True)
class OutputFit:
    """Joint training of beta in the words of Lemma 9: eta - beta(0) = A v* + b + z, and its L1 fit A v^.

    A = relu(W(0)'P X), summed over patches, has the initial features as columns; v* = gamma/(n sqrt(p))
    sum_t (y - f(t)); b is what the features' motion adds, beta(t_max) - beta(0) - A v*.

    Attributes:
        design: A, [p, n].
        true: v*, [n].
        fitted: v^, [n].
        change: beta(t_max) - beta(0), [p].
    """

    design: Tensor
    true: Tensor
    fitted: Tensor
    change: Tensor

    @property
    def bias(self) -> Tensor:
        """The vector b of Lemma 9, [p]."""
        return self.change - self.design @ self.true

    @property
    def error(self) -> float:
        """|beta~ - beta|^2 / p for beta~ = beta(0) + A v^, the output layer purified with initial features."""
        return float((self.design @ self.fitted - self.change).square().mean())


def fit_output(setting: Setting, watch: Watch, change: Tensor, difference: Tensor) -> OutputFit:
    """The L1 fit of Lemma 9.

    Args:
        setting: Sizes and step size.
        watch: What was seen of the training.
        change: beta(t_max) - beta(0), [p].
        difference: eta - beta(0): the same, contaminated, [p]. Entries that are not finite take no part.
    """
    known = torch.isfinite(difference)
    solution = lad.solve(watch.features[known].numpy(), difference[known].numpy())
    fitted = np.asarray(solution.coefficients).reshape(-1)
    true = setting.step / math.sqrt(setting.p) * watch.summed
    return OutputFit(watch.features, true, torch.from_numpy(fitted), change)


def output_rows(setting: Setting, fit: OutputFit, c: NDArray[np.float64], generator: torch.Generator) -> list[Row]:
    """Lemma 9: its two conditions, its bound, and the bound on mean |b_j| in the proof of Theorem 2.

    lambda_low is taken at its proven lower end, with which the lemma promises least; ``c`` [p] are the 1 - 2 Q_i(0) of
    the law.
    """
    found = constants(fit.design, generator=generator, quick=True)
    sigma2 = Interval(*2 * (fixed_sigma2(fit.design, c),))
    shape = setting.p, setting.n
    ratio = recovery_ratio(sigma2, found.lambda_low, found.lambda_high, shape=shape, share=setting.share)
    first = small("Lemma 9", "ratio of relu(W(0)'PX), as in Lemma 2", ratio)
    bias = float(fit.bias.abs().mean())
    below = found.lambda_low.low * (1.0 - setting.share)
    size = "mean |beta_j(t_max) - beta_j(0)|", float(fit.change.abs().mean())
    rows = [
        first,
        _second_condition(8.0 * bias / below if below else math.inf),
        at_most("Theorem 2", "mean |b_j|", setting.bias, bias, size, "≲"),
    ]
    if below:
        true = "|v*|", float(fit.true.norm())
        error = float((fit.fitted - fit.true).norm())
        row = at_most("Lemma 9", "|v^ - v*|", 4.0 * bias / below, error, true)
        unmet = "the ratio above is not small: the formula is without promise here"
        rows.append(
            row if first.verdict == Verdict.HOLDS else replace(row, note="; ".join(filter(None, (row.note, unmet))))
        )
    return rows


def _second_condition(side: float) -> Row:
    """Lemma 9's other condition, for which the paper does name a constant: below 1."""
    quantity = "8 mean |b_j| / (lambda_low (1 - eps))"
    told = side if math.isfinite(side) else None
    if side < 1.0:
        return Row("Lemma 9", quantity, "<=", 1.0, told, Verdict.HOLDS)
    return Row("Lemma 9", quantity, "<=", 1.0, told, Verdict.VACUOUS, "Lemma 9 promises nothing here")
