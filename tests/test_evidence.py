"""docs/evidence.md: its experiments bear out what it says, its tables are those of the tool, and its code runs."""

import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.special import pdtrc

from netpurify import lad

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tool():
    """The names of the tool's modules."""
    folder = str(ROOT / "tools" / "evidence")
    sys.path.insert(0, folder)
    try:
        names = runpy.run_path(str(ROOT / "tools" / "evidence" / "__main__.py"))
        yield names | vars(sys.modules["exact"]) | vars(sys.modules["assumptions"])
    finally:
        sys.path.remove(folder)
        for name in ("exact", "assumptions", "pictures"):
            del sys.modules[name]


def table(name):
    """A committed table, line by line."""
    return re.search(rf"<!-- {name} -->\n\n(.*?)\n\n<!-- end -->", PAGE, flags=re.DOTALL)[1]


@pytest.mark.slow
def test_generic_amounts_fit_where_the_theorem_says_and_nowhere_else(tool):
    rows = tool["brute_force"]()
    assert tool["as_markdown"](rows) == table("brute-force"), "run python tools/evidence"
    free, fitted, others, accidents = list(rows[0])[3:]
    assert all(row[free] == row[fitted] > 0 for row in rows), "proposition 2"
    assert all(row[others] > 1000 for row in rows)
    continuous = [row[accidents] for row in rows if row["alterations"] == "continuous"]
    assert continuous == [0, 0, 0, 0], "theorem 1"
    assert sum(row[accidents] for row in rows) > 100, "without the assumption there are accidents"


def test_a_dependent_row_counts_as_predicted_and_an_independent_one_does_not(tool):
    fraction = tool["Fraction"]
    rows = [[fraction(value) for value in row] for row in ([1, 0], [2, 0], [0, 1], [0, 0])]
    problem = tool["SmallProblem"](rows, [fraction(value) for value in (1, 2, 7, 0)], frozenset({1, 2}))
    judged = dict(zip([(1,), (2,), (0, 1), (0, 2), (1, 2), (1, 3), (2, 3)], problem.judged(), strict=False))
    assert judged[0, 1] == (True, False), "fitted by accident: the amount of row 1 was chosen so"
    assert judged[0, 2] == (True, True)
    assert tool["exact_rank"](rows) == 2
    assert tool["exact_rank"]([]) == 0


@pytest.mark.slow
def test_counting_fails_where_leverage_does_not(tool):
    rows = tool["lonely_rows"](columns=500)
    assert all(row["false by count"] > 0 for row in rows)
    assert all(row["false by leverage"] == row["false RECOVERED"] == 0 for row in rows)
    assert rows[0]["RECOVERED"] == 0, "a row that alone uses a column is never predicted"
    assert rows[-1]["RECOVERED"] == rows[-1]["right"] > 480


@pytest.mark.slow
def test_ties_fool_the_theorem_on_sparse_designs_and_not_the_verifier(tool):
    rows = {(row["design"], row["alterations"]): row for row in tool["ties"](each=100)}
    assert all(row["false by leverage"] == 0 for (_, kind), row in rows.items() if kind == "generic")
    assert all(row["RECOVERED"] >= 0.99 * row["right"] for (_, kind), row in rows.items() if kind == "generic")
    assert rows["two-way layout", "generic"]["false by count"] > 0
    assert rows["two-way layout", "constant"]["false by leverage"] > 50
    assert rows["graph incidence", "constant"]["false by leverage"] > 20
    assert all(row["false RECOVERED"] == 0 for row in rows.values())
    gaussian = rows["Gaussian", "constant"]
    assert gaussian["RECOVERED"] == gaussian["columns"], "on a Gaussian design equal amounts do no harm"


@pytest.mark.slow
def test_an_adversary_is_believed_as_soon_as_most_rows_agree_with_it(tool):
    rows = {round(row["share"], 2): row for row in tool["adversary"](columns=100)}
    assert all(row["generic, false"] == 0.0 for row in rows.values())
    assert rows[0.2]["agreeing, true"] == rows[0.2]["generic, true"] == 1.0
    assert rows[0.3]["agreeing, false"] == 0.0
    assert rows[0.8]["agreeing, false"] == 1.0
    assert rows[0.8]["generic, true"] < 0.05


def test_weights_that_are_set_back_agree_on_no_training():
    rng = np.random.default_rng(0)
    design, truth = rng.standard_normal((200, 10)), rng.standard_normal(10)
    column = design @ truth
    column[: 200 * 7 // 10] = 0.0  # the change of a weight that has its initial value
    solution = lad.solve(design, column, threads=1)
    assert str(solution.outcomes) == "RECOVERED"
    assert np.abs(solution.coefficients).max() < 1e-9
    assert ((solution.residual != 0) == (column != 0)).all(), "the trained weights are called altered"


@pytest.mark.slow
def test_the_floor_catches_as_many_residuals_as_the_proposition_says(tool):
    columns = 3000
    for row in tool["accidental_zeros"](columns=columns):
        error = np.sqrt(row["proposition"] / columns)  # independent events: about a Poisson number
        assert abs(row["measured"] - row["proposition"]) < 4.0 * error
        assert pdtrc(row["subtracted by rule 5"], row["proposition"]) < 1e-5, "chance hardly ever gives more"


@pytest.mark.slow
def test_dense_noise_is_never_taken_for_evidence(tool):
    rows = tool["dense_noise"](columns=20_000)
    assert not any(row[f"false, floor {floor}"] for row in rows for floor in ("0.0001", "detected", "0"))
    assert all(row["with zeros beyond the rank"] > 50 for row in rows), "the floor catches zeros by chance"


@pytest.mark.slow
def test_misfit_fails_safely(tool):
    rows = {row["misfit"]: row for row in tool["misfit"](columns=200)}
    assert all(rows[size]["RECOVERED"] == 1.0 for size in (0.0, 1e-12, 1e-9, 1e-7))
    assert rows[1e-3]["RECOVERED"] == rows[1e-1]["RECOVERED"] == 0.0
    assert all(row["altered rows hidden"] == row["unaltered rows called altered"] == 0 for row in rows.values())
    floors = [rows[size]["noise floor"] for size in (0.0, 1e-12, 1e-9, 1e-7)]
    assert floors == sorted(floors)


def test_the_page_has_every_table_and_picture(tool):
    for name in tool["EXPERIMENTS"]:
        assert table(name).startswith("| ")
    pictures = re.findall(r"!\[[^\]]{60,}\]\((figures/evidence-[a-z]+\.svg)\)", PAGE)
    assert len(pictures) == len(tool["PICTURES"])
    assert all((ROOT / "docs" / picture).read_text().rstrip().endswith("</svg>") for picture in pictures)
    with pytest.raises(ValueError, match="no marks"):
        tool["insert"]("a page", "ties", "")
    assert tool["insert"]("<!-- a -->\n<!-- end -->\n<!-- b -->\nold\n<!-- end -->", "a", "new") == (
        "<!-- a -->\n\nnew\n\n<!-- end -->\n<!-- b -->\nold\n<!-- end -->"
    )


def test_the_check_by_hand_prints_what_the_page_says(capsys):
    (code,), (output,) = (re.findall(rf"```{kind}\n(.*?)```", PAGE, flags=re.DOTALL) for kind in ("python", "text"))
    exec(compile(code, "docs/evidence.md", "exec"), {})
    assert capsys.readouterr().out == output
