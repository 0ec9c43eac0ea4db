"""What commands print fits 60, 80 and 120 columns: no line is longer, no word is broken, findings come first."""

import io
import re
from dataclasses import replace

import pytest
from rich.cells import cell_len

from netpurify.cli.findings import show_summary
from netpurify.cli.layout import blocks, column_widths, cut_front, known_width, wrapped
from netpurify.cli.screen import Bar, complain, note, show_line, show_table
from netpurify.cli.tables import show_altered, show_fits, show_layers, show_plan
from netpurify.network import Skipped
from netpurify.report import summarise
from tests.report import made_defences
from tests.report import made_purifications as made

WIDTHS = (60, 80, 120)


def with_many():
    """A network in which little was found, as deep networks are: most of it is intact or of one other kind."""
    result = made.mixed()
    healthy = made.untouched().layers
    frozen = [replace(healthy[1], name=f"block{number}.linear") for number in range(20)]
    fitted = [replace(healthy[0], name=f"block{number}.convolution") for number in range(5)]
    norms = [
        Skipped(f"block{number}.norm", "BatchNorm2d", "BatchNorm2d is none of Linear, Conv1d") for number in range(20)
    ]
    missed = Skipped("last.norm", "BatchNorm2d", "it differs from its initial weights", missed=True)
    return replace(result, layers=(*frozen, *result.layers, *fitted), skipped=(*norms, missed))


def everything():
    for result in (with_many(), made.recovered(), made.projected()):
        show_layers(result)
        show_altered(result, 5)
        show_summary(summarise(result), quiet=False)
    show_plan(made.planned())
    show_summary(summarise(made.planned()), quiet=False, more=["This check took 3.2 s."])
    show_fits(made_defences.automatic())
    show_summary(summarise(made_defences.automatic()), quiet=False)


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_is_too_long_and_no_word_is_broken(capsys, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", "100000")
    everything()
    words = set(capsys.readouterr().out.replace(":", " ").split())
    monkeypatch.setenv("COLUMNS", str(width))
    everything()
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= width
    broken = set(shown.replace(":", " ").split()) - words
    assert not broken


def test_findings_come_first_and_the_rest_is_counted(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    show_layers(with_many())
    shown = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in shown[1:3]] == ["conv", "head"]
    assert "20 layers intact (80 units): never trained, and every weight has its initial bits" in shown
    assert "5 layers intact (40 units): certified, nothing to replace" in shown
    assert "not examined: 20 BatchNorm2d: BatchNorm2d is none of Linear, Conv1d" in shown
    assert [line for line in shown if line.startswith("last.norm ")]
    assert len(shown) < 20
    show_layers(with_many(), verbose=True)
    every = capsys.readouterr().out
    assert all(f"\nblock{number}.linear " in every for number in range(20))
    assert all(f"\nblock{number}.norm " in every for number in range(20))


def test_largest_changes_come_first_with_an_index_for_each_axis(capsys):
    show_altered(made.mixed(), 3)
    *rows, told = capsys.readouterr().out.splitlines()[2:]
    assert [row.split("  ")[0] for row in rows] == [
        "conv.weight[0, 0, 1, 2]", "conv.weight[3, 0, 0, 0]", "conv.weight[5, 0, 2, 2]"
    ]  # fmt: skip
    assert told == "The 3 largest changes of 4; --show lists more, --json all."
    show_altered(made.recovered(), 5)
    rows = capsys.readouterr().out.splitlines()[2:-1]
    sizes = [abs(float(was) - float(now)) for was, now in (row.split()[-3:-1] for row in rows)]
    whole = made.recovered().altered
    assert sizes[0] == pytest.approx(float(abs(whole.was - whole.now).max()), rel=1e-4)
    assert sizes == sorted(sizes, reverse=True)
    show_altered(made.recovered(), 0)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("width", WIDTHS)
def test_messages_break_between_words(capsys, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    message = (
        "layers: 2, weights: 2,645, clean inputs: 8; netpurify check says what to expect of a network like this one"
    )
    for tell in (note, complain, show_line):
        tell(message)
        shown = capsys.readouterr()
        lines = (shown.out + shown.err).splitlines()
        assert max(map(len, lines)) <= width
        assert set(" ".join(lines).split()) - {"netpurify:"} == set(message.split())
        assert all(line.startswith("  ") for line in lines[1:])


def test_only_words_that_are_longer_than_a_line_are_broken():
    assert wrapped("a bb ccc", None) == ["a bb ccc"]
    assert wrapped("a bb ccc dddd", 8) == ["a bb ccc", "  dddd"]
    assert wrapped("x" * 25, 10) == ["x" * 8, "  " + "x" * 8, "  " + "x" * 8, "  x"]
    assert "".join(part.strip() for part in wrapped("语言" * 20, 30)) == "语言" * 20
    assert max(map(cell_len, wrapped("语言" * 20, 30))) == 30
    assert wrapped("", 5) == [""]


def test_a_table_that_is_too_wide_becomes_blocks(capsys, monkeypatch):
    names, rows = ("layer", "units", "why"), [("encoder.0", "1,024", "one two three " * 4), ("b", "-", "short")]
    assert column_widths(names, rows, (1,), 100) is not None
    assert column_widths(names, rows, (1,), 30) is None
    assert column_widths(names, rows, (1,), 45) == [9, 5, 27]
    found = list(blocks(names, rows, 24))
    assert found[:3] == ["layer:", "encoder.0", "  units: 1,024"]
    assert found[-2:] == ["b", "  why: short"]
    assert max(map(len, found)) <= 24
    show_table("", names, rows, numbers=(1,))  # a pipe has 160 columns, unless it is told otherwise
    assert capsys.readouterr().out.splitlines()[0].split() == ["layer", "units", "why"]
    monkeypatch.setenv("COLUMNS", "24")
    show_table("", names, rows, numbers=(1,))
    assert capsys.readouterr().out.splitlines() == found


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_bar_shows_the_layer_and_the_time_left(capsys, monkeypatch, width):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(width))
    with Bar("purify") as bar:
        bar.to(5, 62, "5 of 62 layers, 0:01:20 left", name="encoder.layers.11.self_attn.q_proj")
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", capsys.readouterr().err)
    line = [part for part in re.split(r"[\r\n]", shown) if "62" in part][-1].rstrip()
    assert len(line) <= width
    assert "5 of 62 layers, 0:01:20 left" in line
    if width >= 80:
        assert line.endswith("self_attn.q_proj")


def test_names_are_cut_at_their_beginning():
    assert cut_front("layer1.0.conv1", 20) == "layer1.0.conv1"
    assert cut_front("layer1.0.conv1", 8) == "…0.conv1"
    assert cut_front("layer1.0.conv1", 2) == ""


@pytest.mark.parametrize(("variable", "coloured"), [("FORCE_COLOR", True), ("NO_COLOR", False), (None, False)])
def test_verdicts_have_colours_on_terminals_alone(capsys, monkeypatch, variable, coloured):
    for name in ("FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    if variable:
        monkeypatch.setenv(variable, "1")
    show_summary(summarise(made.recovered()), quiet=True)
    shown = capsys.readouterr().out
    assert ("\x1b[1;31m▲" in shown, "\x1b[32m✓" in shown) == (coloured, coloured)
    assert ("\x1b" in shown) == coloured


def test_streams_without_a_terminal_have_no_width(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert known_width(io.StringIO()) is None
    monkeypatch.setenv("COLUMNS", "0")
    assert known_width(io.StringIO()) is None
    monkeypatch.setenv("COLUMNS", "72")
    assert known_width(io.StringIO()) == 72
