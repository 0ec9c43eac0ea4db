"""Theorem 1 and its proof beside the first phase of training: (11) to (18), as printed and corrected for m patches."""

import math

import torch
from torch import Tensor

from netpurify.findings import Verdict
from netpurify.paper.model import PatchCNN, matrix
from netpurify.paper.theory.bounds import Setting
from netpurify.paper.theory.comparisons import at_least, at_most, up_to_a_constant
from netpurify.paper.theory.kernels import kernels, spectrum
from netpurify.paper.theory.row import Row
from netpurify.paper.theory.watch import Watch
from netpurify.paper.training import Regime, Training


def motion_rows(setting: Setting, model: PatchCNN, training: Training, watch: Watch, regime: Regime) -> list[Row]:
    """(11) to (14): how far the weights move and how fast the residual falls."""
    path = training.trajectories[0]
    hidden, output = (matrix(layer) for layer in model.layers)
    start = path.residual[:1]
    fixed = "beta does not move in this phase, so v(t) = f(t - 1)" if regime == "sequential-fixed" else ""
    between = torch.cat([start, torch.tensor(watch.between, dtype=torch.float64)])
    return [
        at_most("(11)", "max_jt |beta_j(t) - beta_j(0)|", setting.output_radius, float(path.moved[:, 1].max()),
                ("the largest |beta_j(0)|", float(output.abs().max()))),
        at_most("(12)", "max_jt |W_j(t) - W_j(0)|", setting.hidden_radius, float(path.moved[:, 0].max()),
                ("the largest |W_j(0)|", float(hidden.norm(dim=0).max()))),
        decay_row("(13)", "f", setting, path.residual),
        decay_row("(14)", "v", setting, between, unless=fixed),
    ]  # fmt: skip


def decay_row(part: str, letter: str, setting: Setting, norms: Tensor, *, unless: str = "") -> Row:
    """(13) or (14) for |y - f(t)| or |y - v(t)|, [t + 1]; W(-1) does not exist, so v(0) is f(0)."""
    quantity = f"max_t |y - {letter}(t)|^2 / ((1 - gamma/8n)^t |y - f(0)|^2)"
    if setting.decay <= 0.0 or not norms[0] or norms.shape[0] < 2:
        unless = unless or "gamma >= 8n, or nothing to fit"
    if unless:
        return Row(part, quantity, "<=", 1.0, None, Verdict.VACUOUS, unless)
    t = torch.arange(norms.shape[0], dtype=torch.float64)
    # In logarithms: after some thousand steps neither side of the bound is a number any more.
    ratio = 2.0 * (norms.log() - norms[0].log()) - t * math.log(setting.decay)
    slowest = int(ratio[1:].argmax()) + 1
    measured = math.exp(min(float(ratio[slowest]), 700.0))
    verdict = Verdict.HOLDS if measured <= 1.0 else Verdict.FAILS
    return Row(part, quantity, "<=", 1.0, measured, verdict, f"largest at step {slowest} of {norms.shape[0] - 1}")


def kernel_rows(setting: Setting, watch: Watch, training: Training) -> list[Row]:
    """(15) to (18), with the extremes over t = 0, 1, 2, 4, 8, ..."""
    seen = watch.hidden or [spectrum(kernels(watch.model, watch.inputs)[1])]  # none if nothing was left to train
    low_g, high_g = _extremes(watch.output)
    low_h, high_h = _extremes(seen)
    residual = training.trajectories[0].residual
    beyond = max((size / (setting.step * float(residual[t])) for t, size in watch.beyond if residual[t]), default=0.0)
    rows = [
        at_least("(15)", "min_t lambda_min(G(t))", 0.0, low_g, slack=1e-12 * high_g),
        up_to_a_constant("(15)", "max_t lambda_max(G(t))", setting.m * setting.n, high_g),
        up_to_a_constant("(15) corrected", "max_t lambda_max(G(t)) by m^2 n / 2pi", setting.output_eigenvalue, high_g),
        at_least("(16)", "min_t lambda_min(H(t))", 1 / 6, low_h),
        at_least("(16) corrected", "min_t lambda_min(H(t)) by m / 6", setting.m / 6, low_h),
        up_to_a_constant("(16)", "max_t lambda_max(H(t))", 1.0, high_h),
        up_to_a_constant("(16) corrected", "max_t lambda_max(H(t)) by m / 2", setting.hidden_eigenvalue, high_h),
        at_most("(17)", "max_t |r(t)| / (gamma/n |y - f(t)|)", setting.remainder, beyond,
                ("lambda_max(G) + lambda_max(H)", high_g + high_h), "≲"),
    ]  # fmt: skip
    if watch.quotient:
        name = "min_t (y - f)'(G + H)(y - f) / |y - f|^2"
        rows.append(at_least("(18)", name, 1 / 12, min(watch.quotient)))
    return rows


def _extremes(spectra: list[tuple[float, float]]) -> tuple[float, float]:
    return min(low for low, _ in spectra), max(high for _, high in spectra)
