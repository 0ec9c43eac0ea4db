"""Numbers that show the paper's misprints: what the printed formula gives beside what the corrected one gives."""

import math
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from netpurify import data
from netpurify.contaminate import Normal, contaminate
from netpurify.paper.model import PatchCNN, matrix
from netpurify.paper.theory.bounds import Setting
from netpurify.paper.theory.kernels import kernels, remainder, spectrum
from netpurify.paper.theory.lemmas import fit_output
from netpurify.paper.theory.watch import Watch
from netpurify.paper.training import gradients, network_of, train

Numbers = tuple[float, ...]


class Problem(NamedTuple):
    """Initial weights, Gaussian inputs, and targets from U(-1, 1)."""

    model: PatchCNN
    inputs: Tensor
    targets: Tensor


@cache
def problem(n: int = 5, m: int = 5, k: int = 100, p: int = 300) -> Problem:
    """The same for the same sizes; by default the paper's."""
    source = torch.Generator().manual_seed(0)
    inputs = torch.randn(n, m * k, generator=source, dtype=torch.float64)
    targets = 2.0 * torch.rand(n, generator=source, dtype=torch.float64) - 1.0
    return Problem(PatchCNN(m=m, k=k, p=p, generator=source), inputs, targets)


def features(model: PatchCNN, inputs: Tensor) -> Tensor:
    """A_beta' at the network's own W, [n, p]."""
    return model.pool((model.patches(inputs) @ matrix(model.layers[0])).relu())


def output_sizes() -> Numbers:
    """Root mean square of f(0) with 1/sqrt(p), and without."""
    model, inputs, _ = problem()
    size = float(model(inputs).detach().square().mean().sqrt())
    return size, size * math.sqrt(model.p)


def updates() -> Numbers:
    """Steps of a loop from 0 to t_max = 10, both ends included."""
    return (len(range(10 + 1)),)


def transposed_sizes() -> Numbers:
    """Rows and columns of A_W, and entries of A_W'u and of Theta_j."""
    model, inputs, _ = problem()
    design = model.patches(inputs).T
    return *design.shape, (design.T @ torch.zeros(design.shape[0], dtype=torch.float64)).numel(), model.k


def norms_by_size() -> Numbers:
    """Sup |A_W D|^2 / |A| for |A| the number of rows and of columns; and the proof's 1 + mn/k."""
    model, inputs, _ = problem()
    largest = float(torch.linalg.matrix_norm(model.patches(inputs), 2)) ** 2
    columns = inputs.shape[0] * model.m
    return largest / model.k, largest / columns, 1.0 + columns / model.k


def rows_of_output_design() -> Numbers:
    """Sup |A_beta D|^2 over the first k rows and over all p, each over its number of rows; k and p."""
    model, inputs, _ = problem()
    seen = features(model, inputs)
    part, whole = (float(torch.linalg.matrix_norm(rows, 2)) ** 2 for rows in (seen[:, : model.k], seen))
    return model.k, model.p, part / model.k, whole / model.p


def hidden_gradient_errors() -> Numbers:
    """Relative distance from central differences of dL/dW_1 with beta_i inside the sum, and of the closed form."""
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
    rows = model.patches(inputs).reshape(3, 4, 10)
    active = (rows @ weights[0][:, 0] > 0).double()
    slope = (model(inputs).detach() - targets) / (3 * math.sqrt(model.p))
    literal = torch.einsum("s,sa,sai->i", slope, active * weights[1][:4, 0], rows)
    exact = gradients(model, inputs, targets)[0][:, 0]
    return tuple(float((found - numeric).norm() / numeric.norm()) for found in (literal, exact))


def gradient_outside() -> Numbers:
    """Share of dL/dW that m vectors sum_s P_i x_s leave unexplained, and that mn patches leave."""
    model, inputs, targets = problem()
    slope = gradients(model, inputs, targets)[0].numpy()
    patches = model.patches(inputs)
    few = patches.reshape(-1, model.m, model.k).sum(0).numpy()
    found = []
    for span in (few, patches.numpy()):
        basis = np.linalg.qr(span.T)[0]
        found.append(float(np.linalg.norm(slope - basis @ (basis.T @ slope)) / np.linalg.norm(slope)))
    return tuple(found)


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
    """lambda_max of H(t) as printed and of the product of Jacobians; how far Lemma 8's H is from that, in its norm."""
    model, inputs, _ = problem(5, 5, 200, 2000)
    weights, beta = (matrix(layer) for layer in model.layers)
    rows = model.patches(inputs)
    whole = rows.reshape(5, 5, 200).sum(1)
    gram, beta2 = whole @ whole.T / model.k, beta[:, 0] ** 2
    active = (rows @ weights > 0).double().reshape(5, 5, -1).sum(1)
    summed = (whole @ weights > 0).double()
    literal, lemma = (gram * ((found * beta2) @ found.T) / model.p for found in (active, summed))
    right = kernels(model, inputs)[1]
    high = spectrum(right)[1]
    return spectrum(literal)[1], high, float(torch.linalg.matrix_norm(lemma - right, 2)) / high


def remainders() -> Numbers:
    """|r(0)| with P x_s in the second sum, and with P_a x_s."""
    model, inputs, targets = problem()
    after = train(model, inputs, targets, gamma=0.1, steps=1).trained
    before, later = (matrix(network.layers[0]) for network in (model, after))
    beta = matrix(after.output)[:, 0]
    rows = model.patches(inputs).reshape(5, 5, 100)
    whole = rows.sum(1)
    linear = (whole @ (later - before)) * (rows @ before > 0).double().sum(1)
    change = (rows @ later).relu().sum(1) - (rows @ before).relu().sum(1)
    literal = (change - linear) @ beta / math.sqrt(model.p)
    return float(literal.norm()), float(remainder(model, after, inputs).norm())


def recursion_errors() -> Numbers:
    """What gamma/n (G + H)(y - f) misses of f(1) - f(0), and what gamma/n (G (y - f) + H (y - v)) misses."""
    model, inputs, targets = problem()
    after = train(model, inputs, targets, gamma=0.1, steps=1).trained
    between = network_of(model, [matrix(model.layers[0]), matrix(after.output)])
    G, H = kernels(model, inputs)[0], kernels(between, inputs)[1]  # noqa: N806
    start, middle, end = (network(inputs).detach() for network in (model, between, after))
    change = end - start
    printed = 0.02 * (G + H) @ (targets - start)
    right = 0.02 * (G @ (targets - start) + H @ (targets - middle))
    return tuple(float((change - found).norm() / change.norm()) for found in (printed, right))


def output_errors() -> Numbers:
    """|beta~ - beta|^2 / p and |beta~ - beta| / p of one run with initial features."""
    model, inputs, targets = problem()
    watch = Watch(model, inputs, targets)
    trained = train(model, inputs, targets, gamma=0.1, observe=watch).trained
    beta, before = (matrix(network.output)[:, 0] for network in (trained, model))
    source = torch.Generator().manual_seed(1)
    dirty = contaminate({"beta": beta}, Normal(1.0, 1.0), share=0.2, generator=source).state["beta"]
    setting = Setting(n=5, m=5, k=100, p=300, gamma=0.1, share=0.2)
    squared = fit_output(setting, watch, beta - before, dirty - before).error
    return squared, math.sqrt(squared / model.p)


def black_pixels() -> Numbers:
    """How many MNIST images are bundled, and the share of them whose first five pixels are 0 already."""
    first = data.load("mnist-sample").pixels.reshape(-1, 28 * 28)[:, :5]
    return first.shape[0], float((first == 0).all(1).double().mean())
