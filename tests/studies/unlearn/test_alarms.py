"""False alarms, what is found, and the page: from rows that are written by hand."""

import json
from dataclasses import asdict
from importlib import resources
from pathlib import Path

import pytest

from netpurify.experiments import trials_of
from netpurify.experiments.studies.defence.baseline import CleanData
from netpurify.experiments.studies.markdown import number
from netpurify.experiments.studies.study import RunFacts
from netpurify.experiments.studies.unlearn import alarms, experiments, rivals
from netpurify.experiments.studies.unlearn import rows as rows_module
from netpurify.experiments.studies.unlearn.curve import highest_alarms, pictures
from netpurify.experiments.studies.unlearn.hunts_page import at_least, at_most, by_network, share
from netpurify.experiments.studies.unlearn.methods import METHODS, OneAfterTheOther
from netpurify.experiments.studies.unlearn.page import unlearn_page
from netpurify.findings import read_table

CELL = {"network": "sample_cnn", "attack": "patch", "method": "unlearn", "images": 500, "hunt": 0}
TABLE = Path(__file__).parents[3] / "docs" / "results" / "hunts.csv.gz"


def row(family, success, runner_up, **more):
    given = {"network": "resnet", "attack": "none", "seed": 0, "hunt": 0, "target": 3, "class": 3, "set_aside": False}
    given |= {"family": family, "success": success, "runner_up": runner_up, "margin": success - runner_up}
    return given | {"family_seconds": 1.0, "hunt_seconds": 2.0, "failure": None} | more


def healthy():
    """One hunt each of seeds 0 and 1, on which levels are calibrated, and one of seed 2, which is judged."""
    return [
        row("spot", 0.2, 0.1), row("wave", 0.5, 0.4),
        row("spot", 0.3, 0.0, seed=1), row("wave", 0.6, 0.2, seed=1),
        row("spot", 0.5, 0.2, seed=2), row("wave", 0.85, 0.2, seed=2),
    ]  # fmt: skip


def poisoned(**more):
    """Patch: the spot finds it alone; the wave points to another class."""
    given = {"attack": "patch", "seed": 1, "set_aside": True} | more
    return [row("spot", 0.95, 0.1, **given), row("wave", 0.9, 0.1, **given | {"class": 6})]


def test_levels_come_from_healthy_networks_of_two_seeds_alone():
    expected = alarms.calibration([*healthy(), *poisoned(seed=0)])
    assert expected.keys() == {"colour"}
    spot, wave = expected["colour"].of("spot"), expected["colour"].of("wave")
    assert (spot.highest, spot.widest, spot.hunts) == (0.3, 0.3, 2)
    assert expected["colour"].networks == 2
    assert (wave.success, wave.highest) == (0.55, 0.6)
    assert wave.widest == pytest.approx(0.4)


def test_a_false_alarm_is_counted_and_a_right_one_is_told_from_a_wrong_one():
    rows = [*healthy(), *poisoned()]
    judged = alarms.hunted_networks(rows, alarms.calibration(rows))
    calm, calm_again, alarmed, attacked = judged
    assert not calm.suspects
    assert not calm_again.suspects
    assert alarmed.suspects == {"wave": (3, 0.85)}, "0.85 is above 0.8, halfway between 0.6 and 1"
    assert attacked.suspects == {"spot": (3, 0.95), "wave": (6, 0.9)}
    assert attacked.found
    assert not attacked.found_without("spot")
    assert attacked.found_without("wave")


def test_the_curve_is_of_the_highest_alarm_and_of_the_right_class():
    rows = [*healthy(), *poisoned()]
    found = highest_alarms(rows)
    assert [kind for _, kind, _ in found] == ["healthy", "healthy", "healthy", "poisoned"]
    assert found[2][2] == pytest.approx(0.85 / 0.8)
    assert found[3][2] == pytest.approx(0.95 / 0.65), "the wave points elsewhere, and does not count"
    assert pictures({"hunts": rows, "opinions": []}) == pictures({"hunts": rows, "opinions": []})


def repair(method, accuracy, asr, **more):
    given = {"network": "resnet", "attack": "patch", "seed": 1, "hunt": 0, "images": 500, "method": method}
    given |= {"set_aside": True, "target": 3, "accuracy": accuracy, "asr": asr, "ra": 0.5, "floor": 0.04}
    given |= {"suspects": "3", "families": "spot", "bound": 0.1, "after": 0.2, "labels": METHODS[method].labels}
    return given | {"repair_seconds": 60.0, "megabytes": 5.0, "failure": None} | more


def test_the_page_says_what_the_tables_say():
    repairs = [
        repair("nothing", 0.83, 0.95), repair("unlearn", 0.826, 0.02), repair("unlearn", 0.822, 0.04, hunt=1),
        repair("unlearn", 0.83, 0.95, hunt=2, suspects=""), repair("I-BAU", 0.77, 0.021),
        repair("nothing", 0.8, 0.9, attack="adaptive"), repair("unlearn", 0.8, 0.9, attack="adaptive", suspects=""),
    ]  # fmt: skip
    rivals = [repair("nothing", 0.9, 0.97, floor=0.07), repair("unlearn", 0.91, 0.02), repair("NAD", 0.88, 0.3)]
    tables = {"hunts": [*healthy(), *poisoned(), *poisoned(attack="adaptive")], "unlearnt": repairs, "opinions": []}
    tables["rivals"] = rivals
    page = unlearn_page(tables, RunFacts("the command", 7200.0))
    assert "patch<br>95.0, floor 4.0" in page
    assert "| **unlearn** | inputs | -0.4 / 33.7 |" in page, "the mean over three hunts"
    assert "| I-BAU | labels | -6.0 / 2.1 |" in page
    line = next(line for line in page.splitlines() if line.startswith("| ResNet") and "| patch | 1 |" in line)
    assert line.endswith("| 4.0 | -0.4 / 2.0 (3) | -0.8 / 4.0 (3) | +0.0 / 95.0 (\N{EN DASH}) |")
    assert "| ResNet with BatchNorm, CIFAR-10 | 0 of 2 | 1 of 1, at most 100 % |" in page, "seed 2 raised an alarm"
    assert "| networks in which every hunt finds it |  |  | 1 of 1, at least 5 % |  |" in page
    assert "| spot | 0.25 | 0.30 | 0.65 | 0.30 | 0.65 | 2 | 2 | 50 |" in page
    without = page.split("### Without the families of an attack")[1].split("\n## ")[0]
    assert "| ResNet with BatchNorm, CIFAR-10 | 0 of 1 |  |  |  |" in without, "the wave points to another class"
    left = page.split("## Repairs that leave a backdoor")[1].split("\n## ")[0]
    assert "Of 3 repairs by `unlearn` with 500 images" in left
    line = "| ResNet with BatchNorm, CIFAR-10 | patch | 1 | 2 | spot | 95.0 | 95.0 | 0.20 |"
    assert [row for row in left.splitlines() if row.startswith("| ResNet")] == [line], "one of three is above the floor"
    every = page.split("## Every repair of one")[1].split("\n## ")[0]
    assert "patch<br>97.0, floor 7.0" in every
    assert "| **unlearn** | inputs | +1.0 / 2.0 |\n| NAD | labels | -2.0 / 30.0 |" in every, "less its own accuracy"
    assert "Every repair of one" not in unlearn_page(tables | {"rivals": []}, RunFacts("the command", 7200.0))
    unseen = page.split("## Attacks set aside")[1].split("## ")[0]
    assert "adaptive<br>90.0, floor 4.0" in unseen
    assert "+0.0 / 90.0" in unseen
    assert "2.0 hours" in page or "120 minutes" in page


def test_rates_have_exact_one_sided_bounds():
    # 0 of n: 1 - 0.05 ** (1 / n); the other way round for what is always found
    assert at_most([False] * 9) == "0 of 9, at most 28 %"
    assert at_most([False] * 59) == "0 of 59, at most 5 %"
    assert at_least([True] * 9) == "9 of 9, at least 72 %"
    assert at_most([True]) == "1 of 1, at most 100 %"
    assert (at_most([]), share([])) == ("", "")


def test_networks_are_counted_and_not_hunts():
    rows = [*healthy(), *(row | {"hunt": 1} for row in healthy())]
    judged = alarms.hunted_networks(rows, alarms.calibration(rows))
    assert len(judged) == 6
    assert [len(own) for own in by_network(judged)] == [2, 2, 2]


def test_a_network_from_which_levels_come_is_judged_without_itself():
    rows = [row("spot", 0.2, 0.1), row("spot", 0.9, 0.0, seed=1), row("spot", 0.1, 0.0, seed=2)]
    found = {one.row["seed"]: bool(one.suspects) for one in alarms.without_themselves(rows)}
    assert found == {0: False, 1: True}, "by levels that contain its own it could never be suspect"


def test_a_class_that_users_are_not_told_of_is_not_found():
    given = {"attack": "patch", "seed": 1}
    rows = [*healthy(), row("spot", 0.7, 0.0, **given), row("wave", 1.0, 0.0, **given, **{"class": 6})]
    *_, attacked = alarms.hunted_networks(rows, alarms.calibration(rows))
    assert attacked.suspects == {"spot": (3, 0.7), "wave": (6, 1.0)}
    assert not attacked.found, "0.7 is below three quarters of 1.0"


def test_every_cell_of_the_full_mode_is_of_a_known_method_and_costs_something():
    hunts, repairs, rivals, seconds = experiments(Path("anywhere"))
    assert {cell["method"] for cell in repairs.grid("full")} == set(METHODS)
    assert {cell["images"] for cell in repairs.grid("full")} == {50, 100, 500, 1000}
    assert all(cell.keys() == {"network", "attack", "hunt"} for cell in hunts.grid("full"))
    assert all(cell.keys() == {"network", "attack"} for cell in (*seconds.grid("full"), *rivals.grid("full")))


@pytest.mark.parametrize("mode", ["quick", "default", "full"])
def test_every_repair_has_the_network_as_it_came_beside_it(mode):
    _, repairs, *_ = experiments(Path("anywhere"))
    planned = [(trial.settings, trial.number) for trial in trials_of(repairs, mode=mode)]
    bases = {(cell["network"], cell["attack"], seed) for cell, seed in planned if cell["method"] == "nothing"}
    assert {(cell["network"], cell["attack"], seed) for cell, seed in planned} == bases


def test_more_healthy_networks_are_set_aside_than_a_rate_of_five_percent_takes():
    hunts, *_ = experiments(Path("anywhere"))
    rows = [trial.settings | {"seed": trial.number} for trial in trials_of(hunts, mode="full")]
    healthy = [row for row in rows if row["attack"] == "none"]
    aside = {(row["network"], row["seed"]) for row in healthy if not alarms.calibrated_on(row)}
    assert 0.95 ** len(aside) < 0.05, "no alarm in so many bounds the rate by 5 % with 95 % confidence"
    assert {row["hunt"] for row in healthy if number(row["seed"]) > 2} == {0}
    attacked = {(row["network"], row["seed"]) for row in rows if row["attack"] == "patch"}
    assert ("resnet", 0) not in attacked
    assert ("resnet", 2) in attacked


def test_the_levels_of_the_package_are_those_of_the_committed_table():
    rows = read_table(TABLE)
    made = {kind: asdict(expected) for kind, expected in alarms.calibration(rows).items()}
    text = resources.files("netpurify.network.hunting").joinpath("healthy.json").read_text()
    assert json.loads(text) == json.loads(json.dumps(made))


@pytest.mark.slow
def test_a_trial_hunts_and_repairs_a_small_network(tmp_path):
    hunts, repairs, *_ = experiments(tmp_path)
    rows = hunts.trial({"network": "sample_cnn", "attack": "patch", "hunt": 0}, 0)
    spot = next(one for one in rows if one["family"] == "spot")
    assert spot["class"] == spot["target"] == 0
    assert spot["margin"] == pytest.approx(spot["success"] - spot["runner_up"])
    assert spot["margin"] > 0.5
    (after,) = repairs.trial(CELL, 0)
    (before,) = repairs.trial(CELL | {"method": "nothing"}, 0)
    assert before["asr"] > 0.9
    assert after["asr"] < 0.1
    assert after["accuracy"] > before["accuracy"] - 0.02
    assert after["suspects"] == "0"
    assert before["floor"] == after["floor"] < 0.05


def test_the_longest_repair_is_tried_on_two_networks():
    assert rivals.repairs_of("patch") == list(METHODS)
    assert rivals.repairs_of("sig") == [name for name in METHODS if name != "ANP, 2,000 iterations"]


@pytest.mark.slow
def test_every_repair_is_of_the_same_weights_and_the_first_of_two_is_done_once(tmp_path, monkeypatch):
    names, done = ("nothing", "defend", "NAD", "defend, then NAD"), []
    nad, own = METHODS["NAD"], METHODS["defend"]

    class Counted(type(own)):
        def mend(self, network, clean, /):
            done.append(network)
            return super().mend(network, clean)

    pair = OneAfterTheOther(Counted(), nad)
    monkeypatch.setattr(rivals, "METHODS", METHODS | {"defend": Counted(), "defend, then NAD": pair})
    monkeypatch.setattr(rivals, "RIVALS", names)
    *_, experiment, _ = experiments(tmp_path)
    rows = experiment.trial({"network": "sample_cnn", "attack": "patch"}, 0)
    assert [row["method"] for row in rows] == [*names]
    assert len(done) == 1
    assert rows[0]["asr"] > 0.9 > 0.05 > rows[0]["floor"]
    assert {row["floor"] for row in rows} == {rows[0]["floor"]}
    assert rows[3]["repair_seconds"] > rows[1]["repair_seconds"] > 0.0
    (alone,) = rows_module.repaired(CELL | {"method": "nothing"}, 0, folder=str(tmp_path / "networks"))
    assert (alone["asr"], alone["accuracy"]) == (rows[0]["asr"], rows[0]["accuracy"])
    scenario = rows_module.scenario_of(CELL, 0)
    clean = CleanData(*scenario.clean(500), None, 0, augmented=True)
    both = pair.repair(rows_module.network_of(scenario, str(tmp_path / "networks")), clean)
    assert rows_module.judge(scenario, both)["accuracy"] == rows[3]["accuracy"]
