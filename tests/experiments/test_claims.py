"""The claims of Figures 2 to 7 on made-up tables: what holds, what holds with limits, what fails, what is unseen."""

import random
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

import pytest

from netpurify.experiments.figures import FIGURES, figure06
from netpurify.experiments.figures.claims import rules
from netpurify.experiments.figures.claims.ladder import ladder, ladder_verdicts
from netpurify.experiments.figures.trials import altered_weights
from netpurify.findings import Rule, Verdict, read_table

RESULTS = Path(__file__).parents[2] / "docs" / "results"
H, L, F, U = Verdict.HOLDS, Verdict.LIMITS, Verdict.FAILS, Verdict.UNSEEN
NOISE_FIGURES = (2, 3, 4, 5, 6, 7)
SHARES = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6)


def made_up(number, outcome, trials=4):
    """A table of the quick grid.

    ``outcome(at, method)`` gives shares of exact units, and errors as shares of those of the initial weights, which
    fall with p as they do in lazy training.
    """
    figure = FIGURES[number]
    regimes = ("joint", "sequential") if number < 5 else (None,)
    clean = [(n, place) for n in figure06.COUNTS for place in altered_weights.ORIGINS] if number > 5 else [(None, None)]
    rows = []
    for cell, trial, regime, (n, place), eps in product(
        figure.experiment.grid("quick"), range(trials), regimes, clean, SHARES
    ):
        at = {**cell, "trial": trial, "seed": trial, "regime": regime, "clean": n, "origin": place, "eps": eps}
        start = (1.0 + 0.1 * trial) / cell["p"] ** 0.5
        for method in ("l1", "l1, initial features", "initial weights", "contaminated"):
            found = {"W": 1.0, "beta": 1.0, "exact": 0.0}
            if method == "contaminated":
                found = {"W": 20.0, "beta": 20.0, "exact": 0.0}
            elif method != "initial weights":
                found |= outcome(at, method)
            errors = {f"{layer}_error": start * found[layer] for layer in ("W", "beta")}
            shares = {"W_exact": found["exact"], "beta_exact": float(found["exact"] == 1.0), "rank_W": 25}
            rows.append({**at, "method": method, **errors, **shares, "converged": False, "failure": None})
    return rows


def judged(number, rows):
    """Both verdicts of every claim of the paper."""
    claims = [finding for finding in FIGURES[number].findings(rows) if not finding.ours]
    return [(finding.by_measure, finding.against_nothing) for finding in claims]


def nothing(at, method, salt=0):
    """Purified weights as far from the true ones as the initial weights, give or take, and no better with p."""
    jitter = random.Random(str((at, method, salt))).uniform(-0.05, 0.05)
    scale = 30.0 * at["p"] ** 0.5
    return {"W": scale * (1.0 + jitter), "beta": scale * (1.0 - jitter)}


def everything(at, _method):
    """All that the paper claims, up to a limit that goes with p, k, m and n as it says."""
    if at["clean"] is not None:
        good, left = at["eps"] <= 0.6 - at["clean"] / 200, 0.01
    elif "n" in at and at["k"] == 200:
        good, left = at["eps"] <= 0.7 - 0.05 * at["m"], 0.01
    else:
        good, left = at["eps"] <= 0.1 + at["p"] / 2000 + at["k"] / 1000, 1.0 / at["p"]
    far = 30.0 * at["p"] ** 0.5
    left *= 1.0 + at["eps"]
    return {"W": left, "beta": left, "exact": 1.0} if good else {"W": far, "beta": far}


@pytest.mark.parametrize("number", NOISE_FIGURES)
def test_a_table_with_no_effect_fails(number):
    claims = judged(number, made_up(number, nothing))
    similar = {(F, F), (L, F), (H, F)}  # images from outside are as useless as training images: similar, and no gain
    assert set(claims[:2]) == {(F, F)}
    assert set(claims) <= similar


@pytest.mark.parametrize("number", NOISE_FIGURES)
def test_a_table_with_the_effect_holds(number):
    assert set(judged(number, made_up(number, everything))) == {(H, H)}


@pytest.mark.parametrize(("number", "position"), [(2, 1), (3, 1), (4, 1), (5, 0)])
@pytest.mark.parametrize("features", ["l1", "l1, initial features"])
def test_what_holds_with_one_choice_of_features_holds_with_limits(number, position, features):
    rows = made_up(number, lambda at, method: (everything if method == features else nothing)(at, method))
    assert judged(number, rows)[position] == (L, L)


@pytest.mark.parametrize(("number", "position", "spoilt"), [
    (2, 2, {"k": 50}), (2, 3, {"k": 50}), (3, 2, {"k": 50}), (3, 3, {"k": 50}),
])  # fmt: skip
def test_what_holds_in_some_cells_holds_with_limits(number, position, spoilt):
    def outcome(at, method):
        return (nothing if spoilt.items() <= at.items() else everything)(at, method)

    assert judged(number, made_up(number, outcome))[position] == (L, L)


def test_one_layer_alone_makes_few_images_hold_with_limits():
    def outcome(at, method):
        return everything(at, method) | {"beta": nothing(at, method)["beta"]}

    assert judged(6, made_up(6, outcome))[:2] == [(L, L), (L, L)]


def test_a_little_better_than_doing_nothing_earns_nothing():
    def slightly(at, method):
        return {layer: 0.97 * value for layer, value in nothing(at, method).items() if layer != "exact"} | {
            "W": 0.97, "beta": 0.97,
        }  # fmt: skip

    for number in (6, 7):
        few, *_ = judged(number, made_up(number, slightly))
        assert few[1] == F


def test_images_from_outside_that_recover_less_are_seen():
    def outcome(at, method):
        found = everything(at, method)
        return {layer: 3.0 * value for layer, value in found.items()} if at["origin"] == "other" else found

    assert judged(6, made_up(6, outcome))[2][0] == F


@pytest.mark.parametrize("number", NOISE_FIGURES)
def test_without_the_fits_nothing_was_measured(number):
    rows = [row for row in made_up(number, everything) if not row["method"].startswith("l1")]
    assert set(judged(number, rows)) == {(U, U)}


@pytest.mark.parametrize("number", NOISE_FIGURES)
def test_a_setting_that_failed_was_not_measured(number):
    last = FIGURES[number].experiment.grid("quick")[0]
    rows = made_up(number, everything)
    settings = [{name: row[name] for name in (*last, "trial", "seed")} for row in rows if last.items() <= row.items()]
    failed = [{**one, "failure": "OSError: gone"} for one in settings]
    kept = [row for row in rows if not last.items() <= row.items()]
    assert (U, U) in judged(number, kept + failed)


@pytest.mark.parametrize(("number", "positions"), [(2, (0, 1, 3)), (3, (0, 1)), (4, (0, 1)), (5, (0,)), (6, (1,))])
def test_one_trial_cannot_show_a_difference(number, positions):
    found = judged(number, made_up(number, everything, trials=1))
    assert {found[position] for position in positions} == {(U, U)}


def limits_of(tops, errors=(0.01, 1.0)):
    """Steps whose error is small up to an eps, in three trials."""
    return [
        (
            f"step {step}",
            [
                {"trial": trial, "eps": eps, "method": "l1", "W_error": errors[eps > top], "W_ratio": errors[eps > top]}
                for trial in range(3)
                for eps in SHARES
            ],
        )
        for step, top in enumerate(tops)
    ]


def test_a_limit_rises_by_at_least_the_finest_step():
    grid = (0.0, 0.1, 0.12, 0.2)
    steps = [
        (str(top), [{"trial": t, "eps": e, "method": "l1", "W_error": float(e > top), "W_ratio": float(e > top)}
                    for t in range(3) for e in grid])
        for top in (0.1, 0.12)
    ]  # fmt: skip
    assert ladder_verdicts([[ladder("W", steps, "W")]]) == (F, F)
    assert ladder_verdicts([[ladder("W", limits_of((0.1, 0.2)), "W")]]) == (H, H)


def test_an_error_at_which_nothing_is_decided_does_not_count():
    found = ladder("W", limits_of((0.1, 0.3), errors=(0.1, 0.3)), "W")
    assert found.counting == (0.1, 0.2)  # below all limits are 0, at 0.5 all are at the end of the grid
    assert found.all_rise
    assert ladder_verdicts([[ladder("W", limits_of((0.1, 0.3), errors=(0.9, 0.9)), "W")]]) == (F, F)


def test_a_limit_that_falls_somewhere_needs_a_part_that_holds():
    rising, falling = (ladder("W", limits_of(tops), "W") for tops in ((0.1, 0.3), (0.3, 0.1)))
    level = ladder("W", limits_of((0.2, 0.2)), "W")
    assert ladder_verdicts([[rising], [level]]) == (L, L)
    assert ladder_verdicts([[rising, falling], [rising, level]]) == (F, F)
    assert ladder_verdicts([[rising, level], [rising, level]])[0] == L  # half of all errors, falling at none


@cache
def recorded(name):
    return read_table(RESULTS / f"{name}.csv.gz")


@pytest.mark.slow
def test_verdicts_of_the_full_run():
    found = {number: judged(number, recorded(FIGURES[number].experiment.name)) for number in NOISE_FIGURES}
    assert found == {
        2: [(H, H), (H, L), (H, L), (L, L)],
        3: [(H, H), (H, L), (H, L), (L, L)],
        4: [(H, H), (F, L)],
        5: [(L, L)],
        6: [(L, F), (L, F), (L, L)],
        7: [(L, F), (L, F)],
    }


@pytest.mark.slow
@pytest.mark.parametrize("number", NOISE_FIGURES)
def test_cells_are_short_and_tables_are_whole(number):
    for finding in FIGURES[number].findings(recorded(FIGURES[number].experiment.name)):
        assert len(finding.measured) <= 200, finding.measured
        assert finding.evidence
        for table in finding.evidence:
            assert all(len(row) == len(table.columns) for row in table.rows)
            assert all(len(cell) <= 30 for row in table.rows for cell in row)


def test_one_claim_has_one_rule():
    texts = {}
    for name, rule in vars(rules).items():
        if isinstance(rule, Rule):
            assert texts.setdefault(rule.claim, name) == name
            assert all((rule.where, rule.measure, rule.reason)), name
    figures = [FIGURES[number].findings(made_up(number, everything)) for number in (2, 3, 5)]
    assert len({id(finding.rule) for found in figures for finding in found if finding.claim.startswith("When p")}) == 1
    assert replace(rules.DEPTH) == rules.DEPTH
