import math

import numpy as np
import pytest
import torch

from netpurify import InputError
from netpurify.findings import Verdict
from netpurify.paper.theory import Setting, sweep
from netpurify.paper.theory.sweeping import SweptStatement, _statement

BASE = Setting(n=5, m=5, k=60, p=200, gamma=0.1, share=0.2)


def swept(letter, values, **options):
    return sweep(
        letter, values, base=BASE, generator=torch.Generator().manual_seed(0), **{"steps": 60, "trials": 3} | options
    )


@pytest.mark.slow
def test_the_papers_dependence_on_m_fails_and_the_corrected_one_holds():
    found = swept("m", [8, 1, 2, 4, 16])
    assert found.values == (1, 2, 4, 8, 16)
    assert [setting.m for setting in found.settings] == [1, 2, 4, 8, 16]
    assert [setting.gamma for setting in found.settings] == pytest.approx([0.1, 0.1, 0.1, 2 / 64, 2 / 256])
    by_part = {(one.part, one.quantity): one for one in found.statements}
    fails = {part for (part, _), one in by_part.items() if one.verdict == Verdict.FAILS}
    assert fails == {"(15)", "(16)", "Lemma 5", "Lemma 8", "Theorem 2"}
    assert {name for (part, name), one in by_part.items() if part == "Theorem 2" and one.verdict == Verdict.FAILS} == {
        "E |f(0)|^2 by mn"
    }
    assert all(one.verdict == Verdict.HOLDS for (part, _), one in by_part.items() if "corrected" in part)
    upper = by_part["(15)", "lambda_max(G) by mn"]
    theory = [(5 * m**2 / (2 * math.pi) + m * (0.5 - 0.5 / math.pi)) / (5 * m) for m in found.values]
    assert upper.constants == pytest.approx(theory, rel=0.12)


@pytest.mark.slow
def test_statements_that_are_right_in_p_hold_in_p():
    found = swept("p", [100, 400, 1600], steps=30)
    by_part = {one.part: one for one in found.statements}
    for part in ("(15)", "(16)", "(15) corrected", "(16) corrected"):
        assert by_part[part].verdict == Verdict.HOLDS
    assert by_part["Lemma 5"].verdict == Verdict.FAILS  # at m = 5 the printed G-bar is not approached


def test_exponent_and_standard_error_are_those_of_least_squares():
    rng = np.random.default_rng(0)
    values = [1, 3, 10, 30]
    constants = np.exp(0.7 * np.log(values)[:, None] + 0.1 * rng.standard_normal((4, 5)))
    found = _statement(("a", "b"), values, constants.tolist())
    x = np.repeat(np.log(values), 5)
    design = np.stack([np.ones(20), x], 1)
    fit, (left,), *_ = np.linalg.lstsq(design, np.log(constants).reshape(-1), rcond=None)
    error = math.sqrt(left / 18 * np.linalg.inv(design.T @ design)[1, 1])
    assert (found.exponent, found.error) == pytest.approx((fit[1], error))
    assert found.constants == pytest.approx(np.exp(np.log(constants).mean(1)))


@pytest.mark.parametrize(
    ("exponent", "error", "verdict"),
    [(0.5, 0.1, Verdict.FAILS), (0.5, 0.2, Verdict.MEASURED), (0.0, 0.05, Verdict.HOLDS), (0.1, 0.1, Verdict.MEASURED)],
)
def test_a_verdict_needs_two_standard_errors(exponent, error, verdict):
    assert SweptStatement("a", "b", (1.0,), exponent, error).verdict == verdict


@pytest.mark.parametrize(("letter", "values"), [("m", [1, 2]), ("m", [1, 2, 2]), ("m", [0, 1, 2]), ("p", [1, 2, 3])])
def test_a_sweep_needs_three_values(letter, values):
    with pytest.raises(InputError, match="at least three different whole numbers"):
        swept(letter, values)
    with pytest.raises(InputError, match="a sweep is over m, k, p or n"):
        swept("eps", values)
