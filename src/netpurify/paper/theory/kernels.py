"""The matrices G(t) and H(t) of Theorem 1's proof, which decide how fast gradient descent fits the training data."""

import math

import torch
from torch import Tensor

from netpurify.errors import InputError
from netpurify.paper.model import PatchCNN, matrix, with_bias


def kernels(model: PatchCNN, inputs: Tensor) -> tuple[Tensor, Tensor]:
    """G and H [n, n] at the weights of a scalar network with one hidden layer.

    G = F F' / p with F_s = sum_a relu(W' P_a x_s), and H_sl = 1/(p k) sum_ab (P_a x_s)'(P_b x_l) sum_j beta_j^2
    relu'(W_j' P_a x_s) relu'(W_j' P_b x_l): to first order a step of Algorithm 1 changes f by gamma/n (G + H)(y - f).

    The paper pulls (P x_s)'(P x_l) with P = sum_a P_a out of H's sum over patches, which holds for m = 1 only; this is
    the matrix for which its recursion is true, up to the hidden step seeing y - v(t+1), the residual after the output
    step, instead of y - f(t). The paper's H(t) is that of W(t) and beta(t+1).
    """
    if model.classes is not None or len(model.hidden) != 1:
        raise InputError(
            "G and H are defined for a scalar network with one hidden layer; got "
            f"{len(model.hidden)} hidden layers and classes = {model.classes}"
        )
    hidden, output = model.layers
    rows = with_bias(model.patches(inputs), hidden)
    before = rows @ matrix(hidden)
    features = with_bias(model.pool(before.relu()), output)
    active = (before > 0).to(rows.dtype)
    beta = matrix(output)[: model.p, 0]
    patches = (rows @ rows.T) * ((active * beta**2) @ active.T) / (model.p * rows.shape[1])
    n, m = inputs.shape[0], model.m
    return features @ features.T / model.p, patches.reshape(n, m, n, m).sum((1, 3))


def lemma_hidden_kernel(model: PatchCNN, inputs: Tensor) -> Tensor:
    """H [n, n] as Lemma 8 prints it: with one indicator for the sum of patches, and so without a sum over them."""
    hidden, output = model.layers
    whole = model.patches(inputs).reshape(-1, model.m, model.k).sum(1)
    active = (whole @ matrix(hidden)[: model.k] >= 0).to(whole.dtype)
    beta = matrix(output)[: model.p, 0]
    return (whole @ whole.T) * ((active * beta**2) @ active.T) / (model.p * model.k)


def remainder(model: PatchCNN, following: PatchCNN, inputs: Tensor) -> Tensor:
    """r(t) [n] of (17): what the hidden step from ``model`` to ``following`` changes in f beyond first order."""
    beta = matrix(following.output)[: model.p]
    rows = with_bias(model.patches(inputs), model.layers[0])
    before, after = rows @ matrix(model.layers[0]), rows @ matrix(following.layers[0])
    beyond = after.relu() - before.relu() - (after - before) * (before > 0)
    return (model.pool(beyond) @ beta)[:, 0] / math.sqrt(model.p)


def spectrum(kernel: Tensor) -> tuple[float, float]:
    """Smallest and largest eigenvalue of a symmetric matrix."""
    values = torch.linalg.eigvalsh(kernel)
    return float(values[0]), float(values[-1])
