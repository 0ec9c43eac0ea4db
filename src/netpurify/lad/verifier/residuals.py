"""Residuals of candidate fits: which entries count as altered, how large they are, and whether they tie."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Candidate:
    """Columns to be checked, one per row; [p, >= k], where the entries beyond k are missing.

    Attributes:
        data: Right-hand sides; NaN where missing.
        fitted: A times the coefficients.
        dual: The dual that comes with them.
        noise_floor: Residuals up to this count as zero, [p].
        tilt: 2 quantile - 1: the loss of a residual r is |r| + tilt r.
    """

    data: NDArray[np.float64]
    fitted: NDArray[np.float64]
    dual: NDArray[np.float64]
    noise_floor: NDArray[np.float64]
    tilt: float = 0.0

    def some(self, columns: slice) -> "Candidate":
        """Some of the columns."""
        return Candidate(
            self.data[columns], self.fitted[columns], self.dual[columns], self.noise_floor[columns], self.tilt
        )


@dataclass(frozen=True, slots=True)
class Residuals:
    """Residuals and their sizes, [p, >= k].

    Attributes:
        values: data - fitted; NaN where missing.
        sizes: Absolute values; 0 where missing.
        missing: Which entries are missing.
        altered: Which residuals are above the noise floor.
        altered_sizes: Sizes of the altered entries of each column, sorted.
        median: Their median, [p]; infinite where nothing is altered.
        ties: How often the most frequent of them occurs, [p].
    """

    values: NDArray[np.float64]
    sizes: NDArray[np.float64]
    missing: NDArray[np.bool_]
    altered: NDArray[np.bool_]
    altered_sizes: "SortedSizes"
    median: NDArray[np.float64]
    ties: NDArray[np.int64]

    @classmethod
    def of(cls, candidate: Candidate) -> "Residuals":
        """Subtract, and sort what is altered."""
        missing = np.isnan(candidate.data)
        values = candidate.data - candidate.fitted
        sizes = np.where(missing, 0.0, np.abs(values))
        altered = sizes > candidate.noise_floor[:, None]
        ordered = SortedSizes.of(sizes, altered)
        ties = ordered.most_frequent(candidate.noise_floor)
        return cls(values, sizes, missing, altered, ordered, ordered.quantile(2), ties)


@dataclass(frozen=True, slots=True)
class SortedSizes:
    """Some of the sizes in each column, in ascending order.

    Attributes:
        ordered: The sizes, followed by infinities, [p, > largest count].
        count: How many sizes each column has, [p].
    """

    ordered: NDArray[np.float64]
    count: NDArray[np.intp]

    @classmethod
    def of(cls, sizes: NDArray[np.float64], chosen: NDArray[np.bool_]) -> "SortedSizes":
        """Sort the ``chosen`` ones of ``sizes`` [p, rows]."""
        count = np.count_nonzero(chosen, axis=1)
        ordered = np.full((count.size, int(count.max(initial=0)) + 1), np.inf)
        ordered[np.arange(ordered.shape[1]) < count[:, None]] = sizes[chosen]  # both go through the columns one by one
        ordered.sort(axis=1)
        return cls(ordered, count)

    def quantile(self, divisor: int) -> NDArray[np.float64]:
        """The size at position count // ``divisor``: 2 for the median, 4 for the lower quartile; infinite if none."""
        return np.take_along_axis(self.ordered, (self.count // divisor)[:, None], axis=1)[:, 0]

    def most_frequent(self, floor: NDArray[np.float64]) -> NDArray[np.int64]:
        """How often the most frequent size of each column occurs; sizes that differ by at most ``floor`` are equal."""
        before, ahead = self.ordered[:, :-1], self.ordered[:, 1:]
        with np.errstate(invalid="ignore"):  # inf - inf, behind the last size
            equal = ahead - before <= np.maximum(floor[:, None], 1e-12 * before)
        most = np.minimum(self.count, 1)
        tied = np.flatnonzero(equal.any(axis=1))  # few columns, if alterations are generic
        position = np.arange(self.ordered.shape[1])
        begins = np.ones((tied.size, position.size), np.bool_)
        begins[:, 1:] = ~equal[tied]
        run = position + 1 - np.maximum.accumulate(np.where(begins, position, 0), axis=1)
        most[tied] = run.max(axis=1, initial=0)
        return most
