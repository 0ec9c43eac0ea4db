"""The defences' table: what is set aside stays so, every cell is there, and the page says what the rows say."""

from pathlib import Path

import pytest
import torch

from netpurify import data
from netpurify.experiments.studies import STUDIES, defence, write_page
from netpurify.experiments.studies.defence import means, page, rows, scatter, scenarios
from netpurify.experiments.studies.defence.memory import measured_memory
from netpurify.experiments.studies.defence.scenarios import DEVELOPMENT, QUICK, Scenario
from netpurify.findings import read_table


def row(network, attack, defence, seed, accuracy, asr, *, images=500, held_out=True):
    return {
        "network": network, "attack": attack, "defence": defence, "images": images, "seed": seed, "held_out": held_out,
        "accuracy": accuracy, "asr": asr, "labels": defence == "ANP", "repair_seconds": 2.0, "megabytes": 10.0,
        "failure": None, "seconds": 3.0, "ra": None if asr is None else 1.0 - asr, "disagreement": 0.125,
    }  # fmt: skip


DOCS = Path(__file__).parents[3] / "docs"
TABLES = ("defences", "defences-published")
ROWS = [
    row("vgg", "none", "nothing", 1, 0.84, None, images=0), row("vgg", "none", "defend", 1, 0.83, None),
    row("vgg", "patch", "nothing", 1, 0.8, 0.9, images=0), row("vgg", "patch", "nothing", 2, 0.82, 1.0, images=0),
    row("vgg", "patch", "defend", 1, 0.79, 0.02), row("vgg", "patch", "defend", 2, 0.80, 0.04),
    row("vgg", "patch", "defend", 1, 0.70, 0.5, images=50), row("vgg", "patch", "ANP", 1, 0.75, 0.6),
    row("vgg", "patch", "ANP", 2, 0.77, 0.8),
]  # fmt: skip


def test_development_is_one_seed_of_two_networks_and_three_attacks():
    assert {(one.network, one.attack, one.seed) for one in DEVELOPMENT} == {
        (network, attack, 0) for network in ("mnist_cnn", "resnet") for attack in ("none", "patch", "blended", "sig")
    }
    assert not any(one.held_out for one in (*DEVELOPMENT, *QUICK))
    assert Scenario("resnet", "wanet", 0).held_out
    assert Scenario("resnet", "patch", 1).held_out
    assert Scenario("vgg", "patch", 0).held_out


def test_seeds_differ_in_weights_targets_and_draws():
    first, second = (Scenario("sample_cnn", "patch", seed) for seed in (0, 1))
    assert first.target != second.target
    assert not torch.equal(next(first.initial().parameters()), next(second.initial().parameters()))
    assert not torch.equal(first.clean(50)[0], second.clean(50)[0])
    assert torch.equal(first.clean(100)[0][:50], first.clean(50)[0])


@pytest.mark.parametrize("seed", range(3))
def test_clean_images_are_balanced_and_outside_of_training(seed, monkeypatch):
    drawn = []
    take = data.take
    monkeypatch.setattr(scenarios.data, "take", lambda images, places: drawn.append(take(images, places)) or drawn[-1])
    _, labels = Scenario("sample_cnn", "none", seed).clean(1000)
    inside = data.load("mnist-sample").indices[: scenarios.SETTINGS["sample_cnn"].images]
    assert not set(drawn[-1].indices.tolist()) & set(inside.tolist())
    assert torch.equal(labels.bincount(), torch.full((10,), 100))


def test_poisoned_images_are_stamped_and_the_rest_is_not():
    scenario = Scenario("sample_cnn", "wanet", 1)
    images, labels = scenarios.images_of("mnist-sample", "train")
    images, labels = images[:1000], labels[:1000]
    dirty = scenario.poisoned(images, labels)
    assert dirty is not None
    assert (len(dirty.indices), len(dirty.covers)) == (100, 200)
    assert (dirty.labels[dirty.indices] == scenario.target).all()
    touched = torch.cat([dirty.indices, dirty.covers])
    same = (dirty.inputs == images).flatten(1).all(1)
    assert not same[touched].any()
    assert same.sum() == 700
    assert torch.equal(dirty.labels[dirty.covers], labels[dirty.covers])


def test_the_full_grid_has_every_network_attack_defence_and_count():
    cells = defence.defence_cells("full")
    assert {cell["network"] for cell in cells} == {"mnist_cnn", "resnet", "vgg"}
    assert {cell["attack"] for cell in cells} == {"none", "patch", "blended", "sig", "wanet"}
    for name in ("defend", "fine-tuning", "fine-pruning", "Algorithm 2", "least squares"):
        assert {cell["images"] for cell in cells if cell["defence"] == name} == {50, 100, 500, 1000}
    assert {cell["images"] for cell in cells if cell["defence"] in ("nothing", "CLP")} == {0}
    assert len(cells) == 15 * (5 * 4 + 3)


def test_workers_find_what_makes_a_row_by_its_name(tmp_path):
    """A function of the program itself is sent by value, which what it keeps from row to row cannot be."""
    for experiment in defence.experiments(tmp_path):
        assert experiment.trial.func.__module__ == "netpurify.experiments.studies.defence.rows"


@pytest.mark.slow
def test_a_row_of_the_table_is_measured(tmp_path):
    (before,) = rows.trained({"network": "sample_cnn", "attack": "patch"}, 0, folder=str(tmp_path))
    assert before["accuracy"] > 0.9
    assert before["disagreement"] == 0.0
    settings = {"network": "sample_cnn", "attack": "patch", "defence": "defend", "images": 100}
    (after,) = rows.defended(settings, 0, folder=str(tmp_path))
    assert after["asr"] < before["asr"] - 0.5
    assert after["accuracy"] > before["accuracy"] - 0.05
    assert after["labels"] is False
    assert after["repair_seconds"] > 0.0


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the system does not count")
def test_the_peak_of_a_block_holds_what_it_allocates_and_not_what_earlier_blocks_did():
    with measured_memory() as large:
        torch.ones(30_000_000)  # 120 MB
    with measured_memory() as small:
        torch.ones(1000)
    with measured_memory() as again:
        pieces = [torch.ones(4000) for _ in range(5000)]  # 80 MB in pieces that the allocator keeps
    assert large.megabytes > 30_000_000 * 4 / 2**20 * 0.9
    assert small.megabytes < large.megabytes / 2
    assert again.megabytes > sum(piece.nbytes for piece in pieces) / 2**20 * 0.9


@pytest.mark.slow
@pytest.mark.parametrize("attack", ["none", "patch"])
def test_changed_classes_are_those_of_clean_images(attack):
    scenario = Scenario("sample_cnn", attack, 0)
    first, second = scenario.initial(), Scenario("sample_cnn", attack, 1).initial()
    images, labels = rows.tested("sample_cnn")
    with torch.no_grad():
        before, after = (network(images).argmax(1) for network in (first, second))
    found = rows.judge(scenario, second, before)
    assert found["disagreement"] == pytest.approx((before != after).double().mean().item())
    assert found["accuracy"] == pytest.approx((after == labels).double().mean().item())
    assert (found["asr"] is None) == (attack == "none")


def test_the_page_gives_means_over_seeds_and_what_was_there_before():
    text = page.section("vgg", ROWS, held_out=True)
    assert "set aside (1 to 2 seeds, 500 clean images)" in text
    assert "| defence | uses | none<br>84.0 | patch<br>81.0 / 95.0 |" in text
    assert "| **defend** | inputs | -1.0 | -1.5 / 3.0 |" in text
    assert "| ANP | labels |  | -5.0 / 70.0 |" in text
    assert means.cell(0.01, None) == "+0.0"
    by_seed = page.by_seed([*ROWS, row("vgg", "sig", "nothing", 1, 0.8, 0.9, held_out=False, images=0),
                           row("vgg", "sig", "defend", 1, 0.7, 0.6, held_out=False)])  # fmt: skip
    assert "| VGG-like network, CIFAR-10 | patch | -1.0 / 2.0 | -2.0 / 4.0 |" in by_seed
    assert "| VGG-like network, CIFAR-10 | none | -1.0 |  |" in by_seed
    assert "| VGG-like network, CIFAR-10 | sig | *-10.0 / 60.0* |  |" in by_seed
    longer = [row("vgg", "patch", "fine-tuning, 100 epochs", 2, 0.7, 0.3)]
    at_length = page.published_epochs([*ROWS, row("vgg", "patch", "fine-pruning", 2, 0.6, 0.1),
                                 row("vgg", "patch", "fine-tuning", 2, 0.8, 0.5),
                                 row("vgg", "patch", "fine-pruning", 1, 0.5, 0.2)], longer)  # fmt: skip
    assert "seed 2, 500 images" in at_length
    assert "| VGG-like network, CIFAR-10 | **defend** | -2.0 / 4.0 | 2.0 |" in at_length  # of this seed alone
    assert "| VGG-like network, CIFAR-10 | fine-tuning | -2.0 / 50.0 | 2.0 |" in at_length
    assert "| VGG-like network, CIFAR-10 | fine-tuning, 100 epochs | -12.0 / 30.0 | 2.0 |" in at_length
    assert "| VGG-like network, CIFAR-10 | fine-pruning | -22.0 / 10.0 | 2.0 |" in at_length
    by_count = page.by_count(ROWS)
    assert "| **defend** | -10.0 / 50.0 | -1.5 / 3.0 |" in by_count
    measured = page.everything(ROWS)
    assert "| **defend** | inputs | 80.7 | 3.0 | 97.0 | 12.5 | 2.0 | 10 |" in measured
    assert "| nothing |  | 82.0 | 95.0 | 5.0 | 12.5 |  |  |" in measured


def test_the_figure_has_a_point_for_each_defence_and_attack():
    assert [point[:2] for point in scatter.points(ROWS)] == [("defend", "patch"), ("ANP", "patch")]
    lost, asr = next(scatter.points(ROWS))[2:4]
    assert (lost, asr) == (pytest.approx(1.5), pytest.approx(0.03))
    (panel,) = scatter.draw(ROWS).axes
    drawn = [line for line in panel.lines if len(line.get_xdata()) == 1]
    assert len(drawn) == 2


def test_what_lost_more_than_the_figure_shows_stands_at_its_edge_with_its_number():
    (panel,) = scatter.draw([*ROWS, row("vgg", "patch", "CLP", 1, 0.56, 0.4, images=0)]).axes
    assert [text.get_text()[:2] for text in panel.texts] == ["25"]
    assert panel.texts[0].xy == (scatter.EDGE, pytest.approx(40.0))


def committed(name):
    """The rows of a committed table."""
    return read_table(DOCS / "results" / f"{name}.csv.gz")


@pytest.fixture(scope="module")
def published():
    return committed("defences")


def test_the_published_table_is_complete_and_sets_aside_what_it_should(published):
    cells = [row["network"] + row["attack"] + row["defence"] + str(row["images"]) for row in published]
    assert len(published) == len(defence.defence_cells("full")) * 3 == 1035
    assert len(set(cells)) == len(defence.defence_cells("full"))
    assert all(row["failure"] is None for row in published)
    for row in published:
        assert row["held_out"] == Scenario(row["network"], row["attack"], row["seed"]).held_out


def test_the_published_page_says_what_the_published_tables_say(published):
    text = (DOCS / "defence-results.md").read_text()
    for network in ("mnist_cnn", "resnet", "vgg"):
        for held_out in (True, False) if network != "vgg" else (True,):
            own = [row for row in published if row["network"] == network and row["held_out"] == held_out]
            assert page.section(network, own, held_out=held_out) in text
    assert page.by_seed(published) in text
    assert page.published_epochs(published, committed("defences-published")) in text
    assert page.by_count(published) in text
    assert page.everything(published) in text


@pytest.mark.slow
def test_tables_make_the_same_page_and_figure_each_time(tmp_path):
    tables = tmp_path / "tables"
    tables.mkdir()
    for name in TABLES:
        (tables / f"{name}.csv.gz").write_bytes((DOCS / "results" / f"{name}.csv.gz").read_bytes())
    (tables / "defence-networks.csv").write_text("network,attack,trial,seconds,failure\nvgg,none,0,36000.0,\n")
    files = ("page.md", "figures/defences.svg", *(f"results/{name}.csv.gz" for name in TABLES))
    made = []
    for folder in (tmp_path / "first", tmp_path / "second"):
        write_page(STUDIES["defence"], folder / "page.md", tables=tables, mode="full")
        made.append([(folder / name).read_bytes() for name in files])
    assert made[0] == made[1]
    assert made[0][2:] == [(tables / f"{name}.csv.gz").read_bytes() for name in TABLES]
    ours, theirs = (text.splitlines() for text in (made[0][0].decode(), (DOCS / "defence-results.md").read_text()))
    differing = [line for line, other in zip(ours, theirs, strict=True) if line != other]
    assert all(" of one core: " in line for line in differing)  # training's time is not among the committed tables
