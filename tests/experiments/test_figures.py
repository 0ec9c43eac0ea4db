"""Every figure on small networks: its trial gives the rows that its plot and its findings read."""

import copy
from functools import cache
from pathlib import Path

import pytest
import torch

from netpurify import data
from netpurify.contaminate import Normal, contaminate
from netpurify.experiments.figures import FIGURES, figure02, figure04, figure06, figure08
from netpurify.experiments.figures.claims import rules
from netpurify.experiments.figures.claims.verdicts import graded, listed, show
from netpurify.experiments.figures.panels import line
from netpurify.experiments.figures.trials import altered_weights, backdoors, three_classes
from netpurify.findings import TrialSummary, Verdict, read_table
from netpurify.paper import PatchCNN, compare, purify, train

SMALL = {"p": 30, "steps": 60}


@pytest.fixture(autouse=True)
def colour_pictures(monkeypatch):
    """CIFAR-10 is not bundled; noise of its shape has the same way through the code."""
    real = data.load

    def load(name, *, split="train", root=None):
        if name != "cifar10":
            return real("mnist-sample", split=split, root=root)
        generator = torch.Generator().manual_seed(0)
        pixels = torch.randint(256, (1000, 32, 32, 3), generator=generator, dtype=torch.uint8)
        labels = torch.arange(1000) % 10
        return data.Images(pixels, labels, torch.arange(1000), "cifar10", split)

    three_classes.load_classes.cache_clear()
    monkeypatch.setattr(data, "load", load)
    yield
    three_classes.load_classes.cache_clear()


def table(figure, cells=None):
    """The rows of a small run of the quick grid, as the runner would write them."""
    experiment = figure.experiment
    rows = []
    for cell in experiment.grid("quick"):
        settings = cell | SMALL | ({"p": cell["p"] // 5} if figure.number < 6 else {})
        if cells is not None and not cells(settings):
            continue
        head = {"experiment": experiment.name, **settings, "trial": 0, "seed": 0}
        rows += [{**head, **row, "seconds": 1.0, "failure": None} for row in experiment.trial(settings, 0)]
    return rows


@pytest.mark.slow
@pytest.mark.parametrize("number", FIGURES)
def test_figure_reads_its_own_table(number, once):
    figure = FIGURES[number]
    rows = once(f"table of {figure.experiment.name}", lambda: table(figure))
    for panel in figure.panels(rows):
        assert panel.lines
        for drawn in panel.lines:
            assert len(drawn.x) == len(drawn.median) == len(drawn.low) == len(drawn.high) > 1, (
                panel.title,
                drawn.label,
            )
            assert all(value == value for value in drawn.median), (panel.title, drawn.label)
    findings = figure.findings(rows)
    assert findings
    for finding in findings:
        assert finding.claim
        assert " nan" not in finding.measured
        assert isinstance(finding.by_measure, Verdict)


@pytest.mark.parametrize("number", [number for number, figure in FIGURES.items() if not figure.ours])
def test_settings_are_the_papers_in_full_mode(number):
    experiment = FIGURES[number].experiment
    cells = experiment.grid("full")
    assert experiment.trials["full"] == (100 if number <= 4 else 10)
    assert {cell.get("data") for cell in cells} <= {None, "mnist", "cifar10"}
    for cell in cells:
        assert cell["m"] * cell["k"] in (784, 1024) or number <= 4


def test_synthetic_trial_recovers_below_the_limit_and_not_beyond():
    rows = figure02.trial({"n": 5, "m": 5, "k": 100, "p": 60, "gamma": 0.1, "steps": 500}, 0)
    at = {(row["eps"], row["regime"], row["method"]): row for row in rows}
    assert at[0.1, "joint", "l1"]["W_exact"] == 1.0
    assert at[0.7, "joint", "l1"]["W_exact"] == 0.0
    assert at[0.1, "sequential", "l1"]["beta_error"] < 1e-12 < at[0.1, "joint", "l1"]["beta_error"]
    assert at[0.1, "sequential", "l1"]["W_error"] == at[0.1, "joint", "l1"]["W_error"]
    assert at[0.1, "joint", "l2"]["W_exact"] == 0.0
    assert at[0.1, "joint", "l1"]["certified"] == 1.0
    assert at[0.1, "joint", "contaminated"]["W_error"] > 0.3


def test_beta_breaks_down_where_a_shift_explains_more_than_the_truth():
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(5, 250, generator=generator, dtype=torch.float64)
    targets = 2.0 * torch.rand(5, generator=generator, dtype=torch.float64) - 1.0
    initial = PatchCNN(m=5, k=50, p=500, generator=generator)
    trained = train(initial, inputs, targets, gamma=0.1, steps=500).trained

    def error(mean, share):
        law = Normal(mean, 1.0)
        state = contaminate(trained.state_dict(), law, share=share, generator=torch.Generator().manual_seed(1)).state
        dirty = copy.deepcopy(trained)
        dirty.load_state_dict(state)
        half = altered_weights.with_hidden(dirty, trained)
        fitted = purify(half, initial, inputs, features="initial", layers=["output"], certify=False)
        _, output = compare(fitted.model, trained).values()
        return output.rms

    _, start = compare(initial, trained).values()
    assert error(1.0, 0.5) < 0.1 * start.rms
    assert error(1.0, 0.7) > start.rms
    assert error(0.0, 0.7) < 0.1 * start.rms


def test_control_that_spans_everything_recovers_nothing():
    rows = figure04.trial({"n": 5, "m": 8, "k": 40, "p": 20, "gamma": 0.1, "steps": 50}, 0)
    exact = {row["eps"]: row["W_exact"] for row in rows if row["method"] == "l1" and row["regime"] == "joint"}
    assert exact[0.0] == 1.0
    assert exact[0.2] < 0.05


def test_backdoor_goes_where_its_pixels_are_blank():
    (settings,) = [cell for cell in figure08.grid("quick") if cell["ratio"] == 0.3]
    rows = backdoors.backdoor(settings | {"p": 60, "steps": 500}, 0, counts=(36,))
    (before,) = [row for row in rows if row["method"] == "before"]
    after = [row for row in rows if row["origin"] in backdoors.ORIGINS]
    (stays,) = [row for row in rows if row["origin"] == "as trained on"]
    assert len(after) == 4
    assert before["asr_all"] > 0.8
    assert stays["asr_all"] > 0.7
    for row in after:
        assert row["asr_all"] < 0.5
        assert row["accuracy"] > before["accuracy"] - 0.06


def test_trials_are_pure():
    (settings,) = figure06.grid("quick")
    runs = [
        altered_weights.on_images(settings | SMALL, seed, shares=(0.1,), counts=(9,), origins=("other",))
        for seed in (0, 0, 1)
    ]
    assert runs[0] == runs[1] != runs[2]


def test_noise_is_not_made_of_the_numbers_that_made_the_inputs():
    draws = [
        torch.rand(100, generator=torch.Generator().manual_seed(seed)) for seed in (3, 3 + altered_weights.NOISE_SEED)
    ]
    assert abs(float(torch.corrcoef(torch.stack(draws))[0, 1])) < 0.4


def test_views():
    rows = [
        {"eps": eps, "trial": trial, "method": "l1", "exact": value + trial / 100}
        for trial in (0, 1)
        for eps, value in ((0.2, 0.96), (0.0, 1.0), (0.1, 0.97), (0.3, 0.2))
    ]
    drawn = line(rows, "exact", x="eps", y="exact", method="l1")
    assert drawn.x == [0.0, 0.1, 0.2, 0.3]
    assert drawn.median == pytest.approx([1.005, 0.975, 0.965, 0.205])
    assert listed([("a", "1"), ("b", "2")]) == "a: 1, b: 2"


def test_a_rule_without_its_numbers_gives_no_verdict():
    one, two = (TrialSummary(count, 0.5, 0.1, 0.4, 0.5, 0.6) for count in (1, 2))
    assert graded([two], holds=True, limits=True) == Verdict.HOLDS
    assert graded([two], holds=False, limits=True) == Verdict.LIMITS
    assert graded([two], holds=False, limits=False) == Verdict.FAILS
    assert graded([two, TrialSummary(0, *[float("nan")] * 5)], holds=True, limits=True) == Verdict.UNSEEN
    assert graded([two, one], holds=True, limits=True, trials=2) == Verdict.UNSEEN


def test_numbers_are_shown_with_their_spread():
    assert show(TrialSummary(10, 0.945, 0.012, 0.9, 0.95, 1.0)) == "0.945 ± 0.012 (10)"
    assert show(TrialSummary(10, 0.3, 5.6e-17, 0.3, 0.3, 0.3)) == "0.300 ± 0.000 (10)"
    assert show(TrialSummary(1, 2.5e-16, float("nan"), 0, 0, 0)) == "2.5e-16 (1)"
    assert show(TrialSummary(0, *[float("nan")] * 5)) == "-"


RESULTS = Path(__file__).parents[2] / "docs" / "results"


@cache
def recorded(name):
    """The rows of the full run, read once; whoever changes a row changes a copy."""
    return read_table(RESULTS / f"{name}.csv.gz")


def verdicts(number, change=lambda row: row):
    """By the paper's measure and against doing nothing, of the paper's claims."""
    figure = FIGURES[number]
    rows = [change(dict(row)) for row in recorded(figure.experiment.name)]
    findings = figure.findings([row for row in rows if row is not None])
    return {finding.rule: (finding.by_measure, finding.against_nothing) for finding in findings if not finding.ours}


@pytest.mark.slow
def test_verdicts_of_the_full_run():
    assert verdicts(8)[rules.ATTACK_GONE] == (Verdict.HOLDS, Verdict.LIMITS)
    assert verdicts(9)[rules.ATTACK_WEAKENED] == (Verdict.HOLDS, Verdict.FAILS)
    assert verdicts(10) == {
        rules.DEEP_ATTACK: (Verdict.HOLDS, Verdict.HOLDS),
        rules.DEEP_ACCURACY: (Verdict.HOLDS, Verdict.HOLDS),
        rules.DEPTH: (Verdict.FAILS, None),
    }


@pytest.mark.parametrize(
    ("number", "rule"),
    [(8, rules.ATTACK_GONE), (9, rules.ATTACK_WEAKENED), (10, rules.DEEP_ATTACK), (11, rules.DEEP_ATTACK)],
)
def test_what_is_missing_is_not_measured(number, rule):
    found = verdicts(number, lambda row: None if row["ratio"] == 0.3 and row["trial"] is not None else row)
    assert Verdict.UNSEEN in found[rule]


def test_an_attack_that_stays_with_the_images_the_claim_names_is_seen():
    def stay(row):
        return row | {"asr_all": 0.97} if row["clean"] == 9 else row

    assert verdicts(8, stay)[rules.ATTACK_GONE][0] == Verdict.FAILS


def test_an_attack_that_never_worked_proves_nothing():
    def weak(row):
        return row | {"asr_all": 0.33} if row["method"] == "before" else row

    assert verdicts(8, weak)[rules.ATTACK_RISES][0] == Verdict.FAILS
    assert verdicts(10, weak)[rules.DEEP_ATTACK][0] == Verdict.FAILS


def test_accuracy_that_is_lost_is_seen():
    def lose(row):
        return row | {"accuracy": 0.4} if row["method"] == "l1" else row

    assert verdicts(8, lose)[rules.accuracy_kept(5.0)] == (Verdict.FAILS, Verdict.FAILS)
    assert verdicts(10, lose)[rules.DEEP_ACCURACY] == (Verdict.FAILS, Verdict.FAILS)
