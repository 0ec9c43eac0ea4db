"""The conclusion says nothing that the verdicts do not bear."""

import pytest

from netpurify.experiments.figures import conclusion
from netpurify.experiments.figures.claims import attack_additions, rules
from netpurify.findings import Finding, Rule, Verdict

HOLDS, LIMITS, FAILS, UNSEEN = Verdict.HOLDS, Verdict.LIMITS, Verdict.FAILS, Verdict.UNSEEN


def judged(rule, by_measure, against_nothing=None):
    return [Finding(rule, by_measure, against_nothing, "")]


def test_nothing_measured_is_nothing_said():
    assert conclusion({}) == ""
    assert conclusion({2: judged(rules.THEOREM_2, UNSEEN), 3: judged(rules.THEOREM_3, UNSEEN)}) == ""


@pytest.mark.parametrize(("second", "third", "said"), [(HOLDS, LIMITS, True), (HOLDS, FAILS, False)])
def test_the_core_stands_on_both_theorems(second, third, said):
    text = conclusion({2: judged(rules.THEOREM_2, second), 3: judged(rules.THEOREM_3, third)})
    assert ("The core of the paper stands" in text) is said


@pytest.mark.parametrize(("verdict", "said"), [(FAILS, True), (HOLDS, False)])
def test_doing_nothing_is_as_good_only_where_the_claim_fails_against_it(verdict, said):
    found = {number: judged(rules.FEW_IMAGES, LIMITS, verdict) for number in (6, 7)}
    assert ("half of the error that the initial weights have" in conclusion(found)) is said


@pytest.mark.parametrize(("squares", "said"), [(FAILS, True), (LIMITS, False)])
def test_least_squares_is_named_where_it_does_as_well(squares, said):
    found = [*judged(rules.ATTACK_GONE, HOLDS, LIMITS), *judged(attack_additions.LEAST_SQUARES, squares)]
    assert ("least squares does so too" in conclusion({8: found})) is said


@pytest.mark.parametrize(("verdicts", "said"), [((HOLDS, HOLDS), True), ((HOLDS, LIMITS), False), ((), False)])
def test_prediction_is_claimed_if_every_statement_of_its_figure_holds(verdicts, said):
    found = {14: [finding for verdict in verdicts for finding in judged(Rule("ours"), verdict)]}
    assert ("simulation on that design" in conclusion(found)) is said
