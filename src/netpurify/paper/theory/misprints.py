"""Numbers that show the paper's misprints: what the printed formula gives beside what the corrected one gives."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from netpurify.contaminate import Normal, contaminate
from netpurify.paper.model import PatchCNN, matrix
from netpurify.paper.theory.bounds import Setting
from netpurify.paper.theory.expected import exact_kernels, whole_kernels
from netpurify.paper.theory.kernels import kernels, remainder, spectrum
from netpurify.paper.theory.lemmas import fit_output
from netpurify.paper.theory.watch import Watch
from netpurify.paper.training import gradients, network_of, train

Numbers = tuple[float, ...]
DRAWS = 5
"""Draws of inputs and initial weights over which a number that scatters is a median."""


class Problem(NamedTuple):
    """Initial weights, Gaussian inputs, and targets from U(-1, 1)."""

    model: PatchCNN
    inputs: Tensor
    targets: Tensor


@lru_cache(maxsize=4)
def problem(n: int = 5, m: int = 5, k: int = 100, p: int = 300, seed: int = 0) -> Problem:
    """The same for the same sizes and seed; by default the paper's."""
    source = torch.Generator().manual_seed(seed)
    inputs = torch.randn(n, m * k, generator=source, dtype=torch.float64)
    targets = 2.0 * torch.rand(n, generator=source, dtype=torch.float64) - 1.0
    return Problem(PatchCNN(m=m, k=k, p=p, generator=source), inputs, targets)


def medians(measure: Callable[[Problem], Numbers], *sizes: int) -> Numbers:
    """Medians of what is measured on problems of the sizes n, m, k, p, over ``DRAWS`` draws."""
    drawn = (sizes or (5, 5, 100, 300))[:4]
    return tuple(float(value) for value in np.median([measure(problem(*drawn, seed)) for seed in range(DRAWS)], axis=0))


def features(model: PatchCNN, inputs: Tensor) -> Tensor:
    """A_beta' at the network's own W, [n, p]."""
    return model.pool((model.patches(inputs) @ matrix(model.layers[0])).relu())


def output_sizes() -> Numbers:
    """Expected root mean square of f(0) over inputs and weights at n = m = 5, p = 300: with 1/sqrt(p), and without."""
    size = math.sqrt(5 / 2 + 5 * 4 / (2.0 * math.pi))
    return size, size * math.sqrt(300)


def updates() -> Numbers:
    """Steps of a loop from 0 to t_max = 10, both ends included."""
    return (len(range(10 + 1)),)


def transposed_sizes() -> Numbers:
    """Rows and columns of A_W, and entries of A_W'u and of Theta_j."""
    model, inputs, _ = problem()
    design = model.patches(inputs).T
    return *design.shape, (design.T @ torch.zeros(design.shape[0], dtype=torch.float64)).numel(), model.k


def rows_of_output_design() -> Numbers:
    """The sizes k and p; sup |A_beta D|^2 over the first k rows and over all p, each over its number of rows."""

    def measure(drawn: Problem) -> Numbers:
        seen = features(drawn.model, drawn.inputs)
        part, whole = (float(torch.linalg.matrix_norm(rows, 2)) ** 2 for rows in (seen[:, :100], seen))
        return part / 100, whole / 300

    return 100, 300, *medians(measure)


def finite_difference_error() -> float:
    """Relative distance of dL/dW_1 of the closed form, with beta_j, from central differences."""
    model, inputs, targets = problem(3, 4, 10, 20)
    weights = [matrix(layer) for layer in model.layers]
    numeric = torch.zeros(model.k, dtype=torch.float64)
    for i in range(model.k):
        ends = []
        for shift in (1e-6, -1e-6):
            moved = weights[0].clone()
            moved[i, 0] += shift
            ends.append(float((targets - network_of(model, [moved, weights[1]])(inputs).detach()).square().mean()) / 2)
        numeric[i] = (ends[0] - ends[1]) / 2e-6
    exact = gradients(model, inputs, targets)[0][:, 0]
    return float((exact - numeric).norm() / numeric.norm())


def literal_gradient_errors(drawn: Problem) -> Tensor:
    """Relative error of dL/dW_j with beta_i inside the sum over patches, for every filter j, [p]."""
    model, inputs, targets = drawn
    hidden, output = (matrix(layer) for layer in model.layers)
    rows = model.patches(inputs).reshape(-1, model.m, model.k)
    slope = (model(inputs).detach() - targets) / (len(inputs) * math.sqrt(model.p))
    active = (rows @ hidden > 0).double()
    literal = torch.einsum("s,saj,a,sai->ij", slope, active, output[: model.m, 0], rows)
    exact = gradients(model, inputs, targets)[0]
    return (literal - exact).norm(dim=0) / exact.norm(dim=0)


def hidden_gradient_errors() -> Numbers:
    """The error with beta_i of the median filter over 20 draws of 20 filters, and that of the closed form."""
    errors = torch.cat([literal_gradient_errors(problem(3, 4, 10, 20, seed)) for seed in range(20)])
    return float(errors[errors.isfinite()].median()), finite_difference_error()


def gradient_outside() -> Numbers:
    """Share of dL/dW that m vectors sum_s P_i x_s leave unexplained, and that mn patches leave."""

    def measure(drawn: Problem) -> Numbers:
        model, inputs, _ = drawn
        slope = gradients(*drawn)[0].numpy()
        patches = model.patches(inputs)
        few = patches.reshape(-1, model.m, model.k).sum(0).numpy()
        found = []
        for span in (few, patches.numpy()):
            basis = np.linalg.qr(span.T)[0]
            found.append(float(np.linalg.norm(slope - basis @ (basis.T @ slope)) / np.linalg.norm(slope)))
        return tuple(found)

    return medians(measure)


def gradient_sizes() -> Numbers:
    """Entries of dL/dW_j and of dL/dbeta_j."""
    hidden, output = gradients(*problem())
    return hidden.shape[0], output[0].numel()


def step_share() -> Numbers:
    """beta(10) - beta(0) over the sum that the proof of Theorem 2 prints for it, without 1/n; and n."""
    model, inputs, targets = problem()
    printed = torch.zeros(model.p, dtype=torch.float64)

    def add(t: int, weights: list[Tensor]) -> None:
        if t < 10:
            now = network_of(model, weights)
            left = targets - now(inputs).detach()
            printed.add_(0.1 / math.sqrt(model.p) * (left @ features(now, inputs)))

    trained = train(model, inputs, targets, gamma=0.1, steps=10, tolerance=0.0, observe=add).trained
    moved = (matrix(trained.output) - matrix(model.output))[:, 0]
    return float(moved @ printed / printed.square().sum()), inputs.shape[0]


def printed_hidden_kernels() -> Numbers:
    """lambda_max of H(t) as printed and of the product of Jacobians, and how far Lemma 8's H is from that.

    The last in shares of its norm, in the mean over W and beta (p infinite), at k = 200 and k = 3200.
    """

    def measure(drawn: Problem) -> Numbers:
        model, inputs, _ = drawn
        weights, beta = (matrix(layer) for layer in model.layers)
        rows = model.patches(inputs)
        whole = rows.reshape(-1, model.m, model.k).sum(1)
        active = (rows @ weights > 0).double().reshape(-1, model.m, model.p).sum(1)
        literal = (whole @ whole.T / model.k) * ((active * beta[:, 0] ** 2) @ active.T) / model.p
        return spectrum(literal)[1], spectrum(kernels(model, inputs)[1])[1]

    def apart(drawn: Problem) -> Numbers:
        right, lemma = (kernel.hidden for kernel in (exact_kernels(*drawn[:2]), whole_kernels(*drawn[:2])))
        return (float(torch.linalg.matrix_norm(lemma - right, 2)) / spectrum(right)[1],)

    return *medians(measure, 5, 5, 200, 2000), *medians(apart, 5, 5, 200, 2), *medians(apart, 5, 5, 3200, 2)


def remainders() -> Numbers:
    """|r(0)| with P x_s in the second sum, and with P_a x_s."""

    def measure(drawn: Problem) -> Numbers:
        model, inputs, targets = drawn
        after = train(model, inputs, targets, gamma=0.1, steps=1).trained
        before, later = (matrix(network.layers[0]) for network in (model, after))
        beta = matrix(after.output)[:, 0]
        rows = model.patches(inputs).reshape(-1, model.m, model.k)
        linear = (rows.sum(1) @ (later - before)) * (rows @ before > 0).double().sum(1)
        change = (rows @ later).relu().sum(1) - (rows @ before).relu().sum(1)
        literal = (change - linear) @ beta / math.sqrt(model.p)
        return float(literal.norm()), float(remainder(model, after, inputs).norm())

    return medians(measure)


def recursion_errors() -> Numbers:
    """What gamma/n (G + H)(y - f) misses of f(1) - f(0), and what gamma/n (G (y - f) + H (y - v)) misses."""

    def measure(drawn: Problem) -> Numbers:
        model, inputs, targets = drawn
        after = train(model, inputs, targets, gamma=0.1, steps=1).trained
        between = network_of(model, [matrix(model.layers[0]), matrix(after.output)])
        G, H = kernels(model, inputs)[0], kernels(between, inputs)[1]  # noqa: N806
        start, middle, end = (network(inputs).detach() for network in (model, between, after))
        change = end - start
        printed = 0.02 * (G + H) @ (targets - start)
        right = 0.02 * (G @ (targets - start) + H @ (targets - middle))
        return tuple(float((change - found).norm() / change.norm()) for found in (printed, right))

    return medians(measure)


def output_errors() -> Numbers:
    """|beta~ - beta|^2 / p and |beta~ - beta| / p with initial features."""
    setting = Setting(n=5, m=5, k=100, p=300, gamma=0.1, share=0.2)

    def measure(drawn: Problem) -> Numbers:
        watch = Watch(*drawn)
        trained = train(*drawn, gamma=0.1, observe=watch).trained
        beta, before = (matrix(network.output)[:, 0] for network in (trained, drawn.model))
        source = torch.Generator().manual_seed(1)
        dirty = contaminate({"beta": beta}, Normal(1.0, 1.0), share=0.2, generator=source).state["beta"]
        squared = fit_output(setting, watch, beta - before, dirty - before).error
        return squared, math.sqrt(squared / 300)

    return medians(measure)
