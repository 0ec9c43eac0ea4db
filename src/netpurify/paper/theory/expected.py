"""What G and H of Theorem 1's proof are expected to be at Gaussian weights: Lemmas 5 and 8, as printed and corrected.

With W ~ N(0, I/k) two patches u and v with cosine c give E relu(W'u) relu(W'v) = |u| |v| f(c) / k, where
f(c) = (sqrt(1 - c^2) + c (pi - arccos c)) / 2 pi, so f(0) = 1/2pi, f'(0) = 1/4 and f(1) = 1/2; and both are active with
probability 1/4 + arcsin(c) / 2pi. The paper's G-bar and H-bar are these to first order in c and in |u|/sqrt(k) - 1, for
networks with one patch. With m patches an entry of G or H is a sum over m^2 pairs of patches, and the corrected
matrices sum the same expressions over the pairs. For m = 1 they are the paper's.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from netpurify.paper.model import PatchCNN

_TINY = 1e-300
"""In the place of 0, where a patch has no ink: its cosine with anything is then 0."""


class ExpectedKernels(NamedTuple):
    """G-bar and H-bar, [n, n] each."""

    output: Tensor
    hidden: Tensor


def printed_kernels(model: PatchCNN, inputs: Tensor) -> ExpectedKernels:
    """G-bar of Lemma 5 and H-bar of Lemma 8 to the letter, with P x_s = sum_a P_a x_s in the place of a patch."""
    return _first_order(model.patches(inputs).reshape(-1, model.m, model.k).sum(1))


def corrected_kernels(model: PatchCNN, inputs: Tensor) -> ExpectedKernels:
    """The same expressions for every pair of patches, summed over the pairs of two inputs."""
    return ExpectedKernels(*(_over_pairs(kernel, model.m) for kernel in _first_order(model.patches(inputs))))


def exact_kernels(model: PatchCNN, inputs: Tensor) -> ExpectedKernels:
    """G and H in the mean over W ~ N(0, I/k) and beta ~ N(0, 1), without a first order."""
    rows = model.patches(inputs)
    sizes = rows.norm(dim=1) / math.sqrt(model.k)
    product = sizes[:, None] * sizes
    cosine = (rows @ rows.T / (model.k * product).clamp_min(_TINY)).clamp(-1.0, 1.0)
    relu = ((1.0 - cosine**2).sqrt() + cosine * (math.pi - cosine.arccos())) / (2.0 * math.pi)
    active = 0.25 + cosine.arcsin() / (2.0 * math.pi)
    return ExpectedKernels(_over_pairs(product * relu, model.m), _over_pairs(product * cosine * active, model.m))


def whole_kernels(model: PatchCNN, inputs: Tensor) -> ExpectedKernels:
    """The same for inputs of one patch sum_a P_a x_s: G~ of Lemma 5's proof, and the mean of Lemma 8's own H."""
    whole = inputs.reshape(-1, model.m, model.k).sum(1)
    return exact_kernels(PatchCNN(m=1, k=model.k, p=1, generator=torch.Generator()), whole)


def _first_order(rows: Tensor) -> ExpectedKernels:
    """The two matrices of Lemmas 5 and 8 for vectors [count, k], each taken as an input of one patch."""
    k = rows.shape[1]
    sizes = rows.norm(dim=1)
    cosine = rows @ rows.T / (sizes[:, None] * sizes).clamp_min(_TINY)
    beyond = sizes / math.sqrt(k) - 1.0
    output = 0.5 / math.pi + 0.25 * cosine + (beyond[:, None] + beyond) / (2.0 * math.pi)
    same = torch.eye(rows.shape[0], dtype=torch.bool)
    return ExpectedKernels(torch.where(same, 0.5, output), 0.25 * cosine + 0.25 * same)


def _over_pairs(kernel: Tensor, m: int) -> Tensor:
    """Sum of a matrix [n m, n m] over the pairs of patches of two inputs, [n, n]."""
    n = kernel.shape[0] // m
    return kernel.reshape(n, m, n, m).sum((1, 3))
