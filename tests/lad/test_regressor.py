"""The estimator: scikit-learn's own checks, its conventions, and the same answers as scikit-learn's."""

import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import QuantileRegressor
from sklearn.utils.estimator_checks import check_estimator

from netpurify import lad
from netpurify.errors import InputError


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"quantile": 0.9}, {"fit_intercept": False}], ids=str)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_finds_nothing_amiss(options):
    found = check_estimator(lad.LADRegressor(threads=1, **options), on_fail=None)
    assert len(found) > 40
    assert [one["check_name"] for one in found if one["status"] == "failed"] == []


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.8])
def test_fits_are_as_good_as_those_of_scikit_learn(quantile):
    rng = np.random.default_rng(0)
    features = rng.standard_normal((120, 4))
    response = 3.0 + features @ [1.0, -2.0, 0.0, 4.0] + rng.standard_t(3, 120)
    weights = rng.random(120)
    ours = lad.LADRegressor(quantile=quantile).fit(features, response, sample_weight=weights)
    theirs = QuantileRegressor(quantile=quantile, alpha=0.0).fit(features, response, sample_weight=weights)
    assert ours.coef_ == pytest.approx(theirs.coef_, abs=1e-5)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-5)
    assert ours.predict(features) == pytest.approx(theirs.predict(features), abs=1e-4)
    design = np.column_stack([np.ones(120), features])
    assert lad.verify(design, response, ours.solution_.claim, quantile=quantile, weights=weights).certified


def test_many_responses_at_once_keep_their_names():
    rng = np.random.default_rng(1)
    features = pd.DataFrame(rng.standard_normal((60, 2)), columns=["height", "age"])
    responses = pd.DataFrame(rng.standard_normal((60, 3)), columns=["a", "b", "c"])
    fitted = lad.LADRegressor(quantile=0.3).fit(features, responses)
    assert fitted.coef_.shape == (3, 2)
    assert fitted.intercept_.shape == fitted.objective_.shape == (3,)
    assert fitted.feature_names_in_.tolist() == ["height", "age"]
    assert fitted.response_names_.tolist() == ["a", "b", "c"]
    assert fitted.predict(features).shape == (60, 3)
    alone = lad.LADRegressor(quantile=0.3).fit(features, responses["b"])
    assert alone.coef_ == pytest.approx(fitted.coef_[1])
    assert alone.predict(features).shape == (60,)


def test_dependent_features_have_the_smallest_coefficients():
    rng = np.random.default_rng(2)
    one = rng.standard_normal((50, 1))
    fitted = lad.LADRegressor().fit(np.hstack([one, one]), 2.0 * one[:, 0] + 1.0)
    assert fitted.coef_ == pytest.approx([1.0, 1.0])
    assert fitted.intercept_ == pytest.approx(1.0)


def test_options_without_meaning_are_refused():
    with pytest.raises(InputError, match="quantile must lie strictly"):
        lad.LADRegressor(quantile=1.0).fit(np.ones((5, 1)), np.ones(5))
    with pytest.raises(InputError, match="one number for each of 5 samples"):
        lad.LADRegressor().fit(np.ones((5, 1)), np.ones(5), sample_weight=np.ones((5, 2)))
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = lad.Nothing


def test_without_scikit_learn_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "netpurify.lad.regressor", None)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    monkeypatch.delitem(sys.modules, "netpurify.lad.regressor")
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'netpurify\[sklearn\]'"):
        _ = lad.LADRegressor
