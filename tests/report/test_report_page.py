"""The page and its Markdown twin: whole, self-contained, and safe for any text."""

import re
from dataclasses import replace

import pytest

from netpurify import report
from netpurify.errors import InputError
from netpurify.findings import CLAIM_VERDICTS, Finding, Rule, Verdict
from netpurify.report import FigureResult
from netpurify.report.kit.themes import themed
from netpurify.report.reproduction.belief import beliefs
from netpurify.report.reproduction.words import runs_of
from tests.report.made_figures import FINDINGS, result, table
from tests.report.page_reader import LOADING, Reader

pytestmark = pytest.mark.slow  # every test draws pages

ABOUT = {"Version": "0.1.0", "Command": "netpurify reproduce --mode full", "Machine": "2 cores", "Minutes": "212"}
HOSTILE = "<script>alert('1')</script> \"&amp;\" | `x` *y* $z$"


@pytest.fixture(scope="module")
def results():
    return [result(2, panels=6), result(3, "Accuracy", rows=table(failed=1)), result(5, "One panel", panels=1)]


@pytest.fixture(scope="module")
def text(results):
    return report.reproduction_page(results, about=ABOUT)


@pytest.fixture(scope="module")
def read(text):
    return Reader(text)


@pytest.mark.slow
def test_page_has_every_figure_with_plot_findings_and_links(read, results):
    ids = {attributes.get("id") for _, attributes in read.tags}
    links = [attributes["href"] for tag, attributes in read.tags if tag == "a"]
    for one in results:
        assert read.words.count(one.name + "\n") == 3  # in both summaries and as a heading
        assert f"figure-{one.figure.number}" in ids
        assert f"#figure-{one.figure.number}" in links
    assert [tag for tag, _ in read.tags].count(
        "svg"
    ) == 10  # a wide and a narrow one, and one panel alone; all on two scales
    assert all(finding.claim in read.words and finding.why in read.words for finding in FINDINGS)
    assert all(f"{symbol} {verdict}" in read.words for symbol, verdict in zip("✓◐✗○", CLAIM_VERDICTS, strict=True))
    assert all(name in read.words and value in read.words for name, value in ABOUT.items())
    assert "The paper shows means only." in read.words


def test_every_rule_stands_on_the_page_once_and_claims_lead_to_it(read, results):
    ids = {attributes.get("id") for _, attributes in read.tags}
    links = [attributes["href"] for tag, attributes in read.tags if tag == "a"]
    rules = {finding.rule for one in results for finding in one.findings}
    assert {f"rule-{place}" for place in range(1, len(rules) + 1)} <= ids
    assert f"rule-{len(rules) + 1}" not in ids
    for rule in rules:
        for text in (rule.where, rule.measure, rule.nothing, rule.reason):
            assert not text or read.words.count(text + "\n") == 1
    assert links.count("#rule-1") == len(results)


def test_what_we_add_is_listed_apart_and_never_counted(read, results):
    assert len(results[0].claims) == 4
    assert [finding.claim for finding in results[0].additions] == ["we add this"]
    assert "12 claims of the paper in 3 figures were judged" in read.words
    counts = "3 hold, 3 hold with limits, 3 do not hold and 3 were not measured"
    assert f"By the paper's own measure, with thresholds that are ours, {counts}." in read.words
    assert "Against doing nothing, which can be asked of 3 of them, 3 do not hold." in read.words
    ours = FigureResult(replace(results[0].figure, number=14, ours=True), results[0].rows, "full")
    assert ours.claims == []
    assert len(ours.additions) == len(FINDINGS)
    alone = report.reproduction_markdown([ours], about={}, images=str)
    assert "0 claims of the paper in 0 figures were judged" in alone


def test_what_to_believe_follows_the_verdicts():
    def said(measure, nothing):
        finding = Finding(Rule("a claim"), measure, nothing, "")
        ((heading, (text,)),) = beliefs([result(findings=[finding])])
        assert text.startswith("a claim (Figure 2: ")
        return heading

    assert said(Verdict.HOLDS, Verdict.HOLDS).startswith("Believe it: ")
    assert said(Verdict.HOLDS, None).startswith("Believe it: ")
    assert said(Verdict.HOLDS, Verdict.LIMITS).startswith("Believe it by the paper's measure, within limits")
    assert said(Verdict.HOLDS, Verdict.FAILS).startswith("Believe it of the paper's measure alone")
    assert said(Verdict.LIMITS, Verdict.LIMITS).startswith("Believe it within limits")
    assert said(Verdict.LIMITS, Verdict.FAILS).startswith("Believe it of the paper's measure alone")
    assert said(Verdict.FAILS, Verdict.HOLDS).startswith("Do not believe it as it is stated")
    assert said(Verdict.UNSEEN, None).startswith("Not measured")


def test_a_shared_run_is_counted_once(read, results):
    (run, total) = runs_of(results[:1] + results[2:])
    assert run[:3] == ["made", "2, 5", "10"]
    assert total[2:5] == ["10", "0", "5 min"]
    assert read.words.count("The same trials as Figure 2.") == 1


def test_fits_without_proof_and_training_are_told():
    rows = [row | {"certified": 0.99, "m": 2, "converged": row["trial"] == 0} for row in table()]
    one = result(rows=rows)
    assert one.certified == "all fits in 0 of 80 purifications"
    counted = FigureResult(replace(one.figure, units=lambda _row: 100), rows, "full")
    assert counted.certified == "all but 80 of 8,000 fits (m = 2: 80)"
    assert counted.trained == "2 of 10"
    assert (result().certified, result().trained) == ("not recorded", "not recorded")


def test_settings_evidence_and_digests_are_shown(results):
    digests = {"made.csv": "ab" * 32}
    pages = (
        Reader(report.reproduction_page(results, about=ABOUT, digests=digests)).words,
        report.reproduction_markdown(results, about=ABOUT, digests=digests, images=str),
    )
    for text in pages:
        assert "Settings: paper, here, why" in text
        assert "thresholds; one trial" in text
        assert "0.41" in text
        assert "ab" * 32 in text
        assert "standard deviation" in text


@pytest.mark.slow
def test_page_loads_nothing(read, text):
    assert [attributes for tag, attributes in read.tags if tag == "script"] == [{}]  # the page's own
    for tag, attributes in read.tags:
        assert tag not in {"link", "img", "iframe", "object", "embed", "image"}
        assert not LOADING & set(attributes), tag
        for name in ("href", "xlink:href"):
            assert (attributes.get(name) or "#").startswith("#")
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)


def test_ids_are_unique_and_drawings_have_names(read):
    ids = [attributes["id"] for _, attributes in read.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert all(attributes.get("aria-label") for tag, attributes in read.tags if tag == "svg")


def test_numbers_of_the_plot_can_be_read(read):
    assert "2e-09\n" in read.words
    assert "nan\n" in read.words


def test_failed_trials_are_shown_with_reasons(read, results):
    assert "10 trials: 5 for each of 2 settings, mode full; 5 min on one core; none failed." in read.words
    assert results[1].effort == "10 trials: 5 for each of 2 settings, mode full; 5 min on one core; 2 failed."
    assert "DivergenceError: take a smaller gamma" in read.words
    assert "width 256, regime joint, trial 0; width 512, regime joint, trial 0" in read.words
    assert [failure.count for failure in results[1].failures] == [2]


def test_many_failures_are_counted_not_listed():
    (failure,) = result(rows=table(failed=4)).failures
    assert failure.count == 8
    assert failure.trials.count("trial ") == 6
    assert failure.trials.endswith("; and 2 more")


def test_figure_without_a_successful_trial_says_so():
    refuse = result(rows=table(failed=5))
    empty = result(3, rows=[])
    read = Reader(report.reproduction_page([refuse, empty], about={}))
    assert read.words.count("No trial succeeded") == 2
    assert "No trial has been recorded." in read.words
    assert "svg" not in {tag for tag, _ in read.tags}
    assert report.plot(empty) is None
    assert "![" not in report.reproduction_markdown([refuse, empty], about={}, images=str)


@pytest.mark.slow
def test_hostile_texts_stay_texts():
    finding = Finding(Rule(HOSTILE), Verdict.FAILS, None, HOSTILE, why=HOSTILE)
    rows = table(failed=1, reason=HOSTILE)
    text = report.reproduction_page(
        [result(1, HOSTILE, findings=[finding], rows=rows, remarks=(HOSTILE,))], about={HOSTILE: HOSTILE}
    )
    read = Reader(text)
    assert text.count("<script") == 1  # the page's own
    assert (
        read.words.count(HOSTILE) == 11
    )  # belief, summary, rule, heading, claim, measured, why, reason, remark, about


@pytest.mark.slow
def test_same_results_give_the_same_page(results, text):
    assert report.reproduction_page(results, about=ABOUT) == text


def test_figure_that_comes_twice_is_refused():
    with pytest.raises(InputError, match="figure 2 2 times"):
        report.reproduction_page([result(), result()], about={})


def test_markdown_tables_keep_their_columns():
    finding = Finding(Rule("a | b"), Verdict.LIMITS, None, "first\nsecond", why=HOSTILE)
    text = report.reproduction_markdown(
        [result(findings=[finding])], about=ABOUT, images=lambda number: f"plots/figure {number}.svg"
    )
    (row,) = [line for line in text.splitlines() if line.startswith(r"| [a \| b](#rule-1)")]
    assert len(re.split(r"(?<!\\)\|", row)) == 5 + 2
    assert "| first second | ◐ holds with limits | - |" in row
    assert r"&lt;script&gt;alert('1')&lt;/script&gt;" in row
    assert r"\| \`x\` \*y\* \$z\$ |" in row
    assert "](plots/figure%202.svg)" in text
    assert "- **Machine**: 2 cores" in text
    assert "10 trials" in text


def test_markdown_shows_every_figure_and_failure(results):
    text = report.reproduction_markdown(results, about=ABOUT, images=lambda number: f"{number}.svg")
    assert [f"## {one.name}" in text for one in results] == [True] * 3
    assert "| DivergenceError: take a smaller gamma | 2 | width 256, regime joint, trial 0; " in text


@pytest.mark.slow
def test_picture_is_the_drawing_of_the_page(results, text):
    def plain(drawing):
        """Without what the page adds, and with its coordinates to a hundredth."""
        drawing = re.sub(r' data-rows="[^"]*"|(?<=[#"])p[0-9a-f]{8}-', "", drawing)
        return re.sub(r'(?<= )(?:d|x|y)="[^"]*"', lambda it: re.sub(r"(\d\.\d\d)\d+", r"\1", it[0]), drawing)

    assert all(plain(themed(report.plot(one))) in plain(text) for one in results)


def test_write_makes_folders_and_replaces_whole_files(tmp_path):
    path = tmp_path / "new" / "page.html"
    report.save(path, "first")
    report.save(path, "second ≤")
    assert path.read_text(encoding="utf-8") == "second ≤"
    assert [entry.name for entry in path.parent.iterdir()] == ["page.html"]


def test_write_refuses_a_place_that_is_none(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"page.html cannot be written .* name a file in another place"):
        report.save(tmp_path / "file" / "page.html", "text")
