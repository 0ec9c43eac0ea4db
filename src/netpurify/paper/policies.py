"""Algorithm 2 and its two baselines, as policies of the loop that purifies any network layer by layer.

The policies differ in the weights that a layer gets. They share what the layer feeds forward while later layers are
purified, which the paper leaves open.
"""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from netpurify import lad
from netpurify.network import FitOptions, Outcome, Project, Regressions, Span, UnitFits

Features = Literal["purified", "initial", "recovered"]
FEATURES: tuple[Features, ...] = ("purified", "initial", "recovered")
_LARGEST_GROWTH = 1e3
"""A unit whose norm is more than this many times that of its initial weights would drown all others in later layers."""


@dataclass(frozen=True)
class PaperPolicy(Project):
    """A way to purify the paper's network. Subclasses say which weights a layer gets.

    Attributes:
        features: Which weights a layer has while later layers are purified: the ``"purified"`` ones, the ``"initial"``
            ones, or the purified ones of ``"recovered"`` units and the initial ones of all others.
        certify: Whether every fit is verified.
    """

    features: Features = "purified"
    certify: bool = True

    def design(self, span: Span) -> lad.Design | None:
        """The layer's inputs as columns; ``None`` if they are so many that the span keeps no rows.

        Inputs that span every direction are a design here, as in the paper: the fit sets weights whose input is always
        zero to their initial values, and all others stay as they are.
        """
        return None if span.full else span.design()

    @abstractmethod
    def decide(self, regressions: Regressions, fits: Iterator[UnitFits]) -> Outcome:
        """The weights of a layer."""

    def fit_options(self) -> FitOptions:
        """As for ``Project``, but fits are verified only if that was asked for."""
        return replace(super().fit_options(), verify=self.certify)

    def temporary_weights(self, outcome: Outcome) -> NDArray:
        """The weights of a purified layer while later layers are purified."""
        trusted = is_recovered(outcome.status) if self.features == "recovered" else np.True_
        return self.weights_fed_forward(outcome, trusted)

    def weights_fed_forward(self, outcome: Outcome, trusted: NDArray[np.bool_] | np.bool_) -> NDArray:
        """The weights of ``trusted`` units of ordinary size, and the initial weights of all others."""
        initial = outcome.weights.initial
        if self.features == "initial":
            return initial
        with np.errstate(over="ignore"):  # an altered weight may be as large as its dtype allows
            norms, usual = (np.linalg.norm(matrix.astype(np.float64), axis=1) for matrix in (outcome.matrix, initial))
        ordinary = norms <= _LARGEST_GROWTH * np.maximum(usual, np.median(usual))
        return np.where((trusted & ordinary)[:, None], outcome.matrix, initial)


@dataclass(frozen=True)
class L1Fit(PaperPolicy):
    """Algorithm 2: each unit gets the point of the span that is nearest in L1."""

    def decide(self, regressions: Regressions, fits: Iterator[UnitFits]) -> Outcome:
        """Every weight takes the fitted value.

        Without a design the fit is known without solving for it: present weights stay as they are. Weights that are
        missing, and those whose input is always zero, get their initial values.
        """
        outcome = Project.decide(self, regressions, fits)
        if regressions.designs[0] is None:
            outcome.status[:] = lad.Status.RANK_FULL
            undetermined = regressions.weights.missing[0] | ~regressions.spans[0].live()[:, None]
            outcome.replace(0, undetermined, regressions.weights.initial[0][undetermined])
        return outcome


@dataclass(frozen=True)
class LeastSquaresFit(PaperPolicy):
    """Baseline: each unit gets the point of the span that is nearest in L2; missing weights count as initial ones."""

    def decide(self, regressions: Regressions, fits: Iterator[UnitFits]) -> Outcome:
        """Every weight takes the fitted value; no L1 fit is made."""
        del fits
        design, units = regressions.designs[0], slice(None)
        change = np.nan_to_num(regressions.difference(0, units))
        if design is None:
            change[~regressions.spans[0].live()] = 0.0
        else:
            A = torch.from_numpy(design.matrix)  # noqa: N806
            change = (A @ torch.linalg.lstsq(A, torch.from_numpy(change), driver="gelsd").solution).numpy()
        return _all_replaced(regressions, regressions.start(0, units) + change)


@dataclass(frozen=True)
class InitialWeights(PaperPolicy):
    """Baseline: each unit gets its initial weights."""

    def decide(self, regressions: Regressions, fits: Iterator[UnitFits]) -> Outcome:
        """Every weight takes its initial value; no L1 fit is made."""
        del fits
        return _all_replaced(regressions, regressions.weights.initial[0])


def is_recovered(status: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Which units have the evidence that their fit is the truth."""
    return (status == lad.Status.CLEAN) | (status == lad.Status.RECOVERED)


def _all_replaced(regressions: Regressions, values: NDArray) -> Outcome:
    outcome = Outcome(regressions.weights)
    outcome.replace(0, np.ones(values.shape, np.bool_), values.reshape(-1))
    return outcome
