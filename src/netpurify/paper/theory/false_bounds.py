"""Numbers that show where bounds and steps of the paper's proofs are false, most of them for more than one patch."""

import math

import torch

from netpurify.paper.model import matrix
from netpurify.paper.theory.bounds import Setting
from netpurify.paper.theory.constants import constants
from netpurify.paper.theory.expected import corrected_kernels, printed_kernels
from netpurify.paper.theory.kernels import kernels, spectrum
from netpurify.paper.theory.lemmas import squared
from netpurify.paper.theory.misprints import Numbers, features, problem
from netpurify.paper.theory.motion import decay_row
from netpurify.paper.training import network_of, train


def kernel_distances(which: int) -> Numbers:
    """|K - K-bar|^2 at m = 5 for p = 2000 and 32000 (k = 200 and 800), as printed; then the same corrected.

    ``which`` is 0 for G of Lemma 5, 1 for H of Lemma 8.
    """
    found = []
    for k, p in ((200, 2000), (800, 32000)):
        model, inputs, _ = problem(5, 5, k, p)
        kernel = kernels(model, inputs)[which]
        found.append([squared(kernel - make(model, inputs)[which]) for make in (printed_kernels, corrected_kernels)])
    return found[0][0], found[1][0], found[0][1], found[1][1]


def largest_eigenvalues(which: int) -> Numbers:
    """lambda_max of G (0) or H (1) over the paper's bound at m = 1, 10, 40; then over the corrected one."""
    found = []
    for m in (1, 10, 40):
        model, inputs, _ = problem(5, m, 200, 2000)
        high = spectrum(kernels(model, inputs)[which])[1]
        setting = Setting(n=5, m=m, k=200, p=2000, gamma=1.0, share=0.0)
        bounds = (5 * m, setting.output_eigenvalue) if which == 0 else (1.0, setting.hidden_eigenvalue)
        found.append([high / bound for bound in bounds])
    return *(pair[0] for pair in found), *(pair[1] for pair in found)


def output_norms() -> Numbers:
    """lambda_max(G) at m = 40, n = 5, with mn, (mn)^2 and m^2 n / 2pi."""
    model, inputs, _ = problem(5, 40, 200, 2000)
    return spectrum(kernels(model, inputs)[0])[1], 200, 40_000, 5 * 1600 / (2.0 * math.pi)


def unstable_decay() -> Numbers:
    """Mn gamma/n and m^2 n gamma/(2pi n) at m = 40, gamma = 0.0124, and the left of (13) over its right in 20 steps."""
    model, inputs, targets = problem(5, 40, 300, 200)
    setting = Setting(n=5, m=40, k=300, p=200, gamma=0.0124, share=0.0)
    path = train(model, inputs, targets, gamma=setting.gamma, steps=20).trajectories[0]
    measured = decay_row("(13)", "f", setting, path.residual).measured
    assert isinstance(measured, float)
    return 40 * setting.gamma, setting.output_eigenvalue * setting.step, measured


def decay_without_n() -> Numbers:
    """Left of (13) over its right after 200 steps at n = 20, m = 1, gamma = 0.5: with gamma, and with gamma/n."""
    model, inputs, targets = problem(20, 1, 200, 1000)
    residual = train(model, inputs, targets, gamma=0.5, steps=200, tolerance=0.0).trajectories[0].residual
    fallen = float(residual[200] / residual[0]) ** 2
    return tuple(fallen / (1.0 - step / 8.0) ** 200 for step in (0.5, 0.5 / 20))


def squared_changes() -> Numbers:
    """Sup |(G + H) r|^2 / |r|^2 over mn, for m = 1 and n = 20, 200."""
    found = []
    for n in (20, 200):
        model, inputs, _ = problem(n, 1, 400, 1000)
        G, H = kernels(model, inputs)  # noqa: N806
        found.append(spectrum(G + H)[1] ** 2 / n)
    return tuple(found)


def lost_root() -> Numbers:
    """sum_sa |r_s| |P_a x_s| over |r| sqrt(sum_sa |P_a x_s|^2) at m = 40, for r = (1, ..., 1); and sqrt(m)."""
    model, inputs, _ = problem(5, 40, 200, 2000)
    sizes = model.patches(inputs).norm(dim=1)
    return float(sizes.sum() / (math.sqrt(5) * sizes.norm())), math.sqrt(40)


def initial_outputs() -> Numbers:
    """Var f_s(0) given the inputs, the mean over s, at m = 1, 5, 20; then m/2 + m(m-1)/2pi for m = 20."""
    found = [float(kernels(*problem(5, m, 200, 2000)[:2])[0].diagonal().mean()) for m in (1, 5, 20)]
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
