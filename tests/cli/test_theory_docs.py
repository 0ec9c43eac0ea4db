"""The tables of docs/paper.md are what the commands print."""

import json
import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "paper.md"
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def shown(start):
    (block,) = [block for block in GUIDE.read_text().split("```")[1::2] if start in block]
    return block.splitlines()


def words_and_numbers(lines):
    text = "\n".join(" ".join(line.split()) for line in lines if line.strip())
    return NUMBER.sub("#", text), [float(number) for number in NUMBER.findall(text)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("start", "command"),
    [("sequential: ", ["theory", "--regime", "sequential"]), ("runs per value", ["theory", "--sweep", "m"])],
)
def test_tables_are_what_the_commands_print(run, start, command):
    done = run(*command)
    words, numbers = words_and_numbers(done.out.splitlines())
    written, then = words_and_numbers(shown(start))
    assert words == written, "python tools/make_theory_tables.py writes the tables anew"
    # To two digits, and rounding errors as zero: other processors round otherwise.
    assert numbers == pytest.approx(then, rel=0.05, abs=1e-12)


@pytest.mark.slow
def test_lemma_9_is_what_the_guide_says(run):
    rows = json.loads(run("theory", "--json").out)["rows"]
    (row,) = [row for row in rows if row["quantity"] == "|v^ - v*|"]
    said = f"|v^ - v*| is at most {row['bound']:.3f}, and {row['measured']:.5f} is measured"
    assert said in " ".join(GUIDE.read_text().split())
    assert "without promise" in row["note"]
