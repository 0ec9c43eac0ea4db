"""Defences that keep of a layer's training what its clean inputs span: in L1, which is the paper's, and in L2."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import nn

import netpurify
from netpurify.experiments.studies.defence.baseline import Baseline, CleanData
from netpurify.network import Span, capture, prepare
from netpurify.threads import one_blas_thread


@dataclass(frozen=True, slots=True)
class Projection(Baseline):
    """Algorithm 2 of the paper: every layer's change since the start takes its L1 fit on the clean inputs' span."""

    name: ClassVar[str] = "Algorithm 2"
    labels: ClassVar[bool] = False
    data: ClassVar[bool] = True
    initial: ClassVar[bool] = True

    def mend(self, network: nn.Module, clean: CleanData, /) -> nn.Module:
        """The network, projected."""
        return netpurify.purify(network, clean.images, policy=netpurify.Project(clean.initial, proof=False)).model


@dataclass(frozen=True, slots=True)
class LeastSquares(Baseline):
    """Algorithm 2 with squares in place of absolute values: the orthogonal projection on the clean inputs' span.

    Layer by layer in the order of execution, through what is already projected; outputs on the clean inputs stay as
    they are, and every direction that those do not show goes back to its start. A layer whose inputs span every
    direction stays as it is, but for weights whose input is zero throughout: those are as before training.
    """

    name: ClassVar[str] = "least squares"
    labels: ClassVar[bool] = False
    data: ClassVar[bool] = True
    initial: ClassVar[bool] = True

    def mend(self, network: nn.Module, clean: CleanData, /) -> nn.Module:
        """The network, projected."""
        prepared = prepare(network, clean.images, initial=clean.initial)
        for layer in prepared.in_order():
            spans, weights = capture(prepared, layer), prepared.weights(layer)
            start = weights.initial.astype(np.float64)
            changes = weights.contaminated.astype(np.float64) - start
            fitted = [project(change, span) for change, span in zip(changes, spans, strict=True)]
            prepared.write(layer, start + np.stack(fitted))
        return prepared.model


def project(change: NDArray[np.float64], span: Span) -> NDArray[np.float64]:
    """Orthogonal projection of the columns [fan-in, units] on what the rows of the span span."""
    if span.full:
        return np.where(span.live()[:, None], change, 0.0)
    directions = span.strongest(span.rank())
    with one_blas_thread():
        return directions @ (directions.T @ change)
