"""What the theory needs to see of the first phase of training, gathered while it runs."""

import math

import torch
from torch import Tensor

from netpurify.paper.model import PatchCNN, matrix
from netpurify.paper.theory.kernels import kernels, remainder, spectrum
from netpurify.paper.training import network_of


class Watch:
    """An observer of ``train``; every list has what was seen, in order.

    G(t), H(t) and r(t) are looked at for t = 0, 1, 2, 4, 8, ...: their extremes over t are extremes over these. H(t) is
    at W(t) and beta(t+1), so it is known one step later.

    Attributes:
        output: Smallest and largest eigenvalue of G(t).
        hidden: The same of H(t).
        quotient: (y - f(t))'(G(t) + H(t))(y - f(t)) / |y - f(t)|^2, for (18).
        beyond: Pairs of t and |r(t)|.
        between: |y - v(t)| for t = 1, 2, 3, ..., where v(t) is the output at beta(t) and W(t-1), for (14).
        features: A = relu(W(0)'P X), summed over patches, [p, n]: the design of Lemma 9.
        summed: sum_t (y - f(t)) over all steps that were taken, [n].
    """

    def __init__(self, model: PatchCNN, inputs: Tensor, targets: Tensor) -> None:  # noqa: D107
        self.model, self.inputs, self.targets = model, inputs, targets.to(torch.float64)
        self.output: list[tuple[float, float]] = []
        self.hidden: list[tuple[float, float]] = []
        self.quotient: list[float] = []
        self.beyond: list[tuple[int, float]] = []
        self.between: list[float] = []
        self.features = self._features(matrix(model.layers[0])).T
        self.summed = torch.zeros(inputs.shape[0], dtype=torch.float64)
        self._before: tuple[Tensor, Tensor] | None = None
        self._held: tuple[PatchCNN, Tensor, Tensor] | None = None

    def __call__(self, t: int, weights: list[Tensor]) -> None:
        """Look at the matrices of step t."""
        features, beta = self._features(weights[0]), weights[1]
        if self._before is not None:
            earlier, left = self._before
            self.summed += left
            self.between.append(float((self.targets - self._scores(earlier, beta)).norm()))
        residual = self.targets - self._scores(features, beta)
        self._before = features, residual
        self._look(t, weights, residual)

    def _look(self, t: int, weights: list[Tensor], residual: Tensor) -> None:
        doubled = not t & (t - 1)
        if self._held is None and not doubled:
            return
        now = network_of(self.model, weights)
        if self._held is not None:
            model, G, left = self._held  # noqa: N806
            H = kernels(network_of(self.model, [matrix(model.layers[0]), weights[-1]]), self.inputs)[1]  # noqa: N806
            self.hidden.append(spectrum(H))
            self.beyond.append((t - 1, float(remainder(model, now, self.inputs).norm())))
            if left.norm():
                self.quotient.append(float(left @ (G + H) @ left / left.square().sum()))
        self._held = None
        if doubled:
            G = kernels(now, self.inputs)[0]  # noqa: N806
            self.output.append(spectrum(G))
            self._held = now, G, residual

    def _features(self, hidden: Tensor) -> Tensor:
        return self.model.pool((self.model.patches(self.inputs) @ hidden).relu())

    def _scores(self, features: Tensor, beta: Tensor) -> Tensor:
        return (features @ beta)[:, 0] / math.sqrt(self.model.p)
