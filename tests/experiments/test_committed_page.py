"""The committed page is what the committed tables give, and a sample of its numbers comes out of plain sums too."""

import csv
import gzip
import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from statistics import fmean, stdev

import pytest

from netpurify import report
from netpurify.experiments.figures import FIGURES, conclusion
from netpurify.findings import read_table

pytestmark = pytest.mark.slow  # reads all tables of the full run

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "reproduction.md").read_text()
OF_THE_CALL = ("Command", "Versions", "Commit", "Tables", "Machine", "This call")


@cache
def table(name):
    """The rows of a table as texts, read without the code of the project."""
    with gzip.open(DOCS / "results" / f"{name}.csv.gz", "rt", newline="") as stream:
        return list(csv.DictReader(stream))


def section(number):
    (found,) = re.findall(rf"^## Figure {number}: .*?(?=^## |\Z)", PAGE, flags=re.DOTALL | re.MULTILINE)
    return found


def of(name, **wanted):
    return [row for row in table(name) if all(row.get(column) == value for column, value in wanted.items())]


def rounds_to(value, text):
    """Whether a number is what a text says, up to half of its last digit and a little: a tie may go either way."""
    digits, _, power = text.partition("e")
    last = 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))
    return abs(value - float(text)) <= 0.501 * last


def stands(label, columns, text):
    """Whether a line of a table has these means and deviations, column by column, after its label."""
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith(f"| {label} | ")]
    return any(all(map(matches, columns, line[1:])) for line in lines if len(line) > len(columns))


def matches(values, cell):
    mean, _, deviation = cell.partition(" ± ")
    return rounds_to(fmean(values), mean) and rounds_to(stdev(values), deviation or "nan")


def limits(rows, cells, column, bound):
    """The largest eps of each trial up to which a number is at most a bound, mean over cells."""
    curves = defaultdict(list)
    for row in rows:
        curves[int(row["trial"]), tuple(row[name] for name in cells)].append((float(row["eps"]), float(row[column])))
    found = defaultdict(list)
    for (trial, _), points in curves.items():
        reached = 0.0
        for eps, value in sorted(points):
            if value > bound:
                break
            reached = eps
        found[trial].append(reached)
    return [fmean(values) for _, values in sorted(found.items())]


def test_limits_of_w_by_k():
    sizes = [limits(of("synthetic-p-k", regime="joint", method="l1", k=k), ["p"], "W_error", 0.1)
             for k in ("50", "100", "150")]  # fmt: skip
    change = [last - first for first, last in zip(sizes[0], sizes[-1], strict=True)]
    assert stands("0.1", [*sizes, change], section(2))
    assert stands("0.1", [*sizes, change], section(3))


def test_limits_of_beta_by_p():
    for number, regime in ((2, "joint"), (3, "sequential")):
        for method in ("l1", "l1, initial features"):
            widths = [
                limits(of("synthetic-p-k", regime=regime, method=method, p=p), ["k"], "beta_error", 0.05)
                for p in ("50", "100", "500", "1000", "2000")
            ]
            assert stands("0.05", widths, section(number))


def test_errors_of_beta_with_few_altered_weights():
    errors = [
        [float(row["beta_error"]) for row in of("synthetic-p-k", regime="joint", method="l1", k="100", p=p, eps="0.1")]
        for p in ("50", "100", "500", "1000", "2000")
    ]
    assert stands("k = 100", errors, section(2))


def test_exact_filters_with_either_number_of_images():
    for m in ("2", "4", "7"):
        shares = [
            [float(row["W_exact"]) for row in of("mnist-p", training=n, m=m, p="100", eps="0.05", method="l1")]
            for n in ("21", "99")
        ]
        assert stands(f"m = {m}", shares, section(5))


@pytest.mark.parametrize(("number", "name"), [(6, "mnist-n"), (7, "cifar10-n")])
def test_errors_beside_the_initial_weights(number, name):
    for origin, words in (("training", "training images"), ("other", "images from outside")):
        for layer in ("W", "beta"):
            ratios = []
            for n in ("9", "21", "36"):
                fitted, start = (
                    {row["trial"]: float(row[f"{layer}_error"])
                     for row in of(name, clean=n, origin=origin, eps="0.1", method=method)}
                    for method in ("l1", "initial weights")
                )  # fmt: skip
                ratios.append([fitted[trial] / start[trial] for trial in fitted])
            assert stands(f"{layer}, {words}", ratios, section(number))


@pytest.mark.parametrize(("number", "name"), [
    (8, "mnist-backdoor"), (9, "cifar10-backdoor"), (10, "mnist-layers"), (12, "cifar10-layers"),
])  # fmt: skip
def test_attack_success_before_purification(number, name):
    rows = [
        row
        for row in of(name, method="before", ratio="0.3", layers="1")
        if row.get("variant", "paper") == "paper" and row.get("trigger", "first five pixels") == "first five pixels"
    ]
    values = [float(row["asr_all"]) for row in rows]
    pairs = re.findall(r"(\d\.\d{3}) ± (\d\.\d{3})", section(number))
    assert any(matches(values, f"{mean} ± {deviation}") for mean, deviation in pairs)


def test_a_number_that_is_not_in_the_tables_is_seen():
    sizes = [limits(of("synthetic-p-k", regime="joint", method="l1", k="50"), ["p"], "W_error", 0.1)]
    assert stands("0.1", sizes, section(2))
    assert not stands("0.1", [[value + 0.002 for value in sizes[0]]], section(2))


def test_trials_and_hours_of_each_experiment():
    for name in {figure.experiment.name for figure in FIGURES.values()}:
        cells = FIGURES[min(n for n in FIGURES if FIGURES[n].experiment.name == name)].experiment.grid("full")
        columns = [*dict.fromkeys(column for cell in cells for column in cell), "trial"]
        seconds = {tuple(row.get(column) for column in columns): float(row["seconds"]) for row in table(name)}
        assert re.search(rf"^\| {name} \| [\d, ]+ \| {len(seconds)} \| 0 \| ", PAGE, flags=re.MULTILINE), name
        hours = sum(seconds.values()) / 3600
        assert hours < 1 or f"| {hours:.1f} h |" in PAGE


def test_the_page_is_what_the_tables_give():
    tables = {figure.experiment.name: None for figure in FIGURES.values()}
    rows = {name: read_table(DOCS / "results" / f"{name}.csv.gz") for name in tables}
    results = [report.FigureResult(figure, rows[figure.experiment.name], mode="full") for figure in FIGURES.values()]
    top = {"about": {}, "conclusion": conclusion({result.figure.number: result.findings for result in results})}
    made = report.reproduction_markdown(results, images=lambda number: f"figures/figure{number:02}.svg", **top)
    assert lasting(PAGE) == lasting(made)


def lasting(text):
    """The page without what differs from call to call, and without digests."""
    text = re.sub(r"<details><summary>Digests.*?</details>\n", "", text, flags=re.DOTALL)
    lines = [
        line for line in text.splitlines() if not line.startswith(tuple(f"- **{name}**: " for name in OF_THE_CALL))
    ]
    return [line for line in lines if line]
