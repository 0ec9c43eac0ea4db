"""Numbers that show where bounds and steps of the paper's proofs are false, most of them for more than one patch."""

import math
from functools import cache

import torch

from netpurify.paper.model import matrix
from netpurify.paper.theory.bounds import Setting
from netpurify.paper.theory.constants import constants
from netpurify.paper.theory.expected import corrected_kernels, exact_kernels, printed_kernels, whole_kernels
from netpurify.paper.theory.kernels import kernels, lemma_hidden_kernel, spectrum
from netpurify.paper.theory.lemmas import squared
from netpurify.paper.theory.misprints import Numbers, Problem, features, medians, problem
from netpurify.paper.theory.motion import decay_row
from netpurify.paper.training import network_of, train

LARGE = 20_000
"""Entries of a patch for which mn log(mn) / k, which Theorem 1 wants to be small, is 0.053 at n = 5, m = 40."""


@cache
def _distances() -> tuple[Numbers, Numbers]:
    """Five squared distances at n = m = 5, for k, p = 200, 2000 and for 800, 32000.

    Of G from the printed G-bar and from the corrected one; of Lemma 8's H from the printed H-bar; of the product of
    Jacobians from the printed and from the corrected one.
    """

    def measure(drawn: Problem) -> Numbers:
        model, inputs, _ = drawn
        (G, H), own = kernels(model, inputs), lemma_hidden_kernel(model, inputs)  # noqa: N806
        printed, corrected = printed_kernels(model, inputs), corrected_kernels(model, inputs)
        apart = G - printed.output, G - corrected.output, own - printed.hidden, H - printed.hidden, H - corrected.hidden
        return tuple(squared(one) for one in apart)

    return medians(measure, 5, 5, 200, 2000), medians(measure, 5, 5, 800, 32000)


def output_distances() -> Numbers:
    """|G - G-bar|^2 at both sizes, as printed, then corrected."""
    small, large = _distances()
    return small[0], large[0], small[1], large[1]


def hidden_distances() -> Numbers:
    """|H - H-bar|^2 at both sizes: Lemma 8's own H as printed, the product of Jacobians as printed, then corrected."""
    small, large = _distances()
    return small[2], large[2], small[3], large[3], small[4], large[4]


def _largest(which: int, m: int) -> float:
    """lambda_max of G (0) or H (1) in the mean over W and beta, at n = 5 and k = ``LARGE``."""
    return spectrum(exact_kernels(*problem(5, m, LARGE, 2)[:2])[which])[1]


def largest_eigenvalues(which: int) -> Numbers:
    """lambda_max of G (0) or H (1) over the paper's bound at m = 1, 10, 40; then over the corrected one."""
    found = []
    for m in (1, 10, 40):
        setting = Setting(n=5, m=m, k=LARGE, p=2, gamma=1.0, share=0.0)
        bounds = (5 * m, setting.output_eigenvalue) if which == 0 else (1.0, setting.hidden_eigenvalue)
        found.append([_largest(which, m) / bound for bound in bounds])
    return *(pair[0] for pair in found), *(pair[1] for pair in found)


def output_norms() -> Numbers:
    """lambda_max(G) at m = 40, n = 5, with mn, (mn)^2 and m^2 n / 2pi."""
    return _largest(0, 40), 200, 40_000, 5 * 1600 / (2.0 * math.pi)


def unstable_decay() -> Numbers:
    """Mn gamma and m^2 n gamma/2pi at n = 1, m = 40, gamma = 0.0124; and left of (13) over right in 20 steps."""
    setting = Setting(n=1, m=40, k=1000, p=1000, gamma=0.0124, share=0.0)

    def measure(drawn: Problem) -> Numbers:
        path = train(*drawn, gamma=setting.gamma, steps=20).trajectories[0]
        measured = decay_row("(13)", "f", setting, path.residual).measured
        assert isinstance(measured, float)
        return (measured,)

    return 40 * setting.gamma, setting.output_eigenvalue * setting.step, *medians(measure, 1, 40, 1000, 1000)


def squared_changes() -> Numbers:
    """Sup |(G + H) r|^2 / |r|^2 over mn, for m = 1 and n = 20, 200, in the mean over W and beta."""
    found = [exact_kernels(*problem(n, 1, LARGE, 2)[:2]) for n in (20, 200)]
    return tuple(spectrum(G + H)[1] ** 2 / G.shape[0] for G, H in found)


def lost_root() -> Numbers:
    """sum_sa |r_s| |P_a x_s| over |r| sqrt(sum_sa |P_a x_s|^2) at m = 40, for r = (1, ..., 1); and sqrt(m)."""
    model, inputs, _ = problem(5, 40, 200, 2000)
    sizes = model.patches(inputs).norm(dim=1)
    return float(sizes.sum() / (math.sqrt(5) * sizes.norm())), math.sqrt(40)


def initial_outputs() -> Numbers:
    """Var f_s(0) given the inputs, the mean over s, at m = 1, 5, 20; then m/2 + m(m-1)/2pi for m = 20."""
    found = [float(exact_kernels(*problem(5, m, LARGE, 2)[:2]).output.diagonal().mean()) for m in (1, 5, 20)]
    return *found, 10 + 20 * 19 / (2.0 * math.pi)


def feature_moments() -> Numbers:
    """Variance of sum_i relu(W'P_i x) over x, and its mean, for m = 5 and one W; then the printed ones."""
    source = torch.Generator().manual_seed(0)
    weight = torch.randn(100, generator=source, dtype=torch.float64) / 10.0
    drawn = torch.randn(100_000, 5, generator=source, dtype=torch.float64) * weight.norm()
    sums, size = drawn.relu().sum(1), float(weight.norm())
    printed = size**2 * (1.0 - 1.0 / math.pi) / 2.0, size / math.sqrt(2.0 * math.pi)
    return float(sums.var()), printed[0], float(sums.mean()), printed[1]


def mean_features() -> Numbers:
    """sum_l (1/p sum_j sum_i relu(W_j'P_i x_l))^2 at m = 20, n = 5, with the right side mn/2 and the printed mn."""
    model, inputs, _ = problem(5, 20, 200, 2000)
    return float(features(model, inputs).mean(1).square().sum()), 50, 100


def kernel_motion() -> Numbers:
    """Mean over s, l of |G_sl(k) - G_sl(0)| for W(k) = 1.01 W(0), and of its printed bound, at m = 20."""
    model, inputs, _ = problem(5, 20, 200, 2000)
    moved = network_of(model, [1.01 * matrix(model.layers[0]), matrix(model.output)])
    change = (kernels(moved, inputs)[0] - kernels(model, inputs)[0]).abs().mean()
    steps = (features(moved, inputs) - features(model, inputs)).abs().mean(1)
    return float(change), float((steps[:, None] + steps).mean())


def surviving_orders() -> Numbers:
    """lambda_high and lambda_low of A_beta at m = 1, 4, 16: the second as far as a search finds it."""
    found = [
        constants(features(*problem(5, m, 200, 500)[:2]).T, generator=torch.Generator().manual_seed(0), quick=True)
        for m in (1, 4, 16)
    ]
    return *(one.lambda_high for one in found), *(one.lambda_low.high for one in found)


def orthant() -> Numbers:
    """E relu(U) relu(V) at correlation 0, and P(U > 0, V > 0) at correlation -0.2, by a million draws."""
    source = torch.Generator().manual_seed(0)
    u, v = torch.randn(2, 1_000_000, generator=source, dtype=torch.float64)
    w = -0.2 * u + math.sqrt(0.96) * v
    return float((u.relu() * v.relu()).mean()), float(((u > 0) & (w > 0)).double().mean())


def constants_of_features() -> Numbers:
    """sigma^2 of A_beta for c = 1 at p = 300, 1200, 4800 (n = m = 5, k = 100), and m^2 p / 2pi at 4800."""

    def measure(drawn: Problem) -> Numbers:
        seen = features(drawn.model, drawn.inputs)
        n, p = seen.shape
        return (float(seen.mean(1).square().sum()) * p / n,)

    return *(medians(measure, 5, 5, 100, p)[0] for p in (300, 1200, 4800)), 25 * 4800 / (2.0 * math.pi)


def relu_of_the_sum() -> Numbers:
    """Entries on the diagonal and beside it at m = 5, k = 800: of Lemma 5's G~ by its proof, then of the mean of G."""
    model, inputs, _ = problem(40, 5, 800, 2)
    beside = ~torch.eye(40, dtype=torch.bool)
    found = (make(model, inputs).output for make in (whole_kernels, exact_kernels))
    return tuple(float(part.mean()) for kernel in found for part in (kernel.diagonal(), kernel[beside]))


def changed_indicators() -> Numbers:
    """Left and right of (A.32) in the mean over j and s, and how often it is violated, for W moved by 2 % at m = 20."""
    model, inputs, _ = problem(5, 20, 200, 2000)
    before = matrix(model.layers[0])
    moved = before + 0.02 * torch.randn(before.shape, generator=torch.Generator().manual_seed(1)).double() / 200**0.5
    rows = model.patches(inputs).reshape(5, 20, 200)
    whole = rows.sum(1)
    left = ((rows @ moved > 0).double() - (rows @ before > 0).double()).sum(1).abs()
    right = ((whole @ before).abs() <= (whole @ (moved - before)).abs()).double()
    return float(left.mean()), float(right.mean()), float((left > right).double().mean())


def features_of_theorem_3() -> Numbers:
    """E (sum_a relu)^2 and E sum_a relu^2 at m = 20; R_W k and R_W^2 k at n = m = 5, k = 10^4, p = 10^12."""
    whole = float(exact_kernels(*problem(5, 20, LARGE, 2)[:2]).output.diagonal().mean())
    radius = Setting(n=5, m=5, k=10**4, p=10**12, gamma=1.0, share=0.0).hidden_radius
    return whole, 20 / 2, radius * 10**4, radius**2 * 10**4
