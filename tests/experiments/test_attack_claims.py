"""Rules about backdoors on made tables, in which every rate is known and each verdict can be made to change."""

import pytest

from netpurify.experiments.figures.claims import attack, attack_additions, deep
from netpurify.experiments.figures.claims.attack_numbers import gain
from netpurify.findings import Verdict, select

RATIOS = (0.0, 0.1, 0.2, 0.3)
BEFORE = {0.0: 0.33, 0.1: 0.6, 0.2: 0.8, 0.3: 0.97}
HOLDS, LIMITS, FAILS, UNSEEN = Verdict.HOLDS, Verdict.LIMITS, Verdict.FAILS, Verdict.UNSEEN


def table(*, counts=(9, 33, 99), depths=(1,), trials=4, variant="paper", **given):
    """Rows of trials that differ by a thousandth; ``given`` sets the level of a rate, such as ``l1_asr_all``.

    The initial weights guess; the trained network has an accuracy of 0.95, and a robust accuracy of 1 - asr.
    """
    level = {
        "l1_asr_all": 0.35, "l1_accuracy": 0.94, "l1_ra": 0.9, "other_asr_all": 0.36, "other_accuracy": 0.935,
        "other_ra": 0.89, "l2_asr_all": 0.5, "as_trained": 0.96, "accuracy": 0.95, "start_ra": 0.3,
    } | given  # fmt: skip
    rows = []
    for trial in range(trials):
        for depth in depths:
            for ratio in RATIOS:
                head = {
                    "variant": variant,
                    "trigger": "first five pixels",
                    "ratio": ratio,
                    "layers": depth,
                    "trial": trial,
                }
                shift = 0.001 * trial
                attack = level.get("before", BEFORE)[ratio]
                rows.append(
                    head | rates("before", None, None, level["accuracy"], attack, 0.95 - attack * (ratio > 0), shift)
                )
                rows.append(head | rates("initial weights", None, None, 0.33, 0.33, level["start_ra"], shift))
                for n in counts:
                    where = {"training": "l1", "other": "other"}
                    for origin, name in where.items():
                        found = (level[f"{name}_accuracy"], level[f"{name}_asr_all"], level[f"{name}_ra"], shift)
                        rows.append(head | rates("l1", n, origin, *found))
                        rows.append(head | rates("l2", n, origin, 0.94, level["l2_asr_all"], 0.7, shift))
                    rows.append(head | rates("l1", n, "as trained on", 0.94, level["as_trained"], 0.05, shift))
    return rows


def rates(method, clean, origin, accuracy, asr_all, ra, shift):
    where = {"method": method, "clean": clean, "origin": origin, "failure": None}
    return where | {"accuracy": accuracy + shift, "asr_all": asr_all - shift, "asr": asr_all, "ra": ra + shift}


def verdicts(finding):
    return finding.by_measure, finding.against_nothing


@pytest.mark.parametrize(
    ("accuracy", "expected"), [(0.95, HOLDS), (0.985, LIMITS), (0.88, FAILS)], ids=["holds", "limits", "fails"]
)
def test_network_without_poison_is_the_papers(accuracy, expected):
    assert verdicts(attack.without_poison(table(accuracy=accuracy))) == (expected, None)


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (BEFORE, HOLDS),
        (BEFORE | {0.2: 0.5}, LIMITS),  # falls once on the way
        (BEFORE | {0.3: 0.85}, LIMITS),
        (BEFORE | {0.3: 0.75, 0.2: 0.7}, FAILS),
    ],
)
def test_attack_success_must_rise_at_every_step_and_reach_the_top(before, expected):
    assert attack.attack_rises(table(before=before)).by_measure is expected


def test_a_rise_needs_two_trials():
    assert attack.attack_rises(table(trials=1)).by_measure is UNSEEN


@pytest.mark.parametrize(
    ("success", "robust", "expected"),
    [(0.35, 0.92, (HOLDS, HOLDS)), (0.42, 0.7, (LIMITS, LIMITS)), (0.5, 0.35, (FAILS, FAILS))],
)
def test_attack_is_gone_by_success_and_by_robust_accuracy(success, robust, expected):
    finding = attack.attack_gone(table(l1_asr_all=success, l1_ra=robust), 9)
    assert verdicts(finding) == expected


def test_gain_is_measured_from_the_better_way_of_doing_nothing():
    found = gain(table(l1_ra=0.7, start_ra=0.4), clean=9)
    # Without poison 0.95, doing nothing 0.4 (the initial weights; the poisoned network has -0.02).
    assert found.share == pytest.approx((0.7 - 0.4) / (0.95 - 0.4))
    assert found.nothing.mean == pytest.approx(0.4 + 0.0015)


def test_nothing_to_gain_is_no_gain():
    rows = table(start_ra=0.99)
    assert gain(rows, clean=9).share != gain(rows, clean=9).share
    assert attack.attack_gone(rows, 9).against_nothing is FAILS


@pytest.mark.parametrize(("success", "expected"), [(0.78, HOLDS), (0.85, LIMITS), (0.9, FAILS)])
def test_attack_is_weakened_by_twenty_points(success, expected):
    finding = attack.attack_weakened(table(l1_asr_all=success), 33)
    assert finding.by_measure is expected
    assert f"{97 - 100 * success:.1f} ± 0.0" in finding.measured


@pytest.mark.parametrize(("accuracy", "expected"), [(0.94, HOLDS), (0.91, LIMITS), (0.8, FAILS)])
def test_accuracy_is_kept(accuracy, expected):
    finding = attack.accuracy_kept(table(l1_accuracy=accuracy), 9, 99, 5.0)
    assert finding.by_measure is expected
    assert finding.against_nothing is (HOLDS if accuracy > 0.9 else LIMITS)


@pytest.mark.parametrize(
    ("success", "robust", "expected"),
    [(0.39, 0.88, (HOLDS, HOLDS)), (0.43, 0.7, (LIMITS, LIMITS)), (0.2, 0.4, (FAILS, FAILS))],
)
def test_places_are_compared_in_both_directions(success, robust, expected):
    finding = attack.outside_similar(table(other_asr_all=success, other_ra=robust), "clean")
    assert verdicts(finding) == expected


@pytest.mark.parametrize(("success", "expected"), [(0.7, HOLDS), (0.82, LIMITS), (0.9, FAILS)])
def test_depths_are_judged_by_the_worst(success, expected):
    rows = table(depths=(1, 2), counts=(36,))
    changed = [row | {"asr_all": success} if row["method"] == "l1" and row["layers"] == 2 else row for row in rows]
    assert deep.attack_reduced(changed, "training").by_measure is expected


@pytest.mark.parametrize(
    ("accuracy", "expected"),
    [(0.93, HOLDS), (0.97, FAILS), (0.88, FAILS)],
    ids=["falls marginally", "rises", "falls by more than marginally"],
)
def test_accuracy_against_depth_can_fail_in_both_ways(accuracy, expected):
    shallow, other = table(counts=(36,)), table(counts=(36,), accuracy=accuracy, l1_accuracy=accuracy - 0.01)
    rows = [*shallow, *(row | {"layers": 3} for row in other)]
    # A spread, without which any difference would be clear.
    rows = [row | {"accuracy": row["accuracy"] + 0.002 * (row["trial"] % 2) * (row["layers"] == 3)} for row in rows]
    assert deep.accuracy_by_depth(rows, "training").by_measure is expected


def test_what_we_add_is_marked_and_has_no_second_verdict():
    rows = [*table(), *table(variant="raw pixels", l1_asr_all=0.98)]
    added = [
        attack_additions.as_trained(rows, 99),
        attack_additions.other_settings(rows, {"clean": 33}),
        attack_additions.least_squares(rows, "clean"),
    ]
    assert [finding.ours for finding in added] == [True] * 3
    assert [finding.against_nothing for finding in added] == [None] * 3
    assert [finding.by_measure for finding in added] == [HOLDS, FAILS, HOLDS]


def test_images_as_trained_on_are_told_from_clean_ones():
    assert attack_additions.as_trained(table(as_trained=0.5), 99).by_measure is FAILS


def test_other_settings_are_left_out_where_the_table_has_none():
    assert attack_additions.other_settings(select(table(), ratio=0.3), {"clean": 33}) is None
