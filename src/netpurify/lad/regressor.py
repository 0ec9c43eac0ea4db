"""The solver as an estimator with scikit-learn's conventions, for one response or thousands on one design."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from netpurify.errors import InputError
from netpurify.lad.loss import tilt_of
from netpurify.lad.solution import Solution
from netpurify.lad.solver import solve


class LADRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Linear regression of the median or another quantile, exact and proven, several responses at once.

    Needs scikit-learn: ``pip install 'netpurify[sklearn]'``.

    Args:
        quantile: Between 0 and 1; 0.5 is the median: least absolute deviations.
        fit_intercept: Whether to fit a constant too.
        threads: How many threads to use; ``None`` for all cores.

    Attributes:
        coef_: Coefficients, [q], or [p, q] for responses [n, p]; where features depend on one another, those of
            smallest norm, together with the constant.
        intercept_: Constants, a number or [p]; 0 without ``fit_intercept``.
        solution_: The ``Solution``: residuals, duals, a status for each response, and what ``verify`` checks.
        objective_: The loss that was minimised, a number or [p].
        n_features_in_: Number of features, q.
        feature_names_in_: Names of the features, if they came with names, as in a pandas DataFrame.
        response_names_: Names of the responses, if they came with names.
    """

    def __init__(self, *, quantile: float = 0.5, fit_intercept: bool = True, threads: int | None = None) -> None:
        """Options are checked by ``fit``."""
        self.quantile = quantile
        self.fit_intercept = fit_intercept
        self.threads = threads

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # noqa: N803
        """Fit features [n, q] to a response [n] or to several, [n, p].

        Args:
            X: Features, finite.
            y: Responses, finite.
            sample_weight: Weights of the samples, [n], at least 0.

        Raises:
            InputError: The quantile or the weights have no meaning.
            ValueError: Shapes or values are none that scikit-learn allows.
        """
        tilt_of(self.quantile)
        names = _names(y)
        given = validate_data(self, X, y, multi_output=True, y_numeric=True, dtype=np.float64)
        features, responses = (np.asarray(one, np.float64) for one in given)
        if responses.ndim == 2 and responses.shape[1] == 1 and names is None and np.ndim(y) == 1:
            responses = responses[:, 0]
        design = np.hstack([np.ones((len(features), 1)), features]) if self.fit_intercept else features
        weights = _weights(sample_weight, len(features))
        solution = solve(design, responses, quantile=self.quantile, weights=weights, threads=self.threads)
        coefficients = np.asarray(solution.coefficients)
        if solution.rank < design.shape[1]:
            coefficients = _smallest(design if weights is None else design[weights > 0.0], coefficients)
        self.intercept_ = coefficients[0] if self.fit_intercept else np.zeros(coefficients.shape[1:])[()]
        self.coef_ = np.ascontiguousarray(coefficients[int(self.fit_intercept) :].T)
        self.solution_: Solution = solution
        self.objective_ = solution.objective
        if names is not None:
            self.response_names_ = names
        return self

    def __sklearn_tags__(self) -> Any:
        """The coefficient of determination is no score for quantiles other than the median."""
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = self.quantile != 0.5
        return tags

    def predict(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """The fitted quantile for features [n, q]: [n], or [n, p] for several responses."""
        check_is_fitted(self)
        features = np.asarray(validate_data(self, X, reset=False, dtype=np.float64))
        return features @ self.coef_.T + self.intercept_


def _smallest(design: NDArray[np.float64], coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
    """The coefficients of smallest norm with the same fit: their part in the span of the rows of the design."""
    _, sizes, rows = np.linalg.svd(design, full_matrices=False)
    rows = rows[sizes > max(design.shape) * np.finfo(np.float64).eps * sizes.max(initial=0.0)]
    return rows.T @ (rows @ coefficients)


def _names(responses: Any) -> NDArray[np.object_] | None:
    """Names of the columns of a data frame, if they are texts."""
    columns = getattr(responses, "columns", None)
    if columns is None or not all(isinstance(name, str) for name in columns):
        return None
    return np.array(list(columns), dtype=object)


def _weights(given: Any, count: int) -> NDArray[np.float64] | None:
    """Weights of the samples; a single number is that of all."""
    if given is None:
        return None
    weights = np.asarray(given, np.float64)
    if weights.ndim > 1:
        raise InputError(f"sample_weight must be one number for each of {count} samples; got {list(weights.shape)}")
    return np.full(count, float(weights)) if weights.ndim == 0 else weights
